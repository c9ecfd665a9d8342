/* SPDX-License-Identifier: MIT */
/* How many of each thing the driver hands out are alive, for the report. */
#ifndef CUSIM_SIM_HANDLES_H
#define CUSIM_SIM_HANDLES_H

#include "sim.h"

const char *sim_object_name(enum sim_type type);
/* *most: how many were alive at once. */
size_t sim_object_count(enum sim_type type, size_t *most);
size_t sim_vmm_reservations(void);

#endif
