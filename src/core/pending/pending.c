/* SPDX-License-Identifier: MIT */
/* Batches of freed blocks, tickets, events. See pending.h. */
#include "core/pending/pending.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/mem.h"
#include "core/pending/batch.h"
#include "core/process/gate.h"
#include "core/cache/retention.h"
#include "core/pending/lane.h"
#include "core/pending/patience.h"
#include "core/pending/ready.h"
#include "core/pending/release.h"
#include "core/pending/waiting.h"
#include "core/process/session.h"
#include "core/cache/thread_cache.h"
#include "core/account/tracker.h"

/* How long the end of a context waits for batches that other threads have in hand. */
#define HANDS_NS UINT64_C(1000000000)
/* Pending blocks and bytes of one size beyond which a request waits. */
#define MUCH_BLOCKS 8u
#define MUCH_BYTES  ((uint64_t)64 << 20)
/* And of all sizes, in terms of what the program has ever had. Programs free in bursts, a training
 * loop all that it had within a step: with 1, a request would wait for the step just submitted, and
 * the device run dry. */
#define BACKLOG_PEAKS 2u
/* Batches that one free may give up: as many as keep ahead of the one that it may close. */
#define GIVE_UP_QUERIES 2u

void cw_pending_reset(void)
{
    atomic_store(&cw_batches, 0);
    cw_patience_reset();
    cw_lane_reset();
}

int cw_pending_is_possible(void)
{
    struct cw_pool_context *pool_context[CW_POOL_CONTEXTS_LIVE];
    uint32_t count = cw_pool_context_list(pool_context, CW_POOL_CONTEXTS_LIVE);

    if (count > CW_POOL_CONTEXTS_LIVE || !cw_session.ops->has_context_events())
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (pool_context[i]->record->handle == 0 ||
            atomic_load(&pool_context[i]->record->fatal) != 0)
            return 0;
    return 1;
}

/* A batch in hand, of blocks that no thread holds, goes to the driver's own free. Returns how many
 * blocks wait again. */
static uint32_t release(struct cw_batch *batch, enum cw_release why)
{
    struct cw_pool_context *pool_context = batch->pool_context;
    uint32_t left = cw_release_batch(pool_context, cw_batch_dissolve(batch), why);

    cw_lane_put_down(pool_context);
    return left;
}

/* ---- in ---- */

/* A closed batch of held blocks goes into the calling thread's lane, whose oldest batch may have to
 * move to the list for it. front: the batch was the oldest. */
static void keep_closed(struct cw_batch *batch, int front)
{
    struct cw_batch *leaving = cw_lane_keep(batch, front);

    if (leaving != NULL)
        cw_waiting_push(leaving, 0);
}

/* A batch of held blocks goes to the driver's own free. */
static void release_held(struct cw_batch *batch)
{
    cw_lane_unhold(batch);
    release(batch, CW_RELEASE_FULL);
}

static int record(struct cw_batch *batch)
{
    int rc = 0;

    if (!cw_gate_enter())
        return 0; /* a later look records it; so below */
    if (cw_batch_may_record(batch))
        rc = cw_batch_record(batch);
    cw_gate_leave();
    if (rc != 0)
        cw_context_check_all();
    return rc;
}

/* Records the batch's events and puts it into the lane. A batch that gets no events goes to the
 * driver's own free, which waits by itself; where the caller may not release, it is kept without
 * events. */
static void close_batch(struct cw_batch *batch, int may_release)
{
    if (record(batch) != 0 && may_release)
        release_held(batch);
    else
        keep_closed(batch, 0);
}

void cw_pending_close(int may_release)
{
    struct cw_batch *batch;

    cw_retention_reclaim_begins();
    batch = cw_lane_detach_open(NULL, 0);
    if (batch != NULL)
        close_batch(batch, may_release);
    cw_retention_reclaim_ends(0);
}

/* The block gets a batch of its own in the list, where every thread finds it. */
static int add_alone(struct cw_pool *pool, uint32_t block, uint64_t stamp)
{
    struct cw_batch *alone = cw_retention_has_room(pool, cw_tracker_held(block))
                                 ? cw_waiting_make(pool->pool_context)
                                 : NULL;

    if (alone == NULL)
        return -1;
    cw_batch_append(alone, block, stamp);
    if (record(alone) != 0)
        release(alone, CW_RELEASE_FULL);
    else
        cw_waiting_push(alone, 0);
    return 0;
}

