/* SPDX-License-Identifier: MIT */
/* Idle blocks back to the driver. See release.h. */
#include "core/pending/release.h"

#include <stdatomic.h>

#include "core/account/freed.h"
#include "core/account/idle.h"
#include "core/account/tracker.h"
#include "core/cache/retention.h"
#include "core/device/device.h"
#include "core/limits/pressure.h"
#include "core/pending/waiting.h"
#include "core/process/session.h"

/* One block; inside the gate. */
static void release_block(struct cw_pool_context *pool_context, struct cw_pool *pool,
                          uint32_t block)
{
    const struct cw_live_block *record = cw_tracker_at(block);
    uint64_t key = atomic_load_explicit(&record->key, memory_order_relaxed);
    uint64_t held = cw_tracker_held(block);
    int is_there = atomic_load_explicit(&record->state, memory_order_acquire) == CW_BLOCK_IDLE &&
                   cw_tracker_take_idle(block);

    cw_idle_departs(pool->device, held);
    cw_bucket_dropped(pool, block, is_there);
    if (is_there) {
        cw_freed_remember(key, atomic_load_explicit(&record->maps, memory_order_relaxed),
                          atomic_load_explicit(&record->site, memory_order_relaxed));
        cw_session.ops->block_free(cw_context_name(pool_context->record), pool->kind, key);
    }
    cw_idle_arrives(pool->device, held);
    cw_tracker_finish_idle(block);
}

static void count_release(const struct cw_pool *pool, uint64_t bytes, enum cw_release why)
{
    struct cw_live_released *released = &cw_device_at(pool->device)->pool.released[why];

    atomic_fetch_add_explicit(&released->blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&released->bytes, bytes, memory_order_relaxed);
    if (why == CW_RELEASE_PRESSURE)
        cw_pressure_relieved(pool->device, bytes);
}

/* A request waits for the memory, or other contexts may still use what its context would take along
 * when it ends. Otherwise there is time. */
static int is_owed(enum cw_release why)
{
    return why == CW_RELEASE_OOM || why == CW_RELEASE_CONTEXT;
}

/* Of a context that is closing the block waits for the outcome; of a dead one it is forgotten. */
static void wait_again(struct cw_pool_context *pool_context, uint32_t block)
{
    atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
    cw_waiting_add(pool_context, block);
}

/* *out_left: how many blocks wait again. */
static uint64_t release_each(struct cw_pool_context *pool_context, uint32_t list,
                             enum cw_release why, uint32_t *out_left)
{
    uint64_t sum = 0, bytes;

    *out_left = 0;
    while (list != 0) {
        struct cw_pool *pool = cw_pool_context_pool(pool_context, cw_tracker_at(list)->class);
        uint32_t next = cw_tracker_next(list);
        unsigned passed = cw_pool_context_enter_free(pool_context, is_owed(why));

        if (passed != 0) {
            bytes = cw_tracker_held(list);
            release_block(pool_context, pool, list);
            cw_pool_context_leave_free(pool_context, passed);
            sum += bytes;
            count_release(pool, bytes, why);
        } else {
            wait_again(pool_context, list);
            ++*out_left;
        }
        list = next;
    }
    return sum;
}

uint64_t cw_release_list(struct cw_pool_context *pool_context, uint32_t list, enum cw_release why)
{
    uint32_t left;

    if (list == 0)
        return 0;
    cw_retention_reclaim_begins();
    return cw_retention_reclaim_ends(release_each(pool_context, list, why, &left));
}

uint32_t cw_release_batch(struct cw_pool_context *pool_context, uint32_t list, enum cw_release why)
{
    uint32_t left;

    cw_retention_reclaim_begins();
    cw_retention_reclaim_ends(release_each(pool_context, list, why, &left));
    return left;
}

void cw_release_one(struct cw_pool *pool, uint32_t block, enum cw_release why)
{
    atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
    cw_release_list(pool->pool_context, block, why);
}
