/* SPDX-License-Identifier: MIT */
/* Sweeps over what lies idle. See sweep.h. */
#include "core/reclaim/sweep.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/account/tracker.h"
#include "core/cache/pool_context.h"
#include "core/cache/thread_cache.h"
#include "core/limits/demand.h"
#include "core/limits/reclaim_due.h"
#include "core/process/deadline.h"
#include "core/process/session.h"
#include "core/cache/retention.h"
#include "core/pending/ready.h"
#include "core/reclaim/pool_walk.h"

/* A block waits for one sweep in its thread, and for CW_BUCKET_AGES in a bucket. */
#define LEAST_NS UINT64_C(2000000)

static struct {
    const struct cw_options *options;
    _Atomic int sweeping;
} self;

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

uint64_t cw_sweep_interval(void)
{
    uint64_t interval = self.options->pool_idle / CW_DEMAND_SLOTS;

    return interval > LEAST_NS ? interval : LEAST_NS;
}

void cw_sweep_init(const struct cw_options *options)
{
    self.options = options;
    cw_sweep_reset();
    if (options->mode == CW_MODE_POOL)
        store(&cw_deadlines.demand_ns, cw_sweep_interval());
}

void cw_sweep_reset(void)
{
    store(&cw_deadlines.demand_ns, UINT64_MAX);
    atomic_store(&self.sweeping, 0);
}

/* Blocks that their threads had no use for become shared. */
static void sweep_threads(void)
{
    uint32_t list, next;

    cw_retention_reclaim_begins();
    for (list = cw_thread_cache_sweep(); list != 0; list = next) {
        struct cw_pool_context *pool_context = cw_pool_context_of(cw_tracker_at(list)->context);
        struct cw_pool *pool = cw_pool_context_pool(pool_context, cw_tracker_at(list)->class);
        uint64_t held = cw_tracker_held(list);

        next = cw_tracker_next(list);
        cw_ready_put(pool, list, 0);
        cw_bucket_not_needed(pool, held);
    }
    cw_retention_reclaim_ends(0);
}

static void sweep_pool(struct cw_pool *pool, unsigned times)
{
    uint32_t doomed = 0;

    for (unsigned c = 0; c < CW_SIZE_CLASSES; c++)
        if (cw_bucket_has_blocks(pool, c))
            doomed += cw_bucket_sweep(pool, c, times);
    if (doomed != 0)
        cw_reclaim_due_set(pool->device, CW_RECLAIM_AGE);
}

static void sweep(unsigned times)
{
    struct cw_pool_context *pool_context;
    uint32_t at = 0;

    sweep_threads();
    if (times > 1)
        sweep_threads();
    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL)
        for (unsigned k = 0; k < CW_POOL_CLASSES; k++)
            if (atomic_load(&pool_context->pool[k]) != NULL)
                sweep_pool(atomic_load(&pool_context->pool[k]), times);
    cw_demand_turn();
    for (unsigned d = 0; d < CW_DEVICES; d++)
        cw_retention_check((uint8_t)d);
}

/* A program that made no calls for several sweeps has not needed any block either. */
void cw_sweep_serve(void)
{
    uint64_t now = cw_session_now(), due, sweeps;

    if (atomic_exchange(&self.sweeping, 1))
        return;
    due = load(&cw_deadlines.demand_ns);
    if (now >= due) {
        store(&cw_deadlines.demand_ns, now + cw_sweep_interval());
        sweeps = (now - due) / cw_sweep_interval() + 1;
        sweep(sweeps < CW_DEMAND_SLOTS ? (unsigned)sweeps : CW_DEMAND_SLOTS);
    }
    atomic_store(&self.sweeping, 0);
}

int cw_sweep_is_overdue(void)
{
    uint64_t due = load(&cw_deadlines.demand_ns);

    return due != UINT64_MAX && cw_session_now() >= due + cw_sweep_interval() / 2;
}
