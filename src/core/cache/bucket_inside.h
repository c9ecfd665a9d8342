/* SPDX-License-Identifier: MIT */
/*
 * The inside of a bucket, for the files that keep it (bucket.c, bucket_age.c): its lock, and its
 * list of blocks. What ends in _locked needs the lock; the rest is a hint without.
 */
#ifndef CW_CORE_BUCKET_INSIDE_H
#define CW_CORE_BUCKET_INSIDE_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "core/account/tracker.h"
#include "core/cache/bucket.h"

/* How many blocks leave a bucket under its lock in one go: some microseconds. */
#define CW_BUCKET_GO 256u

/* Under the bucket's lock; NULL: the pool has no buckets any more. */
static inline struct cw_bucket *cw_bucket_enter(const struct cw_pool *pool, unsigned size_class)
{
    struct cw_bucket *bucket = cw_bucket_of(pool, size_class);

    if (CW_UNLIKELY(bucket == NULL))
        return NULL;
    cw_lock_acquire(&bucket->lock);
    if (CW_LIKELY(cw_bucket_of(pool, size_class) == bucket))
        return bucket;
    cw_lock_release(&bucket->lock);
    return NULL;
}

static inline void cw_bucket_leave(struct cw_bucket *bucket)
{
    cw_lock_release(&bucket->lock);
}

static inline void cw_bucket_set_next(uint32_t block, uint32_t next)
{
    atomic_store_explicit(&cw_tracker_at(block)->link, next, memory_order_relaxed);
}

static inline uint32_t cw_bucket_head(const struct cw_bucket *bucket)
{
    return atomic_load_explicit(&bucket->head, memory_order_relaxed);
}

static inline uint32_t cw_bucket_blocks(const struct cw_bucket *bucket)
{
    return atomic_load_explicit(&bucket->count, memory_order_relaxed);
}

static inline uint64_t cw_bucket_bytes(const struct cw_bucket *bucket)
{
    return atomic_load_explicit(&bucket->bytes, memory_order_relaxed);
}

static inline void cw_bucket_set_locked(struct cw_bucket *bucket, uint32_t head, uint32_t count,
                                        uint64_t bytes)
{
    atomic_store_explicit(&bucket->head, head, memory_order_relaxed);
    atomic_store_explicit(&bucket->count, count, memory_order_relaxed);
    atomic_store_explicit(&bucket->bytes, bytes, memory_order_relaxed);
}

/* Takes the block after `before` (0: the first) out of the list. */
static inline void cw_bucket_unlink_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                                           uint32_t before, uint32_t block)
{
    atomic_fetch_sub_explicit(&cw_bucket_idle_bytes[pool->device], cw_tracker_held(block),
                              memory_order_relaxed);
    if (before != 0)
        cw_bucket_set_next(before, cw_tracker_next(block));
    cw_bucket_set_locked(bucket, before == 0 ? cw_tracker_next(block) : cw_bucket_head(bucket),
                         cw_bucket_blocks(bucket) - 1,
                         cw_bucket_bytes(bucket) - cw_tracker_held(block));
    if (cw_bucket_blocks(bucket) < bucket->low)
        bucket->low = cw_bucket_blocks(bucket);
}

static inline uint32_t cw_bucket_first_locked(const struct cw_pool *pool, struct cw_bucket *bucket)
{
    uint32_t block = cw_bucket_head(bucket);

    if (block != 0)
        cw_bucket_unlink_locked(pool, bucket, 0, block);
    return block;
}

/* Prepends at most `max` less *out_count blocks to the list. */
static inline uint32_t cw_bucket_take_some_locked(const struct cw_pool *pool,
                                                  struct cw_bucket *bucket, uint32_t max,
                                                  uint32_t list, uint32_t *out_count)
{
    while (*out_count < max && cw_bucket_head(bucket) != 0) {
        uint32_t block = cw_bucket_first_locked(pool, bucket);

        cw_bucket_set_next(block, list);
        list = block;
        ++*out_count;
    }
    return list;
}

#endif
