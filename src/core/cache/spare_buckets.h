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

#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "core/account/size_class.h"
#include "live/layout.h"

#define CW_BUCKET_AGES 8u

struct cw_bucket {
    struct cw_lock lock;
    _Atomic uint32_t head; /* written under the lock; a hint without it */
    _Atomic uint32_t count;
    _Atomic uint64_t bytes;
    _Atomic uint32_t stamp;          /* tick of the last request for this size */
    _Atomic uint32_t pending;        /* blocks of it in lists of batches (core/pending/waiting.c) */
    uint32_t low;                    /* the least count since the last sweep */
    uint32_t unused[CW_BUCKET_AGES]; /* [i]: blocks that nobody needed in the last i + 1 sweeps */
    _Atomic uint32_t doomed;         /* of them to go, at the last sweep */
    struct cw_live_bucket *record;   /* of owner 0; NULL: not made yet, or no memory */
};

/* All of a pool, and of one pool after the other, all of the same device and kind, which the
 * records name. */
struct cw_buckets {
    struct cw_buckets *next; /* while they are no pool's */
    uint8_t device, kind;
    struct cw_bucket bucket[CW_SIZE_CLASSES];
};

/* In a forked child: there are none. */
void cw_spare_buckets_reset(void);

/* Spare ones, or new ones; NULL without memory. No lock held. */
struct cw_buckets *cw_spare_buckets_take(uint8_t device, uint8_t kind);
/* No lock held. */
void cw_spare_buckets_give(struct cw_buckets *buckets);

#endif
