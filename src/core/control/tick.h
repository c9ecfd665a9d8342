/* SPDX-License-Identifier: MIT */
/*
 * Periodic work of the background thread, if the user asks for it: a report (DUMP_INTERVAL), and a
 * line of use per device (LOG_INTERVAL, else with LOG=info at DUMP_INTERVAL); and, while much lies
 * idle and the program makes no calls, the sweeps that its calls would make (core/reclaim/sweep.h).
 * One thread calls; every driver call passes the gate.
 */
#ifndef CW_CORE_TICK_H
#define CW_CORE_TICK_H

#include <stdint.h>

#include "base/options/options.h"

/* 1: the options want ticks, whether or not anything lies idle. */
int cw_tick_is_asked(const struct cw_options *options);

void cw_tick_init(const struct cw_options *options);
/* Nanoseconds until the next tick; UINT64_MAX: there is none. is_watching: much lies idle. */
uint64_t cw_tick_left(int is_watching);
/* 1: a report is due. */
int cw_tick(void);

#endif
