/* SPDX-License-Identifier: MIT */
/*
 * Spare buckets: those of pools whose contexts have ended, for the next pool of the same device and
 * kind. So a program that makes and ends contexts for days has as many as it ever had at one time,
 * and as many records of them in the live layout.
 *
 * Guarded by a lock of CW_RANK_BUCKET, which is never held together with a bucket's. Always: spare
 * buckets are empty, and as new but for their records. They are never freed, because a thread that
 * comes late (bucket.h) still takes their locks.
 */
#ifndef CW_CORE_SPARE_BUCKETS_H
#define CW_CORE_SPARE_BUCKETS_H

#include <stdint.h>

#include "core/cache/bucket.h"

/* In a forked child: there are none. */
void cw_spare_buckets_reset(void);

/* Spare ones, or new ones; NULL without memory. No lock held. */
struct cw_buckets *cw_spare_buckets_take(uint8_t device, uint8_t kind);
/* No lock held. */
void cw_spare_buckets_give(struct cw_buckets *buckets);

#endif
