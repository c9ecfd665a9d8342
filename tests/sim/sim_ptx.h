/* SPDX-License-Identifier: MIT */
/* What is read of PTX: the variables of its modules. */
#ifndef SIM_PTX_H
#define SIM_PTX_H

#include <stdbool.h>

/* Whether an image is PTX. */
bool sim_ptx_is(const char *image);

/* An image of our own with the same variables (sim_module.c), for the caller to free; NULL without
 * memory. The text ends with a NUL, as cuModuleLoadData asks. */
char *sim_ptx_variables(const char *ptx);

#endif
