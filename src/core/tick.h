/* SPDX-License-Identifier: MIT */
/*
 * What is done at intervals, by a thread of our own, and only where the user asks for it: a report
 * (DUMP_INTERVAL; with LOG=info a line of use per device, too), and trimming while the program
 * sleeps (POOL_IDLE set in the environment). One thread calls; every driver call passes the gate.
 */
#ifndef CW_CORE_TICK_H
#define CW_CORE_TICK_H

#include <stdint.h>

#include "base/options.h"

/* Nanoseconds between two ticks; 0: nothing asks for any. */
uint64_t cw_tick_interval(const struct cw_options *options);

void cw_tick_init(const struct cw_options *options);
/* 1: a report is due. */
int cw_tick(void);

#endif
