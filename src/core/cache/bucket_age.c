/* SPDX-License-Identifier: MIT */
/* The blocks of a bucket that nobody needs. See bucket.h. */
#include "core/cache/bucket.h"

#include "core/cache/bucket_inside.h"

/* [i]: how many in 1024 of the blocks that sweep i - 1 left unused survive sweep i: a curve that
 * begins and ends flat (1 - 6x^5 + 15x^4 - 10x^3, as jemalloc's). */
static const uint32_t stays[CW_BUCKET_AGES] = {1007, 932, 828, 707, 563, 385, 159, 0};

static uint32_t doom_locked(const struct cw_bucket *bucket)
{
    uint32_t doomed = 0;

    for (unsigned i = 0; i < CW_BUCKET_AGES; i++) {
        uint32_t older = i + 1 < CW_BUCKET_AGES ? bucket->unused[i + 1] : 0;
        uint32_t count = bucket->unused[i] - older;

        doomed += count - (uint32_t)(((uint64_t)count * stays[i] + 1023) / 1024);
    }
    return doomed;
}

static void age_locked(struct cw_bucket *bucket)
{
    for (unsigned i = CW_BUCKET_AGES - 1; i > 0; i--)
        bucket->unused[i] =
            bucket->unused[i - 1] < bucket->low ? bucket->unused[i - 1] : bucket->low;
    bucket->unused[0] = bucket->low;
}

uint32_t cw_bucket_sweep(struct cw_pool *pool, unsigned size_class, unsigned times)
{
    struct cw_bucket *bucket = cw_bucket_enter(pool, size_class);
    uint32_t doomed;

    if (bucket == NULL)
        return 0;
    for (unsigned i = 0; i < times; i++) {
        age_locked(bucket);
        bucket->low = cw_bucket_blocks(bucket);
    }
    doomed = doom_locked(bucket);
    atomic_store_explicit(&bucket->doomed, doomed, memory_order_relaxed);
    cw_bucket_leave(bucket);
    return doomed;
}

void cw_bucket_not_needed(struct cw_pool *pool, uint64_t held)
{
    struct cw_bucket *bucket = cw_bucket_enter(pool, cw_size_class_down(held));

    if (bucket == NULL)
        return;
    if (bucket->low < cw_bucket_blocks(bucket))
        bucket->low++;
    cw_bucket_leave(bucket);
}

/* At most so many blocks are skipped to get at the oldest ones; beyond that age makes no
 * difference. */
#define PASSED 256u

static uint32_t take_oldest_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                                   uint32_t max)
{
    uint32_t list = 0, count = cw_bucket_blocks(bucket) < max ? cw_bucket_blocks(bucket) : max,
             before = 0;
    uint32_t passed = cw_bucket_blocks(bucket) - count, block;

    for (uint32_t i = 0; passed <= PASSED && i < passed; i++)
        before = before != 0 ? cw_tracker_next(before) : cw_bucket_head(bucket);
    for (; count > 0; count--) {
        block = before != 0 ? cw_tracker_next(before) : cw_bucket_head(bucket);
        cw_bucket_unlink_locked(pool, bucket, before, block);
        cw_bucket_set_next(block, list);
        list = block;
    }
    return list;
}

uint32_t cw_bucket_take_oldest(struct cw_pool *pool, unsigned size_class, uint32_t max)
{
    struct cw_bucket *bucket =
        cw_bucket_has_blocks(pool, size_class) ? cw_bucket_enter(pool, size_class) : NULL;
    uint32_t list;

    if (bucket == NULL)
        return 0;
    list = take_oldest_locked(pool, bucket, max < CW_BUCKET_GO ? max : CW_BUCKET_GO);
    cw_bucket_leave(bucket);
    return list;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A block that has been needed since the sweep stays after all. */
static uint32_t take_doomed_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                                   uint32_t max)
{
    uint32_t left = atomic_load_explicit(&bucket->doomed, memory_order_relaxed), count = 0, list;

    max = least(max, left);
    list = take_oldest_locked(pool, bucket, least(least(max, bucket->low), CW_BUCKET_GO));
    for (uint32_t block = list; block != 0; block = cw_tracker_next(block))
        count++;
    atomic_store_explicit(&bucket->doomed, count == max ? left - count : 0, memory_order_relaxed);
    return list;
}

uint32_t cw_bucket_take_doomed(struct cw_pool *pool, unsigned size_class, uint32_t max)
{
    struct cw_bucket *bucket = cw_bucket_of(pool, size_class);
    uint32_t list;

    if (bucket == NULL || atomic_load_explicit(&bucket->doomed, memory_order_relaxed) == 0)
        return 0;
    bucket = cw_bucket_enter(pool, size_class);
    if (bucket == NULL)
        return 0;
    list = take_doomed_locked(pool, bucket, max);
    cw_bucket_leave(bucket);
    return list;
}
