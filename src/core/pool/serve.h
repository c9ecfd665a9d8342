/* SPDX-License-Identifier: MIT */
/*
 * The usual hit: a block of the thread's own cache, in one visit to its slot. For core/pool/pool.c
 * alone, which makes a function with budgets and one without of it.
 */
#ifndef CW_CORE_POOL_SERVE_H
#define CW_CORE_POOL_SERVE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/account/budget.h"
#include "core/account/site.h"
#include "core/account/trace.h"
#include "core/account/tracker.h"
#include "core/account/usage.h"
#include "core/cache/bucket.h"
#include "core/cache/retention.h"
#include "core/cache/thread_cache.h"
#include "core/pending/ready.h"
#include "core/pool/search.h"
#include "core/process/deadline.h"
#include "core/process/slot.h"

/* A block that was taken is idle again. */
static CW_COLD void cw_pool_put_back(struct cw_pool *pool, uint32_t block, uint64_t bytes)
{
    cw_bucket_put_back(pool, block, bytes);
    cw_ready_put(pool, block, 0);
}

/* The excess that the thread may use without touching shared counters. */
static CW_INLINE struct cw_size_fit own_fit(const struct cw_slot *slot, const struct cw_pool *pool,
                                            uint64_t bytes)
{
    return (struct cw_size_fit){.bytes = bytes,
                                .excess = CW_LIKELY(pool->class < CW_POOL_HOST)
                                              ? cw_usage_spare_excess(slot, pool->device)
                                              : cw_size_tolerance(bytes)};
}

/* The usual hit, in one visit to the slot: a block of the thread's cache, accounted for with the
 * thread's slack. The stack is walked first, because nothing slow may happen inside the slot. 0:
 * the caller takes the long way. */
static CW_INLINE uint64_t cw_pool_serve_own(struct cw_pool *pool, uint64_t bytes, uint64_t now,
                                            uint32_t api, int has_budget)
{
    struct cw_budget_taken taken = {.budget = 0};
    uint32_t site = cw_site_here(api, pool->kind, pool->device), block;
    struct cw_slot *slot = CW_LIKELY(site != 0) ? cw_slot_enter() : NULL;
    struct cw_live_block *record;
    uint64_t key, excess;
    int is_valid, is_counted;

    if (CW_UNLIKELY(slot == NULL))
        return 0;
    block = cw_thread_cache_take_inside(slot, pool, own_fit(slot, pool, bytes), now, &excess);
    record = cw_tracker_at(block);
    is_valid =
        block != 0 && atomic_load_explicit(&record->state, memory_order_acquire) == CW_BLOCK_IDLE;
    if (has_budget && is_valid && CW_UNLIKELY(!cw_budget_take_inside(block, bytes, &taken))) {
        cw_retention_reclaim_begins(); /* a request without memory waits until it lies somewhere */
        cw_slot_leave(slot);
        cw_pool_put_back(pool, block, bytes);
        cw_retention_reclaim_ends(0);
        return 0;
    }
    if (CW_LIKELY(is_valid)) {
        cw_tracker_renew(record, block, site, bytes, now);
        if (CW_UNLIKELY(excess != 0) && pool->class < CW_POOL_HOST)
            cw_usage_use_excess(slot, excess);
    }
    is_counted = is_valid && cw_usage_use_slack(slot, pool->device, bytes);
    cw_slot_leave(slot);
    if (CW_UNLIKELY(!is_counted)) {
        if (block != 0 && !is_valid)
            cw_search_drop(pool, block, bytes);
        if (!is_valid)
            return 0;
        cw_usage_add(pool->device, bytes, 0, now);
    }
    key = atomic_load_explicit(&record->key, memory_order_relaxed);
    cw_trace_taken(block, key, bytes, pool->device);
    cw_deadline_look(now);
    cw_thread.served = block;
    cw_thread.served_key = key;
    if (has_budget && CW_UNLIKELY(taken.is_news))
        cw_budget_look(block, &taken);
    return key;
}

#endif