/* ---- out ---- */

/* Where a batch in hand comes from: the list of its pool_context, or the calling thread's lane,
 * where the thread holds its blocks. Each batch that was taken leaves the hand in exactly one of
 * three ways: handed over, put back or given up. */
enum source { LIST, LANE };

static struct cw_batch *take_oldest(struct cw_pool_context *pool_context, enum source from)
{
    return from == LIST ? cw_waiting_pop(pool_context) : cw_lane_detach_oldest(pool_context);
}

/* The batch's blocks are ready: first for the calling thread if it held them, else for all. How
 * many there are. */
static uint32_t hand_over(struct cw_batch *batch, enum source from, int by_event)
{
    struct cw_pool_context *pool_context = batch->pool_context;
    struct cw_live_pool *pool = &cw_session.arena.header->device[pool_context->device].pool;
    uint32_t count = batch->count, left;

    if (by_event)
        cw_patience_passed(pool_context, batch->stamp);
    atomic_fetch_add_explicit(by_event ? &pool->harvested_by_event : &pool->harvested_by_sync,
                              count, memory_order_relaxed);
    if (from == LIST) {
        cw_ready_hand_over(pool_context, cw_batch_dissolve(batch));
    } else {
        left = cw_lane_take_in(batch);
        cw_batch_dissolve(batch);
        cw_ready_share(pool_context, left);
    }
    cw_lane_put_down(pool_context);
    return count;
}

/* Puts it back as the oldest. */
static void put_back(struct cw_batch *batch, enum source from)
{
    if (from == LIST)
        cw_waiting_push(batch, 1);
    else
        keep_closed(batch, 1);
}

static void give_up(struct cw_batch *batch, enum source from)
{
    if (from == LIST)
        release(batch, CW_RELEASE_FULL);
    else
        release_held(batch);
}

/* What a look at a batch finds. FAILED: an event cannot be recorded or queried. */
enum look { READY_BY_SYNC, READY_BY_EVENT, NOT_YET, FAILED };

static enum look query(struct cw_batch *batch)
{
    uint32_t kinds = CW_GATE_ENDS | CW_GATE_POOLS | (batch->recorded ? CW_GATE_CAPTURES : 0);
    unsigned way = cw_gate_enter_beside(kinds);
    int passed = -1;

    /* Its events were recorded outside of a capture: beside one they may be asked about, though no
     * more can be recorded. */
    if (way == 0)
        return NOT_YET;
    if (!batch->recorded && !cw_batch_may_record(batch))
        passed = 0;
    else if (batch->recorded || cw_batch_record(batch) == 0)
        passed = cw_batch_query(batch);
    cw_gate_leave_beside(way);
    if (passed < 0) {
        cw_context_check_all();
        return FAILED;
    }
    return passed ? READY_BY_EVENT : NOT_YET;
}

/* Puts back what may not be given up here; the next free looks at it again. */
static void leave_waiting(struct cw_batch *batch, enum source from, enum look found)
{
    if (found == FAILED)
        atomic_store_explicit(&batch->pool_context->failed, 1, memory_order_relaxed);
    put_back(batch, from);
}

/* *queries: how often the driver may still be asked. */
static enum look look_at(struct cw_batch *batch, unsigned *queries)
{
    if (cw_batch_is_passed(batch))
        return READY_BY_SYNC;
    if (*queries == 0)
        return NOT_YET;
    --*queries;
    return query(batch);
}

/* Oldest first, up to the first batch that is not ready: the ones after it are younger. */
static uint32_t harvest(struct cw_pool_context *pool_context, enum source from, unsigned *queries,
                        uint32_t most, int may_release)
{
    struct cw_batch *batch;
    uint32_t count = 0;

    while (count < most && (batch = take_oldest(pool_context, from)) != NULL) {
        enum look found = look_at(batch, queries);

        if (found == READY_BY_SYNC || found == READY_BY_EVENT) {
            count += hand_over(batch, from, found == READY_BY_EVENT);
        } else if (found == FAILED && may_release) {
            give_up(batch, from);
        } else {
            leave_waiting(batch, from, found);
            break;
        }
    }
    return count;
}

