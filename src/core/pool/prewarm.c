/* SPDX-License-Identifier: MIT */
/* Blocks for the pool ahead of any request. See prewarm.h. */
#include "core/pool/prewarm.h"

#include <stdatomic.h>

#include "base/log.h"
#include "core/limits/demand.h"
#include "core/device/device.h"
#include "core/process/gate.h"
#include "core/limits/limit.h"
#include "core/cache/pool_context.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "core/reclaim/sweep.h"
#include "core/pending/ready.h"

/* Frees a block that got no record. If the context ends, the block goes with it. */
static void give_back(const struct cw_pool *pool, uint64_t key)
{
    unsigned passed = cw_pool_context_enter_free(pool->pool_context, 1);

    if (passed == 0)
        return;
    cw_session.ops->block_free(cw_context_name(pool->pool_context->record), pool->kind, key);
    cw_pool_context_leave_free(pool->pool_context, passed);
}

/* 0; -1: there is no such memory, or a limit is in the way; 1: the driver cannot be asked now. */
static int take_from_driver(struct cw_request *request)
{
    enum cw_cause cause;
    int rc;

    if (cw_limit_reserve(request->device, request->held, &request->reserved, &cause) != 0)
        return -1;
    if (!cw_gate_enter_wait()) { /* it waits beside a free, as the program's own would */
        cw_limit_cancel(request->device, request->reserved);
        return 1;
    }
    rc = cw_session.ops->block_alloc(request->held, &request->key);
    cw_gate_leave_wait();
    if (rc != 0)
        cw_limit_cancel(request->device, request->reserved);
    return rc;
}

void cw_prewarm(struct cw_pool *pool, const struct cw_option_batches *batches, uint32_t api)
{
    uint32_t site = cw_site_here(api, pool->kind, pool->device);

    if (cw_sweep_is_overdue()) /* for what was idle before, not for what comes now */
        cw_sweep_serve();
    cw_device_describe(pool->device); /* its size says how much may be kept */
    for (unsigned i = 0; i < batches->count && site != 0; i++) {
        for (uint32_t k = 0; k < batches->item[i].blocks; k++) {
            struct cw_request request = {.kind = pool->kind,
                                         .device = pool->device,
                                         .flags = CW_BLOCK_POOLED,
                                         .class = pool->class,
                                         .context = pool->pool_context->context};
            uint32_t block;
            int rc;

            request.held = cw_size_round(batches->item[i].bytes);
            rc = take_from_driver(&request);
            if (rc > 0)
                return;
            if (rc != 0) {
                cw_log(CW_LOG_WARN, "PREWARM: there was no memory for block %u of %u of %ju bytes",
                       k + 1, batches->item[i].blocks, (uintmax_t)batches->item[i].bytes);
                return;
            }
            block = cw_tracker_insert_idle(&request, site, cw_session_now());
            if (block == 0) {
                give_back(pool, request.key);
                cw_limit_cancel(request.device, request.reserved);
                return;
            }
            cw_limit_committed(request.device, request.reserved);
            atomic_fetch_add(&cw_device_at(pool->device)->pool.prewarmed, 1);
            cw_demand_prewarmed(pool->device, request.held);
            cw_bucket_added(pool, block);
            cw_ready_put(pool, block, 0);
        }
    }
}
