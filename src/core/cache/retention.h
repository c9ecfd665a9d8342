/* SPDX-License-Identifier: MIT */
/*
 * Retention: how much may lie idle, and who keeps it.
 *
 * Owns the bounds of idle memory (POOL_MAX, POOL_BUCKET_MAX, the least that stays free), the grants
 * of threads (core/cache/thread_cache.h), and the count of threads that have idle blocks in hand. A
 * freed block is kept if there is room for it; core/pending/ready.h decides where, and
 * core/pending/release.h releases it. No lock.
 */
#ifndef CW_CORE_RETENTION_H
#define CW_CORE_RETENTION_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "core/limits/admission.h"
#include "core/cache/bucket.h"
#include "core/limits/pressure.h"

void cw_retention_init(const struct cw_options *options);

/* POOL_MAX of the device, or of pinned memory (CW_DEVICE_HOST), while the process runs; for what is
 * kept beyond it see cw_reclaim_excess. */
void cw_retention_set_most(uint8_t device, uint64_t bytes);
/* Bytes that are kept beyond POOL_MAX; and 1 if more than that lies idle, also in the hands of
 * threads, where nothing counts as kept: some microseconds' work. */
uint64_t cw_retention_excess(uint8_t device);
int cw_retention_is_exceeded(uint8_t device);
/* Bytes to give back so that some room is left below POOL_MAX, which has kept a block out: the
 * blocks that are worth least go (CW_RECLAIM_CAP). */
uint64_t cw_retention_surplus(uint8_t device);

/* 1 if one more block of this size may lie idle. The second: a bucket would have more than
 * POOL_BUCKET_MAX with it. */
int cw_retention_has_room(const struct cw_pool *pool, uint64_t held);
int cw_retention_is_too_many(const struct cw_pool *pool, uint64_t held);

/* So many bytes more may be kept by a thread: 1, and they count as idle from now on; or 0. May be
 * called inside a slot. held: of the block that they are for. */
int cw_retention_grant(const struct cw_pool *pool, uint64_t bytes, uint64_t held);
void cw_retention_ungrant(uint8_t device, uint64_t bytes);

/* Requests that have found no memory on the device (or of the host) and are looking for some. */
extern CW_HIDDEN _Atomic uint32_t cw_retention_wanted[CW_DEVICES];

static inline int cw_retention_is_wanted(uint8_t device)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_retention_wanted[device], memory_order_relaxed) !=
                       0);
}

/* From now on frees on the device go to the driver; and no longer. */
void cw_retention_want(uint8_t device);
void cw_retention_unwant(uint8_t device);

/* Idle memory may have grown: checks whether some of it is due for release, or needs the background
 * thread. */
void cw_retention_check(uint8_t device);

/* A lot lay idle, and the watcher (CW_DUE_WATCH) was called for. 1: that is over; the next thread
 * that finds much idle calls for it again. */
int cw_retention_end_watch(void);

/* Around the time in which the calling thread has idle blocks in its hands: from before they leave
 * a cache or bucket until other threads can find them, or the driver has them. The second returns
 * `bytes`, how many went to the driver. A request that finds no memory meanwhile waits
 * (cw_reclaim_wait_for_others). */
void cw_retention_reclaim_begins(void);
uint64_t cw_retention_reclaim_ends(uint64_t bytes);
extern CW_HIDDEN _Atomic uint32_t cw_retention_reclaims_running;
extern CW_HIDDEN _Atomic uint32_t cw_retention_reclaims_done; /* that gave something back */

/* Idle bytes with what threads were granted and do not use; cheap. */
uint64_t cw_retention_counted(uint8_t device);

#endif
