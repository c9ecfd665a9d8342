/* SPDX-License-Identifier: MIT */
/*
 * Strict frees: how the wait for the device ends, and what becomes of the block then.
 * core/pending/patience.h says why. Stateless; no lock.
 */
#ifndef CW_CORE_STRICT_H
#define CW_CORE_STRICT_H

#include <stdint.h>

#include "base/compiler.h"
#include "core/cache/pool_context.h"
#include "core/pending/patience.h"
#include "core/process/types.h"

#define CW_NO_OBSTACLE CW_BYPASS_COUNT

/* A block that is being freed. */
struct cw_leaving {
    uint32_t index;
    uint32_t site;  /* of the free */
    uint64_t stamp; /* for a block that is not ready */
    int is_ready;
};

/* A context is current and not destroyed, without which the driver refuses a free; and the block's
 * own context still exists. */
int cw_strict_can_free(const struct cw_pool_context *pool_context);

/* The context is busy, and the driver's own free would not wait either: neither does this one. */
int cw_strict_is_put_off(struct cw_pool_context *pool_context, const struct cw_live_block *block);
/* So much is pending that nobody waits for: what the program has freed must not pile up. */
int cw_strict_is_piled_up(const struct cw_pool *pool, uint64_t held);

/* `found` is how the wait ended, unless all work is over. */
enum cw_bypass cw_strict_end(struct cw_pool_context *pool_context,
                             const struct cw_live_block *block, enum cw_patience found,
                             struct cw_leaving *leaving, struct cw_free_probe *probe,
                             int *out_wait);

/* Waits until the device no longer uses the context's memory, as long as there is patience. events:
 * the driver has events of contexts. *out_wait as in cw_pool_free. */
static CW_INLINE enum cw_bypass cw_strict_wait(struct cw_pool_context *pool_context,
                                               const struct cw_live_block *block, int events,
                                               struct cw_leaving *leaving,
                                               struct cw_free_probe *out_probe, int *out_wait)
{
    enum cw_patience found = CW_LIKELY(events) ? cw_patience_wait(pool_context, out_wait, out_probe)
                                               : CW_PATIENCE_REFUSED;

    return CW_LIKELY(found == CW_PATIENCE_PASSED)
               ? CW_NO_OBSTACLE
               : cw_strict_end(pool_context, block, found, leaving, out_probe, out_wait);
}

#endif
