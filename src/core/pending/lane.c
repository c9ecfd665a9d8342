/* SPDX-License-Identifier: MIT */
/* Batches that threads have to themselves. See lane.h. */
#include "core/pending/lane.h"

#include <stddef.h>

#include "base/compiler.h"
#include "core/cache/pool_context.h"
#include "core/cache/thread_cache.h"
#include "core/account/tracker.h"

/* Closed batches that a thread keeps to itself; an older one is for all. */
#define LANE_BATCHES 2u
/* At most one in so many of the blocks that a thread has freed is in a batch. */
#define FREES_SHARE 8u

struct __attribute__((aligned(128))) lane {
    struct cw_batch *open;
    struct cw_batch *first, *last; /* closed, oldest first */
    unsigned closed;
    uint32_t frees; /* that the lane has taken in */
};

static struct lane lanes[CW_SLOTS];
static _Atomic uint64_t held_bytes[CW_SLOTS][CW_DEVICES]; /* written inside the slot */

/* Few at first, so that a short program has the use of the pool, and in a long one few events. */
static uint32_t most_blocks(const struct lane *lane)
{
    uint32_t most = lane->frees / FREES_SHARE;

    return most < 1 ? 1 : most > CW_BATCH_MOST_BLOCKS ? CW_BATCH_MOST_BLOCKS : most;
}

static int is_full(const struct lane *lane)
{
    return lane->open->count >= most_blocks(lane) || cw_batch_is_full(lane->open);
}

uint32_t cw_lane_most_blocks(void)
{
    return most_blocks(&lanes[cw_thread_slot()]);
}

void cw_lane_reset(void)
{
    for (int i = 0; i < CW_SLOTS; i++) {
        lanes[i] = (struct lane){0};
        for (int d = 0; d < CW_DEVICES; d++)
            atomic_store_explicit(&held_bytes[i][d], 0, memory_order_relaxed);
    }
}

uint64_t cw_lane_bytes(uint8_t device)
{
    uint64_t sum = 0;

    for (int i = 0; i < CW_SLOTS; i++)
        sum += atomic_load_explicit(&held_bytes[i][device], memory_order_relaxed);
    return sum;
}

uint64_t cw_lane_own_bytes(uint8_t device)
{
    return atomic_load_explicit(&held_bytes[cw_thread_slot()][device], memory_order_relaxed);
}

/* ---- inside the slot, or while its owner is stopped ---- */

static struct cw_pool *pool_of(const struct cw_batch *batch, uint32_t block)
{
    return cw_pool_context_pool(batch->pool_context, cw_tracker_at(block)->class);
}

static void count_held(unsigned slot, const struct cw_batch *batch, uint64_t sign)
{
    cw_slot_add(&held_bytes[slot][batch->pool_context->device], sign * batch->bytes);
    cw_slot_add(&held_bytes[slot][CW_DEVICE_HOST], sign * batch->host_bytes);
}

/* The thread no longer holds the blocks of the batch. The owner is inside the slot, or it is
 * stopped. */
static void unhold(unsigned slot, const struct cw_batch *batch)
{
    count_held(slot, batch, (uint64_t)-1);
    for (uint32_t block = batch->head; block != 0; block = cw_tracker_next(block))
        cw_thread_cache_unhold(slot, pool_of(batch, block), block, 0);
}

/* The same of blocks that are ready. */
static uint32_t take_in(unsigned slot, const struct cw_batch *batch)
{
    uint32_t left = 0, next;

    count_held(slot, batch, (uint64_t)-1);
    for (uint32_t block = batch->head; block != 0; block = next) {
        next = cw_tracker_next(block);
        if (cw_thread_cache_unhold(slot, pool_of(batch, block), block, 1))
            continue;
        atomic_store_explicit(&cw_tracker_at(block)->link, left, memory_order_relaxed);
        left = block;
    }
    return left;
}

static void push(struct lane *lane, struct cw_batch *batch, int front)
{
    if (front || lane->first == NULL) {
        batch->next = lane->first;
        if (lane->first == NULL)
            lane->last = batch;
        lane->first = batch;
    } else {
        batch->next = NULL;
        lane->last->next = batch;
        lane->last = batch;
    }
    lane->closed++;
}

static struct cw_batch *pop(struct lane *lane)
{
    struct cw_batch *batch = lane->first;

    if (batch == NULL)
        return NULL;
    lane->first = batch->next;
    lane->closed--;
    return batch;
}

/* What has to be closed to make room is in *out_full. */
static int add(unsigned slot, struct cw_pool *pool, uint32_t block, uint64_t stamp,
               struct cw_batch **out_full)
{
    const struct cw_live_block *record = cw_tracker_at(block);
    uint64_t held = cw_tracker_held(block);
    struct lane *lane = &lanes[slot];

    if (lane->open != NULL && (lane->open->pool_context != pool->pool_context || is_full(lane))) {
        *out_full = lane->open;
        cw_lane_take_in_hand(lane->open->pool_context);
        lane->open = NULL;
    }
    if (lane->open == NULL)
        lane->open = cw_batch_make(pool->pool_context);
    if (lane->open == NULL || !cw_thread_cache_hold_inside(&cw_slots[slot], pool, record, held, 0))
        return 0;
    lane->frees++;
    cw_batch_append(lane->open, block, stamp);
    cw_slot_add(&held_bytes[slot][pool->device], held);
    return 1;
}