uint32_t cw_pending_harvest(struct cw_pool_context *pool_context, unsigned queries, uint32_t most,
                            int may_release)
{
    struct cw_batch *open;
    uint32_t count;

    cw_retention_reclaim_begins();
    count = harvest(pool_context, LIST, &queries, most, may_release);
    if (count < most) {
        open = cw_lane_detach_open(pool_context, 1);
        count += open != NULL ? hand_over(open, LANE, 0) : 0;
    }
    if (count < most)
        count += harvest(pool_context, LANE, &queries, most - count, may_release);
    cw_retention_reclaim_ends(0);
    return count;
}

void cw_pending_give_up(struct cw_pool_context *pool_context)
{
    if (CW_UNLIKELY(atomic_load_explicit(&pool_context->failed, memory_order_relaxed) != 0) &&
        atomic_exchange(&pool_context->failed, 0) != 0)
        cw_pending_harvest(pool_context, GIVE_UP_QUERIES, UINT32_MAX, 1);
}

int cw_pending_add(struct cw_pool *pool, uint32_t block, uint64_t stamp)
{
    struct cw_batch *full;
    int is_added;

    cw_pending_give_up(pool->pool_context);
    is_added = cw_lane_add(pool, block, stamp, &full);
    if (full != NULL)
        close_batch(full, 1);
    return is_added ? 0 : add_alone(pool, block, stamp);
}

/* ---- what is pending of one size ---- */

static uint64_t listed_of(const struct cw_pool *pool, unsigned size_class)
{
    return cw_bucket_pending(pool, size_class) * cw_size_class_bytes(size_class);
}

int cw_pending_may_rotate(const struct cw_pool *pool, unsigned size_class)
{
    uint64_t size = cw_size_class_bytes(size_class);
    uint64_t bytes = cw_thread_cache_pending(pool, size_class) + size;

    return bytes <= CW_PENDING_ROTATION && bytes / size <= cw_lane_most_blocks();
}

int cw_pending_is_much(const struct cw_pool *pool, unsigned size_class)
{
    uint64_t bytes = listed_of(pool, size_class) + cw_thread_cache_pending(pool, size_class);

    return bytes > MUCH_BYTES && bytes > MUCH_BLOCKS * cw_size_class_bytes(size_class);
}

int cw_pending_is_backlog(const struct cw_pool *pool)
{
    const struct cw_live_device *device = &cw_session.arena.header->device[pool->device];
    int is_host = pool->device == CW_DEVICE_HOST;
    uint64_t listed =
        atomic_load_explicit(&pool->pool_context->listed[is_host], memory_order_relaxed);
    uint64_t bytes = listed + cw_lane_own_bytes(pool->device);

    return bytes > MUCH_BYTES &&
           bytes / BACKLOG_PEAKS > atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
}

static struct cw_batch *take_any(struct cw_pool_context *pool_context, enum source *out_from)
{
    struct cw_batch *batch = take_oldest(pool_context, LIST);

    *out_from = batch != NULL ? LIST : LANE;
    if (batch == NULL)
        batch = take_oldest(pool_context, LANE);
    return batch != NULL ? batch : cw_lane_detach_open(pool_context, 0);
}

/* It may be ready by a synchronisation of another thread. */
static enum look watch(struct cw_batch *batch)
{
    uint64_t end = cw_session_now() + CW_PATIENCE_NS;
    enum look found;
    unsigned turns = 0;

    while ((found = cw_batch_is_passed(batch) ? READY_BY_SYNC : query(batch)) == NOT_YET &&
           cw_batch_waits_for_own(batch) && cw_gate_is_open() && cw_session_now() < end)
        cw_lock_doze(&turns);
    if (found == NOT_YET && cw_batch_waits_for_own(batch) && cw_gate_is_open())
        cw_patience_end(batch->pool_context);
    return found;
}

