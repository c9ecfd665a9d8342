/* SPDX-License-Identifier: MIT */
/*
 * Sweeps: which idle blocks the program has not needed for a while.
 *
 * POOL_IDLE is divided into CW_DEMAND_SLOTS sweeps. Between two of them each bucket remembers its
 * lowest number of blocks: nobody needed those. A sweep ages them and dooms some, along a smooth
 * curve that reaches all of them after POOL_IDLE; core/reclaim/reclaim_turn.c releases the doomed
 * ones. A sweep also takes from threads what they did not need (core/cache/thread_cache.h), and
 * closes a slot of the window of demand (core/limits/demand.h).
 *
 * Sweeps are made inside the program's calls, by the thread that finds the time come
 * (core/process/deadline.h), or by the background thread while the program makes none. No call of
 * the driver. One sweep at a time.
 */
#ifndef CW_CORE_SWEEP_H
#define CW_CORE_SWEEP_H

#include <stdint.h>

#include "base/options/options.h"

/* Before arming, and again in a forked child. */
void cw_sweep_init(const struct cw_options *options);
void cw_sweep_reset(void);

/* Makes the sweep that is due. No lock held, not inside a slot. */
void cw_sweep_serve(void);

/* 1 if a sweep is so late that the program seems to make no calls. */
int cw_sweep_is_overdue(void);
/* Nanoseconds between two sweeps. */
uint64_t cw_sweep_interval(void);

#endif