/* Those of the pool_context (NULL: of all), in front of the list. */
static struct cw_batch *take_lane(unsigned slot, const struct cw_pool_context *pool_context,
                                  struct cw_batch *all)
{
    struct lane *lane = &lanes[slot];
    struct cw_batch *batch, *closed = lane->first;

    lane->first = NULL;
    lane->closed = 0;
    while ((batch = closed) != NULL) {
        closed = batch->next;
        if (pool_context != NULL && batch->pool_context != pool_context) {
            push(lane, batch, 0);
            continue;
        }
        unhold(slot, batch);
        cw_lane_take_in_hand(batch->pool_context);
        batch->next = all;
        all = batch;
    }
    batch = lane->open;
    if (batch != NULL && (pool_context == NULL || batch->pool_context == pool_context)) {
        lane->open = NULL;
        unhold(slot, batch);
        cw_lane_take_in_hand(batch->pool_context);
        batch->next = all;
        all = batch;
    }
    return all;
}

/* ---- the calling thread's ---- */

int cw_lane_add_inside(const struct cw_slot *slot, const struct cw_pool *pool, uint32_t block,
                       struct cw_live_block *record, uint64_t held, uint64_t stamp)
{
    struct lane *lane = &lanes[slot - cw_slots];

    if (CW_UNLIKELY(lane->open == NULL || lane->open->pool_context != pool->pool_context ||
                    is_full(lane)) ||
        CW_UNLIKELY(!cw_thread_cache_hold_inside(slot, pool, record, held, 1)))
        return 0;
    lane->frees++;
    cw_batch_append(lane->open, block, stamp);
    cw_slot_add(&held_bytes[slot - cw_slots][pool->device], held);
    return 1;
}

int cw_lane_add(struct cw_pool *pool, uint32_t block, uint64_t stamp, struct cw_batch **out_full)
{
    struct cw_slot *slot = NULL;
    int is_added;

    *out_full = NULL;
    if (cw_thread_cache_prepare(pool, cw_tracker_at(block)->cell, cw_tracker_held(block)))
        slot = cw_slot_enter();
    if (slot == NULL)
        return 0;
    is_added = add((unsigned)(slot - cw_slots), pool, block, stamp, out_full);
    cw_slot_leave(slot);
    return is_added;
}

struct cw_batch *cw_lane_detach_open(struct cw_pool_context *pool_context, int passed)
{
    struct cw_slot *slot = cw_slot_enter_always();
    struct cw_batch **open, *batch;

    if (slot == NULL)
        return NULL;
    open = &lanes[slot - cw_slots].open;
    batch = *open;
    if (batch != NULL && (pool_context == NULL || batch->pool_context == pool_context) &&
        (!passed || cw_batch_is_passed(batch))) {
        *open = NULL;
        cw_lane_take_in_hand(batch->pool_context);
    } else {
        batch = NULL;
    }
    cw_slot_leave(slot);
    return batch;
}

struct cw_batch *cw_lane_detach_oldest(struct cw_pool_context *pool_context)
{
    struct cw_slot *slot = cw_slot_enter_always();
    struct cw_batch *batch = NULL;
    struct lane *lane;

    if (slot == NULL)
        return NULL;
    lane = &lanes[slot - cw_slots];
    if (lane->first != NULL && lane->first->pool_context == pool_context) {
        batch = pop(lane);
        cw_lane_take_in_hand(pool_context);
    }
    cw_slot_leave(slot);
    return batch;
}

struct cw_batch *cw_lane_keep(struct cw_batch *batch, int front)
{
    struct cw_slot *slot = cw_slot_enter_always();
    struct lane *lane = &lanes[slot - cw_slots];
    struct cw_batch *leaving = NULL;

    if (atomic_load_explicit(&batch->pool_context->state, memory_order_acquire) ==
        CW_POOL_CONTEXT_OPEN) {
        push(lane, batch, front);
        cw_lane_put_down(batch->pool_context);
        if (lane->closed > LANE_BATCHES)
            leaving = pop(lane);
        if (leaving != NULL)
            cw_lane_take_in_hand(leaving->pool_context);
    } else {
        leaving = batch;
    }
    if (leaving != NULL)
        unhold((unsigned)(slot - cw_slots), leaving);
    cw_slot_leave(slot);
    return leaving;
}

void cw_lane_unhold(struct cw_batch *batch)
{
    struct cw_slot *slot = cw_slot_enter_always();

    unhold((unsigned)(slot - cw_slots), batch);
    cw_slot_leave(slot);
}

uint32_t cw_lane_take_in(struct cw_batch *batch)
{
    struct cw_slot *slot = cw_slot_enter_always();
    uint32_t left = take_in((unsigned)(slot - cw_slots), batch);

    cw_slot_leave(slot);
    return left;
}

struct cw_batch *cw_lane_take_own(void)
{
    struct cw_slot *slot = cw_slot_enter();
    struct cw_batch *all;

    if (slot == NULL) /* stopped: the next owner of the slot finds them, or who stops it again */
        return NULL;
    all = take_lane((unsigned)(slot - cw_slots), NULL, NULL);
    cw_slot_leave(slot);
    return all;
}

/* ---- all threads' ---- */

struct cw_batch *cw_lane_take_all(const struct cw_pool_context *pool_context)
{
    uint64_t mask = cw_slot_used();
    struct cw_batch *all = NULL;

    cw_slot_stop(mask);
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
        all = take_lane((unsigned)__builtin_ctzll(rest), pool_context, all);
    cw_slot_resume(mask);
    return all;
}
