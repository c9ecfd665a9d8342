/* SPDX-License-Identifier: MIT */
/*
 * Excess: what live blocks of the pool have beyond what the program asked for, because sizes are
 * rounded and larger idle blocks serve.
 *
 * Excess cannot be taken back while its block is live, so a request that would fit without us might
 * fail. Its sum is bounded whenever some is handed out: by one part in CW_EXCESS_SHARE of what the
 * program will leave free, of the device and of its limit, when it needs most. That need is the
 * most that it ever took, in pages of the driver, and what it may take beyond: as much as it has
 * risen lately, CW_EXCESS_LOOKS_AHEAD times. There is none while nobody knows how a program grows,
 * or while it loads what it will keep: then most of its requests make a new peak. Other processes
 * take their part of the device, as of the last sample. Within the bound sizes are rounded and hits
 * may be larger; beyond it both are exact. A thread that takes a block reserves its excess first; a
 * free gives it back (core/account/tracker.c). Pinned memory has no bound. Always: the excess of
 * all live blocks of a device is at most what is counted, and that was within the bound when it
 * last rose.
 *
 * Far below that bound, efficiency bounds it: if less than CW_EXCESS_EFFICIENT of all bytes ever
 * given on a device was asked for, sizes are exact for a while, and no block larger than the
 * request's class serves. That is 95 % and a little. No lock: the sums are core/account/usage.c's.
 */
#ifndef CW_CORE_EXCESS_H
#define CW_CORE_EXCESS_H

#include <stdint.h>

#define CW_EXCESS_SHARE       200
#define CW_EXCESS_LOOKS_AHEAD 100u
#define CW_EXCESS_LOOK_NS     UINT64_C(20000000)
#define CW_EXCESS_LOOK_WISHES 16u
#define CW_EXCESS_LOADING     4u   /* one in so many requests makes a new peak */
#define CW_EXCESS_EFFICIENT   955u /* in thousandths */
/* Larger blocks serve only above this, so that they never use up what rounding needs: sizes that
 * stay exact are rarely asked for again. */
#define CW_EXCESS_EFFICIENT_LARGER 970u
/* On an efficient device a block may serve that is larger by one part in so many of the request, as
 * long as the excess is at most one part in so many of the live bytes. */
#define CW_EXCESS_LARGER_SHARE 2
#define CW_EXCESS_LIVE_SHARE   25

/* Before arming, and again in a forked child. */
void cw_excess_init(void);

/* Reserves up to `excess` for a request of `bytes`, until cw_usage_give_excess. Returns how much.
 * No lock held, not inside a slot. */
uint64_t cw_excess_reserve(uint8_t device, uint64_t bytes, uint64_t excess);

/* The same for a request that a limit refuses otherwise: within one part in CW_EXCESS_SHARE of the
 * limit, because the device has room. */
uint64_t cw_excess_reserve_last(uint8_t device, uint64_t bytes, uint64_t excess);

/* The same for a block of another class than the request's own, of at most so much more: 0 unless
 * the device is efficient with it. */
uint64_t cw_excess_reserve_larger(uint8_t device, uint64_t bytes);

/* The size to ask the driver for: `bytes` rounded, with *out_excess reserved for it, or exactly
 * `bytes`. */
uint64_t cw_excess_round(uint8_t device, uint64_t bytes, uint64_t *out_excess);

#endif
