/* SPDX-License-Identifier: MIT */
/*
 * Variables of modules: device memory that comes with a module, without a call of its own.
 *
 * The driver tells a variable's size only to a program that asks for its address. What was asked
 * for is added to the bytes of the module's block, each address once, and goes with that block.
 * Guarded by one lock (CW_RANK_VARIABLE), never held across the driver.
 */
#ifndef CW_CORE_VARIABLE_H
#define CW_CORE_VARIABLE_H

#include <stdint.h>

void cw_variable_reset(void);

/* The module, or library, has this variable. */
void cw_variable_seen(uint64_t module, uint64_t address, uint64_t bytes);

#endif
