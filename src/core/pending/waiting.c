/* SPDX-License-Identifier: MIT */
/* The lists of batches that all threads share. See waiting.h. */
#include "core/pending/waiting.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/lock.h"
#include "core/account/tracker.h"
#include "core/pending/lane.h"

static struct cw_pool *pool_of(const struct cw_batch *batch, uint32_t block)
{
    return cw_pool_context_pool(batch->pool_context, cw_tracker_at(block)->class);
}

/* How many blocks of the same class and size follow each other; *out_next: the first other one. */
static uint32_t count_alike(uint32_t first, uint32_t *out_next)
{
    uint64_t held = cw_tracker_held(first);
    uint8_t class = cw_tracker_at(first)->class;
    uint32_t block = first, count = 0;

    do {
        count++;
        block = cw_tracker_next(block);
    } while (block != 0 && cw_tracker_at(block)->class == class && cw_tracker_held(block) == held);
    *out_next = block;
    return count;
}

static void count_listed(const struct cw_batch *batch, uint64_t sign)
{
    struct cw_pool_context *pool_context = batch->pool_context;

    cw_bucket_list(pool_context->device, sign * batch->bytes);
    cw_bucket_list(CW_DEVICE_HOST, sign * batch->host_bytes);
    atomic_fetch_add_explicit(&pool_context->listed[0], sign * batch->bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool_context->listed[1], sign * batch->host_bytes,
                              memory_order_relaxed);
    for (uint32_t block = batch->head, next; block != 0; block = next) {
        uint32_t count = count_alike(block, &next);

        cw_bucket_add_pending(pool_of(batch, block), cw_size_class_down(cw_tracker_held(block)),
                              (uint32_t)sign * count);
    }
}

/* 1, or 0 when the pool_context is not open: the caller keeps the batch. */
static int push(struct cw_batch *batch, int front)
{
    struct cw_pool_context *pool_context = batch->pool_context;
    int open;

    count_listed(batch, 1);
    cw_lock_acquire(&cw_pool_context_lock);
    open = atomic_load(&pool_context->state) == CW_POOL_CONTEXT_OPEN;
    if (open && (front || pool_context->first == NULL)) {
        batch->next = pool_context->first;
        if (pool_context->first == NULL)
            pool_context->last = batch;
        pool_context->first = batch;
    } else if (open) {
        batch->next = NULL;
        pool_context->last->next = batch;
        pool_context->last = batch;
    }
    cw_lock_release(&cw_pool_context_lock);
    if (!open)
        count_listed(batch, (uint64_t)-1);
    return open;
}

void cw_waiting_push(struct cw_batch *batch, int front)
{
    struct cw_pool_context *pool_context = batch->pool_context;

    if (!push(batch, front))
        cw_waiting_defer(pool_context, cw_batch_dissolve(batch));
    cw_lane_put_down(pool_context);
}

struct cw_batch *cw_waiting_make(struct cw_pool_context *pool_context)
{
    struct cw_batch *batch = cw_batch_make(pool_context);

    if (batch != NULL)
        cw_lane_take_in_hand(pool_context);
    return batch;
}

struct cw_batch *cw_waiting_pop(struct cw_pool_context *pool_context)
{
    struct cw_batch *batch;

    cw_lock_acquire(&cw_pool_context_lock);
    batch = pool_context->first;
    if (batch != NULL) {
        pool_context->first = batch->next;
        cw_lane_take_in_hand(pool_context);
    }
    cw_lock_release(&cw_pool_context_lock);
    if (batch != NULL)
        count_listed(batch, (uint64_t)-1);
    return batch;
}

void cw_waiting_add(struct cw_pool_context *pool_context, uint32_t list)
{
    uint64_t stamp = cw_batch_stamp();

    while (list != 0) {
        uint32_t next = cw_tracker_next(list);
        struct cw_batch *batch = cw_waiting_make(pool_context);

        /* Without memory the block is lost to the pool; it goes with its context. */
        for (; batch != NULL && list != 0 && !cw_batch_is_full(batch); list = next) {
            next = cw_tracker_next(list);
            cw_batch_append(batch, list, stamp);
        }
        if (batch == NULL)
            return;
        cw_waiting_push(batch, 0);
    }
}

void cw_waiting_defer(struct cw_pool_context *pool_context, uint32_t list)
{
    switch (cw_pool_context_park(pool_context, list)) {
    case CW_POOL_CONTEXT_OPEN: /* again: the context was kept */
        cw_waiting_add(pool_context, list);
        return;
    case CW_POOL_CONTEXT_CLOSING:
        return;
    case CW_POOL_CONTEXT_DEAD:
        cw_pool_context_forget(pool_context, list);
    }
}
