/* SPDX-License-Identifier: MIT */
/*
 * Demand: how much memory the program has needed lately, and so how much the process may hold.
 *
 * Owns a window of CW_DEMAND_SLOTS slots over POOL_IDLE, in which the most that was live on each
 * device is kept; each sweep over what lies idle (core/reclaim/sweep.h) closes one. What the pool
 * may hold follows from that window (cw_demand_cap). No lock: the window is atomics.
 */
#ifndef CW_CORE_DEMAND_H
#define CW_CORE_DEMAND_H

#include <stdint.h>

#include "base/options/options.h"

#define CW_DEMAND_SLOTS 10u /* of the window, and sweeps in POOL_IDLE */

/* Idle memory on a device, or of the host, below which no thread is started for it: a context costs
 * ten times as much. */
#define CW_DEMAND_LITTLE ((uint64_t)32 << 20)

/* Before arming, and again in a forked child. */
void cw_demand_init(const struct cw_options *options);
void cw_demand_reset(void);

/* Adds to the window what is live now plus so many bytes: at moments when idle memory grows, or
 * more is about to be taken. Any thread. */
void cw_demand_note(uint8_t device, uint64_t more);

/* The most that was live on the device within the window. */
uint64_t cw_demand_live(uint8_t device);

/* What the process may hold on the device, idle memory included: while the device has room, all
 * that leaves the level LOW (idle memory harms nobody there, and a miss costs the driver's time);
 * from MEDIUM on, what was live within the window and a share of it; and at most what its bounds
 * allow (core/limits/bound.h). UINT64_MAX: POOL_MAX or POOL_BUCKET_MAX alone says what is kept. */
uint64_t cw_demand_cap(uint8_t device);

/* So many bytes were taken ahead of any request: they may be held, whatever is live. */
void cw_demand_prewarmed(uint8_t device, uint64_t bytes);
uint64_t cw_demand_ahead(uint8_t device); /* all of them */

/* Closes the open slot, opens the next. One thread at a time; no lock held, not inside a slot. */
void cw_demand_turn(void);

#endif
