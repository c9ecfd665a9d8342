/* SPDX-License-Identifier: MIT */
/* The blocks and events of a batch. See batch.h. */
#include "core/pending/batch.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/mem.h"
#include "core/pending/patience.h"
#include "core/process/session.h"
#include "core/account/tracker.h"

CW_HOT_DATA _Atomic uint64_t cw_batch_tickets;
CW_HOT_DATA _Atomic uint32_t cw_batches;

/* ---- tickets ---- */

uint64_t cw_batch_sync_begin(void)
{
    return atomic_fetch_add(&cw_batch_tickets, 1) + 1;
}

void cw_batch_sync_end(struct cw_pool_context *pool_context, uint64_t ticket)
{
    uint64_t seen = atomic_load(&pool_context->synced);

    while (seen < ticket && !atomic_compare_exchange_weak(&pool_context->synced, &seen, ticket))
        ;
}

/* ---- blocks ---- */

struct cw_batch *cw_batch_make(struct cw_pool_context *pool_context)
{
    struct cw_batch *batch = cw_mem_alloc(sizeof(*batch));

    if (batch == NULL)
        return NULL;
    batch->pool_context = pool_context;
    atomic_fetch_add(&cw_batches, 1);
    return batch;
}

static void give_events_back(struct cw_batch *batch)
{
    for (uint32_t i = 0; i < batch->marks; i++)
        if (batch->mark[i].event != 0)
            cw_pool_context_release_event(batch->mark[i].pool_context, batch->mark[i].event);
    batch->marks = 0;
}

uint32_t cw_batch_dissolve(struct cw_batch *batch)
{
    uint32_t list = batch->head;

    give_events_back(batch);
    cw_mem_free(batch, sizeof(*batch));
    atomic_fetch_sub(&cw_batches, 1);
    return list;
}

void cw_batch_append(struct cw_batch *batch, uint32_t block, uint64_t stamp)
{
    struct cw_live_block *record = cw_tracker_at(block);
    uint64_t held = atomic_load_explicit(&record->held, memory_order_relaxed);

    atomic_store_explicit(&record->link, batch->head, memory_order_relaxed);
    batch->head = block;
    batch->count++;
    if (record->class >= CW_POOL_HOST)
        batch->host_bytes += held;
    else
        batch->bytes += held;
    if (batch->stamp < stamp)
        batch->stamp = stamp;
}

/* ---- events ---- */

/* The live contexts but for those that have been waited for since, the batch's own first: it is
 * asked before the others. -1: too many. */
static int contexts_to_pass(const struct cw_batch *batch, struct cw_pool_context **out)
{
    uint32_t count, left = 0;

    if (CW_LIKELY(cw_pool_context_is_alone())) {
        out[0] = batch->pool_context;
        count = 1;
    } else {
        count = cw_pool_context_list(out, CW_POOL_CONTEXTS_LIVE);
    }
    if (count > CW_POOL_CONTEXTS_LIVE)
        return -1;
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load(&out[i]->synced) <= batch->stamp)
            out[left++] = out[i];
    for (uint32_t i = 1; i < left; i++)
        if (out[i] == batch->pool_context) {
            out[i] = out[0];
            out[0] = batch->pool_context;
        }
    return (int)left;
}

int cw_batch_may_record(const struct cw_batch *batch)
{
    struct cw_pool_context *pool_context[CW_POOL_CONTEXTS_LIVE];
    int count = contexts_to_pass(batch, pool_context);

    for (int i = 0; i < count; i++)
        if (cw_pool_context_is_in_free(pool_context[i]) ||
            atomic_load(&pool_context[i]->state) == CW_POOL_CONTEXT_CLOSING)
            return 0;
    return 1;
}

int cw_batch_is_passed(const struct cw_batch *batch)
{
    struct cw_pool_context *pool_context[CW_POOL_CONTEXTS_LIVE];

    return contexts_to_pass(batch, pool_context) == 0;
}

static void count_on(const struct cw_pool_context *pool_context, int queries)
{
    struct cw_live_pool *pool = &cw_session.arena.header->device[pool_context->device].pool;

    atomic_fetch_add_explicit(queries ? &pool->event_queries : &pool->event_records, 1,
                              memory_order_relaxed);
}

static int record_in(struct cw_batch *batch, struct cw_pool_context *pool_context)
{
    uint64_t event = cw_pool_context_acquire_event(pool_context);
    int rc;

    if (event == 0)
        return -1;
    batch->mark[batch->marks++] = (struct cw_mark){.pool_context = pool_context, .event = event};
    rc = cw_session.ops->event_record(cw_context_name(pool_context->record), event);
    if (rc == 1)
        cw_patience_refused(pool_context);
    if (rc != 0)
        return -1;
    count_on(pool_context, 0);
    return 0;
}

int cw_batch_record(struct cw_batch *batch)
{
    struct cw_pool_context *pool_context[CW_POOL_CONTEXTS_LIVE];
    int count = contexts_to_pass(batch, pool_context), rc = count < 0 ? -1 : 0;

    for (int i = 0; rc == 0 && i < count; i++)
        rc = record_in(batch, pool_context[i]);
    if (rc != 0)
        give_events_back(batch);
    batch->recorded = rc == 0;
    return rc;
}

int cw_batch_waits_for_own(const struct cw_batch *batch)
{
    if (atomic_load(&batch->pool_context->synced) > batch->stamp)
        return 0;
    for (uint32_t i = 0; batch->recorded && i < batch->marks; i++)
        if (batch->mark[i].pool_context == batch->pool_context)
            return batch->mark[i].event != 0;
    return !batch->recorded && cw_pool_context_is_in_free(batch->pool_context);
}

int cw_batch_query(struct cw_batch *batch)
{
    for (uint32_t i = 0; i < batch->marks; i++) {
        struct cw_mark *mark = &batch->mark[i];
        int passed;

        /* A dead context has no work left, and took its events with it. */
        if (mark->event == 0 || atomic_load(&mark->pool_context->state) == CW_POOL_CONTEXT_DEAD ||
            atomic_load(&mark->pool_context->synced) > batch->stamp)
            continue;
        if (atomic_load(&mark->pool_context->state) == CW_POOL_CONTEXT_CLOSING)
            return 0; /* how that ends is for a later look */
        passed =
            cw_session.ops->event_query(cw_context_name(mark->pool_context->record), mark->event);
        count_on(mark->pool_context, 1);
        if (passed != 1)
            return passed;
        cw_pool_context_release_event(mark->pool_context, mark->event);
        mark->event = 0;
    }
    return 1;
}
