/* SPDX-License-Identifier: MIT */
/* What a block of cuMemAlloc or cuMemAllocPitch takes of a device, which is not its size. */
#ifndef CUSIM_UNITS_H
#define CUSIM_UNITS_H

#include "sim.h"

#pragma GCC visibility push(hidden)
bool sim_units_charge(int device, size_t span);
void sim_units_discharge(int device, size_t span);
#pragma GCC visibility pop

#endif
