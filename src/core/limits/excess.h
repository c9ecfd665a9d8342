/* SPDX-License-Identifier: MIT */
/*
 * Excess: what live blocks of the pool have beyond what the program asked for, because sizes are
 * rounded and larger idle blocks serve.
 *
 * It cannot be taken back while the blocks live, so a request might fail for want of it that would
 * fit without us. So it is bounded in total: one part in CW_EXCESS_SHARE of the device, or of its
 * limit. Within that, sizes are rounded and hits may be larger; beyond it both are exact. Whoever
 * takes a block reserves its excess first; a free gives it back (core/account/tracker.c). Pinned
 * memory has no bound. Always: the excess of all live blocks of a device is at most what is
 * counted, and that at most the bound, unless the limit was lowered.
 *
 * On a device on which the bound is far, efficiency bounds it: of all that was ever given on a
 * device at least CW_EXCESS_EFFICIENT was asked for, or sizes are exact for a while, and no blocks
 * larger than a request's own class serve. That is 95 % and a little. No lock: the sums are
 * core/account/usage.c's.
 */
#ifndef CW_CORE_EXCESS_H
#define CW_CORE_EXCESS_H

#include <stdint.h>

#define CW_EXCESS_SHARE     200
#define CW_EXCESS_EFFICIENT 955u /* in thousandths */
/* Where it is efficient a block serves that is larger by one part in so many of the request; but
 * what is live has at most one part in so many of excess then. */
#define CW_EXCESS_LARGER_SHARE 2
#define CW_EXCESS_LIVE_SHARE   25

/* Before arming, and again in a forked child. */
void cw_excess_init(void);

/* Up to `bytes` of it: how many there are to be had, which count from now on, until
 * cw_usage_give_excess. No lock held, not inside a slot. */
uint64_t cw_excess_reserve(uint8_t device, uint64_t bytes);

/* The same for a block of another class than the request's own, of at most so much more: 0 unless
 * the device is efficient with it. */
uint64_t cw_excess_reserve_larger(uint8_t device, uint64_t bytes);

/* What the driver is asked for: `bytes` rounded, with *out_excess reserved for it, or exactly. */
uint64_t cw_excess_round(uint8_t device, uint64_t bytes, uint64_t *out_excess);

#endif
