/* SPDX-License-Identifier: MIT */
/* Scripted failures. */
#ifndef CUSIM_SIM_SCRIPT_H
#define CUSIM_SIM_SCRIPT_H

#include "sim.h"

void sim_script_load(const char *text); /* adds rules written as in CUSIM_FAIL */
CUresult sim_script_check(unsigned index);
void sim_script_reset(void);

#endif
