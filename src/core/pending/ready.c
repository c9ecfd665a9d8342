/* SPDX-License-Identifier: MIT */
/* Where ready blocks go. See ready.h. */
#include "core/pending/ready.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/account/tracker.h"
#include "core/cache/retention.h"
#include "core/cache/thread_cache.h"
#include "core/limits/reclaim_due.h"
#include "core/pending/release.h"
#include "core/pending/waiting.h"

static struct cw_pool *pool_of(struct cw_pool_context *pool_context, uint32_t block)
{
    return cw_pool_context_pool(pool_context, cw_tracker_at(block)->class);
}

void cw_ready_put(struct cw_pool *pool, uint32_t block, int kept)
{
    if (!cw_bucket_put(pool, block, kept)) {
        atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
        cw_waiting_defer(pool->pool_context, block);
    }
}

/* With a bound on the number of blocks, one that has left a thread may be one too many; inside an
 * allocation it must not be released. */
static void put_counted(struct cw_pool *pool, uint32_t block)
{
    if (cw_retention_is_too_many(pool, cw_tracker_held(block)))
        cw_reclaim_due_set(pool->device, CW_RECLAIM_COUNT);
    cw_ready_put(pool, block, 0);
}

void cw_ready_share(struct cw_pool_context *pool_context, uint32_t list)
{
    for (uint32_t next; list != 0; list = next) {
        next = cw_tracker_next(list);
        put_counted(pool_of(pool_context, list), list);
    }
}

static void keep_shared(struct cw_pool *pool, uint32_t block)
{
    if (CW_LIKELY(cw_retention_has_room(pool, cw_tracker_held(block))))
        cw_ready_put(pool, block, 0);
    else
        cw_release_one(pool, block, CW_RELEASE_FULL);
}

void cw_ready_keep(struct cw_pool *pool, uint32_t block)
{
    uint32_t spill;

    if (cw_retention_is_wanted(pool->device)) {
        cw_release_one(pool, block, CW_RELEASE_OOM);
        return;
    }
    if (!cw_thread_cache_put(pool, block, &spill))
        keep_shared(pool, block);
    /* Also if it did not take the block: a bin may have spilled before its context began to close.
     */
    cw_ready_share(pool->pool_context, spill);
}

void cw_ready_hand_over(struct cw_pool_context *pool_context, uint32_t list)
{
    for (uint32_t next; list != 0; list = next) {
        struct cw_pool *pool = pool_of(pool_context, list);
        uint32_t spill;

        next = cw_tracker_next(list);
        if (!cw_thread_cache_put(pool, list, &spill))
            put_counted(pool, list);
        cw_ready_share(pool_context, spill);
    }
}
