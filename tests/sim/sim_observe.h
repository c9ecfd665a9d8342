/* SPDX-License-Identifier: MIT */
/* Who watches memory come and go (cusim_observe). Under sim.lock. */
#ifndef SIM_OBSERVE_H
#define SIM_OBSERVE_H

#include "cusim.h"

void sim_observe(const struct cusim_event *event);
void sim_observe_set(void (*seen)(const struct cusim_event *event));

#endif
