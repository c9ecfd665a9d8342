/* SPDX-License-Identifier: MIT */
/* Contexts come and go. See context_life.h. */
#include "core/pool/context_life.h"

#include <stdatomic.h>
#include <stddef.h>

#include "core/cache/pool_context.h"
#include "core/cache/thread_cache.h"
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/pending/patience.h"
#include "core/pending/pending.h"
#include "core/pool/pool.h"
#include "core/pending/waiting.h"
#include "core/process/session.h"

/* The pool makes room for the context, and what the fallback has left waits for it, too. A limit
 * must know the device before the first capture, during which the driver could not be asked. */
static void made(uint32_t context, struct cw_live_context *record)
{
    if (cw_pool_is_on() || cw_session.options->fallback == CW_FALLBACK_MANAGED)
        cw_pool_context_make(context, record);
    if (cw_limit_is_on())
        cw_device_describe((uint8_t)record->device);
}

static uint32_t drain(uint32_t context)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(context);

    if (pool_context == NULL || !cw_batch_is_any() || !cw_pool_context_is_usable(pool_context))
        return 0;
    return cw_pending_drain(pool_context);
}

static void to_limbo(struct cw_pool_context *pool_context, uint32_t list)
{
    cw_pool_context_forget(pool_context, cw_pool_context_to_limbo(pool_context, list));
}

/* All that is idle there goes to limbo; of a dead one it is forgotten. */
static void clear(struct cw_pool_context *pool_context)
{
    /* First, because pending blocks are part of threads' grants. */
    to_limbo(pool_context, cw_pending_seize(pool_context));
    for (unsigned i = 0; i < CW_POOL_CLASSES; i++) {
        struct cw_pool *pool = atomic_load_explicit(&pool_context->pool[i], memory_order_acquire);

        if (pool == NULL)
            continue;
        to_limbo(pool_context, cw_thread_cache_seize(pool, CW_SIZE_CLASSES));
        to_limbo(pool_context, cw_bucket_take_all(pool));
    }
}

static void closing(uint32_t context)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(context);

    if (pool_context != NULL)
        cw_pool_context_close(pool_context);
}

static void closed(uint32_t context)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(context);

    if (pool_context == NULL)
        return;
    cw_pool_context_await_frees(pool_context);
    clear(pool_context);
}

/* Nothing comes in any more. The context may have been kept, closed by another thread, and what
 * came in meanwhile is still there. */
static void retire_pools(struct cw_pool_context *pool_context)
{
    clear(pool_context);
    for (unsigned i = 0; i < CW_POOL_CLASSES; i++) {
        struct cw_pool *pool = atomic_load_explicit(&pool_context->pool[i], memory_order_acquire);

        if (pool != NULL)
            cw_pool_context_forget(pool_context, cw_bucket_retire(pool));
    }
}

static void ended(uint32_t context, int gone)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(context);

    if (pool_context == NULL)
        return;
    if (gone) {
        cw_pool_context_forget(pool_context, cw_pool_context_die(pool_context));
        cw_patience_renew(pool_context);
        retire_pools(pool_context);
    } else {
        cw_waiting_add(pool_context, cw_pool_context_reopen(pool_context));
    }
}

const struct cw_context_listener cw_context_life_listener = {
    .made = made, .drain = drain, .closing = closing, .closed = closed, .ended = ended};
