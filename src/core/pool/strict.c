/* SPDX-License-Identifier: MIT */
/* The ends of a strict free's wait. See strict.h. */
#include "core/pool/strict.h"

#include <stdatomic.h>

#include "core/account/size_class.h"
#include "core/device/context.h"
#include "core/pending/batch.h"
#include "core/pending/pending.h"
#include "core/process/session.h"

int cw_strict_can_free(const struct cw_pool_context *pool_context)
{
    uint64_t identity = 0;
    uint8_t device;

    return cw_session.ops->context_identity(0, &identity) == 0 &&
           (identity == pool_context->record->id ||
            (cw_context_current(&device) != 0 && cw_context_is_there(pool_context->record)));
}

static int is_host(const struct cw_live_block *block)
{
    return block->class >= CW_POOL_HOST;
}

int cw_strict_is_put_off(struct cw_pool_context *pool_context, const struct cw_live_block *block)
{
    return cw_patience_is_put_off(pool_context, is_host(block),
                                  atomic_load_explicit(&block->held, memory_order_relaxed)) &&
           cw_pending_is_possible();
}

int cw_strict_is_piled_up(const struct cw_pool *pool, uint64_t held)
{
    return cw_patience_is_over(pool->pool_context) &&
           (cw_pending_is_much(pool, cw_size_class_down(held)) || cw_pending_is_backlog(pool));
}

/* There is no way to ask without waiting: see core/pending/patience.h. */
static CW_NOINLINE enum cw_patience wait_without_events(struct cw_pool_context *pool_context,
                                                        uint64_t held, int *out_wait)
{
    *out_wait = 0;
    return held >= CW_SIZE_PAGE ? cw_patience_wait_inside(pool_context, out_wait)
                                : CW_PATIENCE_REFUSED;
}

/* The block is not ready, and the free does not wait for it any more. */
static enum cw_bypass put_off(struct cw_pool_context *pool_context, struct cw_leaving *leaving)
{
    if (!cw_pending_is_possible())
        return CW_BYPASS_BUSY;
    leaving->is_ready = 0;
    leaving->stamp = cw_batch_stamp();
    if (cw_patience_is_over(pool_context))
        cw_patience_put_off(pool_context);
    return CW_NO_OBSTACLE;
}

/* The context was at work for too long. */
static enum cw_bypass give_up(struct cw_pool_context *pool_context,
                              const struct cw_live_block *block, struct cw_leaving *leaving,
                              struct cw_free_probe *probe)
{
    probe->is_host = is_host(block);
    probe->bytes = atomic_load_explicit(&block->held, memory_order_relaxed);
    if (!cw_patience_is_put_off(pool_context, probe->is_host, probe->bytes))
        return CW_BYPASS_BUSY;
    if (probe->context != 0)
        cw_patience_drop(probe);
    return put_off(pool_context, leaving);
}

/* What a wait that the driver ended with a code tells about the block. */
static enum cw_bypass failed(const struct cw_pool_context *pool_context)
{
    return cw_strict_can_free(pool_context) ? CW_BYPASS_BROKEN : CW_BYPASS_NO_CONTEXT;
}

enum cw_bypass cw_strict_end(struct cw_pool_context *pool_context,
                             const struct cw_live_block *block, enum cw_patience found,
                             struct cw_leaving *leaving, struct cw_free_probe *probe, int *out_wait)
{
    uint64_t held = atomic_load_explicit(&block->held, memory_order_relaxed);

    if (found == CW_PATIENCE_REFUSED && *out_wait == 0)
        found = wait_without_events(pool_context, held, out_wait);
    if (*out_wait != 0)
        return failed(pool_context);
    switch (found) {
    case CW_PATIENCE_PASSED:
        return CW_NO_OBSTACLE;
    case CW_PATIENCE_BUSY:
        return give_up(pool_context, block, leaving, probe);
    case CW_PATIENCE_CUT: /* nothing that was recorded before can be asked about */
    case CW_PATIENCE_SHUT:
        return CW_BYPASS_CAPTURE;
    default:
        return CW_BYPASS_EVENTS;
    }
}
