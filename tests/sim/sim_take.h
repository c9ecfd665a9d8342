/* SPDX-License-Identifier: MIT */
/* Memory that a call takes on the way, see sim_take.c. */
#ifndef SIM_TAKE_H
#define SIM_TAKE_H

#include "sim.h"

CUresult sim_take(unsigned index); /* what the function of this row takes, if anything */
void sim_take_set(const char *symbol, size_t bytes);

#endif