static uint32_t await(struct cw_pool_context *pool_context)
{
    enum source from;
    struct cw_batch *batch =
        cw_patience_is_over(pool_context) ? NULL : take_any(pool_context, &from);
    enum look found;

    if (batch == NULL)
        return 0;
    found = watch(batch);
    if (found == READY_BY_SYNC || found == READY_BY_EVENT)
        return hand_over(batch, from, found == READY_BY_EVENT);
    leave_waiting(batch, from, found);
    return 0;
}

uint32_t cw_pending_await(struct cw_pool_context *pool_context)
{
    uint32_t count;

    cw_retention_reclaim_begins();
    count = await(pool_context);
    cw_retention_reclaim_ends(0);
    return count;
}

uint64_t cw_pending_bytes(uint8_t device)
{
    return cw_bucket_listed(device) + cw_lane_bytes(device);
}

/* ---- all threads' ---- */

/* Reverses the order, newest first, so that each list gets the oldest batch first. */
static void list_all(struct cw_batch *all)
{
    struct cw_batch *oldest = NULL;

    for (struct cw_batch *next; all != NULL; all = next) {
        next = all->next;
        all->next = oldest;
        oldest = all;
    }
    for (struct cw_batch *next; oldest != NULL; oldest = next) {
        next = oldest->next;
        cw_waiting_push(oldest, 0);
    }
}

void cw_pending_collect(struct cw_pool_context *pool_context)
{
    cw_retention_reclaim_begins();
    list_all(cw_lane_take_all(pool_context));
    cw_retention_reclaim_ends(0);
}

/* All batches of the pool_context, linked. */
static struct cw_batch *take_all(struct cw_pool_context *pool_context)
{
    /* Takes all lanes without looking at a hint: a thread may be adding its first batch. */
    struct cw_batch *all = cw_lane_take_all(pool_context), *batch;

    while ((batch = cw_waiting_pop(pool_context)) != NULL) {
        batch->next = all;
        all = batch;
    }
    return all;
}

uint32_t cw_pending_seize(struct cw_pool_context *pool_context)
{
    struct cw_batch *all = take_all(pool_context), *batch;
    uint32_t list = 0;

    while ((batch = all) != NULL) {
        all = batch->next;
        list = cw_tracker_join(list, cw_batch_dissolve(batch));
        cw_lane_put_down(pool_context);
    }
    return list;
}

static int waits_for(const struct cw_batch *batch, const struct cw_pool_context *pool_context)
{
    for (; batch != NULL; batch = batch->next)
        if (atomic_load(&pool_context->synced) <= batch->stamp)
            return 1;
    return 0;
}

/* Returns how many blocks could not be released. */
static uint32_t drain_once(struct cw_pool_context *pool_context)
{
    struct cw_batch *all = take_all(pool_context), *batch;
    uint32_t left = 0;
    int code;

    if (waits_for(all, pool_context))
        cw_patience_wait(pool_context, &code, NULL);
    while ((batch = all) != NULL) {
        all = batch->next;
        if (cw_batch_is_passed(batch)) {
            hand_over(batch, LIST, 0);
        } else {
            left += release(batch, CW_RELEASE_CONTEXT);
        }
    }
    return left;
}

/* Another thread may have a batch in hand. */
uint32_t cw_pending_drain(struct cw_pool_context *pool_context)
{
    uint64_t deadline = cw_clock_ns() + HANDS_NS;
    unsigned turns = 0;
    uint32_t left;

    for (;;) {
        left = drain_once(pool_context);
        if (left != 0 || atomic_load(&pool_context->in_hand) == 0 || cw_clock_ns() >= deadline)
            return left;
        cw_lock_relax(&turns);
    }
}

void cw_pending_thread_ends(void)
{
    uint32_t list, next;

    cw_retention_reclaim_begins();
    list_all(cw_lane_take_own());
    for (list = cw_thread_cache_empty(); list != 0; list = next) {
        struct cw_pool_context *pool_context = cw_pool_context_of(cw_tracker_at(list)->context);

        next = cw_tracker_next(list);
        cw_ready_put(cw_pool_context_pool(pool_context, cw_tracker_at(list)->class), list, 0);
    }
    cw_retention_reclaim_ends(0);
}
