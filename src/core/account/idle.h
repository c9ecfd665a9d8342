/* SPDX-License-Identifier: MIT */
/*
 * Idle bytes: what the program has freed and the pool keeps, ready or not, or is just releasing.
 *
 * They are the sum of the buckets' records, the private ones (core/cache/bucket.h), and of
 * blocks on their way to the driver, which are counted here. No lock: atomics.
 */
#ifndef CW_CORE_IDLE_H
#define CW_CORE_IDLE_H

#include <stdint.h>

#include "live/arena.h"

/* Before arming, and again in a forked child: nobody else is at work. */
void cw_idle_init(struct cw_arena *arena);

/* On the device, or in pinned memory (CW_DEVICE_HOST). Exact, and some microseconds' work. */
uint64_t cw_idle_bytes(uint8_t device);

/* What the driver could have more if it got all of that: it may keep a page for a block, and others
 * in it. */
uint64_t cw_idle_most(uint8_t device);

/* Around the driver's free of an idle block: departs before its record stops being idle, arrives
 * when the driver has answered. */
void cw_idle_departs(uint8_t device, uint64_t bytes);
void cw_idle_arrives(uint8_t device, uint64_t bytes);

/* For a caller that asks the driver for free bytes and this module for idle bytes: 1 if no block
 * has been on its way since cw_idle_motion, and so counted twice or not at all. */
uint64_t cw_idle_motion(void);
int cw_idle_is_settled(uint64_t motion);

#endif
