/* SPDX-License-Identifier: MIT */
/*
 * Idle bytes: what the program has freed and the pool keeps, ready or not, or is just giving back.
 *
 * The sum is over the records of buckets in the live layout, which their owners write, and what is
 * on its way to the driver, which is counted here. No lock: atomics.
 */
#ifndef CW_CORE_IDLE_H
#define CW_CORE_IDLE_H

#include <stdint.h>

#include "live/arena.h"

/* Before arming, and again in a forked child: nobody else is at work. */
void cw_idle_init(struct cw_arena *arena);

/* On the device, or in pinned memory (CW_DEVICE_HOST). Exact, and some microseconds' work. */
uint64_t cw_idle_bytes(uint8_t device);

/* Around the driver's free of an idle block: departs before its record says that it is idle no
 * more, arrives when the driver has answered. */
void cw_idle_departs(uint8_t device, uint64_t bytes);
void cw_idle_arrives(uint8_t device, uint64_t bytes);

/* Around a question to the driver for what is free and one here for what is idle: 1 if since
 * cw_idle_motion no block was on its way from here to there, and so counted twice or not at all. */
uint64_t cw_idle_motion(void);
int cw_idle_is_settled(uint64_t motion);

#endif
