/* SPDX-License-Identifier: MIT */
/* The places where an idle block is looked for, in turn. See search.h. */
#include "core/pool/search.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/limits/excess.h"
#include "core/cache/retention.h"
#include "core/pending/pending.h"
#include "core/process/thread.h"
#include "core/cache/thread_cache.h"
#include "core/account/tracker.h"
#include "core/pending/ready.h"

/* How many batches the driver is asked about if nothing is ready. */
#define QUERIES 2u
/* The largest block of which a thread takes along a few more from the bucket. */
#define ALONG       4u
#define ALONG_BYTES ((uint64_t)256 << 10)

/* A few shared blocks of the request's own class become the thread's: how many. */
static uint32_t take_along(struct cw_pool *pool, struct cw_size_fit fit)
{
    unsigned size_class = cw_size_class_up(fit.bytes);
    uint32_t count, list;

    if (fit.bytes > ALONG_BYTES || cw_thread_slot() == 0 ||
        !cw_bucket_has_blocks(pool, size_class) ||
        cw_size_excess(cw_size_class_bytes(size_class), fit.bytes) > fit.excess)
        return 0;
    cw_retention_reclaim_begins();
    list = cw_bucket_take_some(pool, size_class, ALONG, &count);
    cw_ready_share(pool->pool_context, cw_thread_cache_refill(pool, list));
    cw_retention_reclaim_ends(0);
    return count;
}

/* From the thread's own blocks, then from the shared ones. */
static uint32_t take_ready(struct cw_pool *pool, struct cw_size_fit fit)
{
    uint32_t block = cw_thread_cache_take(pool, fit);

    if (block == 0 && take_along(pool, fit) != 0)
        block = cw_thread_cache_take(pool, fit);
    return block != 0 ? block : cw_bucket_take(pool, fit);
}

/* Blocks of this size in other threads' caches. */
static uint32_t take_from_others(struct cw_pool *pool, struct cw_size_fit fit)
{
    unsigned up = cw_size_class_up(fit.bytes), down = cw_size_class_of(fit.bytes);
    uint32_t list;

    cw_retention_reclaim_begins();
    list = cw_thread_cache_seize(pool, up);
    if (list == 0 && down != up)
        list = cw_thread_cache_seize(pool, down);
    if (list != 0)
        cw_ready_share(pool->pool_context, list);
    cw_retention_reclaim_ends(0);
    return list != 0 ? cw_bucket_take(pool, fit) : 0;
}

/* The class in which blocks for this request come and go. */
static unsigned class_of(struct cw_size_fit fit)
{
    unsigned up = cw_size_class_up(fit.bytes);

    return cw_size_excess(cw_size_class_bytes(up), fit.bytes) <= fit.excess
               ? up
               : cw_size_class_of(fit.bytes);
}

/* Nothing is ready, but something is pending. */
static CW_NOINLINE uint32_t take_pending(struct cw_pool *pool, struct cw_size_fit fit)
{
    unsigned size_class = class_of(fit);
    uint32_t block = 0;

    /* Blocks made ready by a wait of the program cost no query. */
    if (cw_pending_harvest(pool->pool_context, 0, CW_SEARCH_HARVEST, 0) != 0)
        block = take_ready(pool, fit);
    if (block == 0)
        block = take_from_others(pool, fit);
    if (block == 0 && cw_pending_harvest(pool->pool_context, QUERIES, CW_SEARCH_HARVEST, 0) != 0)
        block = take_ready(pool, fit);
    if (block == 0 && !cw_pending_may_rotate(pool, size_class)) {
        cw_pending_close(0);
        if (cw_pending_harvest(pool->pool_context, QUERIES, CW_SEARCH_HARVEST, 0) != 0)
            block = take_ready(pool, fit);
    }
    while (block == 0 && (cw_pending_is_much(pool, size_class) || cw_pending_is_backlog(pool)) &&
           cw_pending_await(pool->pool_context) != 0)
        block = take_ready(pool, fit);
    return block;
}

static uint32_t take(struct cw_pool *pool, struct cw_size_fit fit)
{
    uint32_t block = take_ready(pool, fit);

    if (CW_LIKELY(block != 0))
        return block;
    return cw_batch_is_any() ? take_pending(pool, fit) : take_from_others(pool, fit);
}

void cw_search_drop(struct cw_pool *pool, uint32_t block, uint64_t bytes)
{
    cw_bucket_put_back(pool, block, bytes);
    cw_bucket_dropped(pool, block, 0);
    cw_tracker_finish_idle(block);
}

static int is_valid(struct cw_pool *pool, uint32_t block, uint64_t bytes)
{
    if (CW_LIKELY(atomic_load_explicit(&cw_tracker_at(block)->state, memory_order_acquire) ==
                  CW_BLOCK_IDLE))
        return 1;
    cw_search_drop(pool, block, bytes);
    return 0;
}

/* A block that fits, found by `find`, and with it the excess that it has; the rest of what was
 * reserved is given back. */
static uint32_t take_within(struct cw_pool *pool, struct cw_size_fit fit,
                            uint32_t (*find)(struct cw_pool *pool, struct cw_size_fit fit))
{
    uint64_t used = 0;
    uint32_t block;

    do
        block = find(pool, fit);
    while (CW_UNLIKELY(block != 0 && !is_valid(pool, block, fit.bytes)));
    if (block != 0)
        used = cw_size_excess(cw_tracker_held(block), fit.bytes);
    cw_usage_give_excess(pool->device, fit.excess - used);
    return block;
}

static uint32_t take_larger(struct cw_pool *pool, struct cw_size_fit fit)
{
    uint32_t block = cw_thread_cache_take(pool, fit);

    return block != 0 ? block : cw_bucket_take(pool, fit);
}

uint32_t cw_search_take(struct cw_pool *pool, uint64_t bytes)
{
    struct cw_size_fit fit = {
        .bytes = bytes, .excess = cw_excess_reserve(pool->device, bytes, cw_size_tolerance(bytes))};
    uint32_t block = take_within(pool, fit, take);

    if (block != 0)
        return block;
    fit.excess = cw_excess_reserve_larger(pool->device, bytes);
    return fit.excess != 0 ? take_within(pool, fit, take_larger) : 0;
}

uint32_t cw_search_take_larger(struct cw_pool *pool, uint64_t bytes, uint64_t most)
{
    struct cw_size_fit fit = {.bytes = bytes,
                              .excess = cw_excess_reserve_last(pool->device, bytes, most - bytes)};

    return take_within(pool, fit, take_larger);
}
