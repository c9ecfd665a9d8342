/* SPDX-License-Identifier: MIT */
/* Frees that share one wait. See free_batch.h. */
#include "core/pool/free_batch.h"

#include <stddef.h>

#include "core/cache/pool_context.h"
#include "core/device/context.h"
#include "core/pending/patience.h"
#include "core/pending/pending.h"
#include "core/pool/pool.h"
#include "core/pool/search.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/reclaim/reclaim.h"

void cw_free_batch_begin(void)
{
    if (cw_thread.batches < UINT16_MAX)
        cw_thread.batches++;
}

int cw_free_batch_leave(void)
{
    if (cw_thread.batches == 0)
        return -1;
    cw_thread.batches--;
    return 0;
}

/* Beside a capture no event can be recorded, but what was freed can go to the driver: its own frees
 * wait. */
static void wait_for(struct cw_pool_context *pool_context, int *out_code)
{
    if (cw_patience_wait_on(pool_context, out_code) == CW_PATIENCE_PASSED)
        cw_pending_harvest(pool_context, 0, CW_SEARCH_HARVEST, 1);
    else if (*out_code == 0 && cw_pool_context_is_usable(pool_context))
        cw_pending_drain(pool_context);
}

int cw_free_batch_end(int *out_code)
{
    struct cw_pool_context *pool_context;
    uint8_t device;

    *out_code = 0;
    if (cw_free_batch_leave() != 0)
        return -1;
    if (cw_thread.batches != 0 || !cw_session_is_armed() || !cw_pool_is_on() || !cw_batch_is_any())
        return 0;
    pool_context = cw_pool_context_of(cw_context_current(&device));
    if (pool_context == NULL)
        return 0;
    wait_for(pool_context, out_code);
    cw_reclaim_look();
    return 0;
}
