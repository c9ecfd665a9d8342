/* SPDX-License-Identifier: MIT */
/*
 * The lane of a thread: batches of blocks that it has freed and that are not ready yet.
 *
 * One batch is open and takes more blocks, a few are closed. A lane is worked on inside its slot,
 * by its thread or while that is stopped; no lock. Always: all blocks of a lane's batches are held
 * by the thread (core/cache/thread_cache.h), and only of pool_contexts that were open when they
 * came in.
 *
 * A batch taken out of a lane, or out of the list of its pool context (core/pending/waiting.h), is
 * in hand until it is in one of them again or dissolved. The end of its context waits for that.
 */
#ifndef CW_CORE_LANE_H
#define CW_CORE_LANE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/pending/batch.h"
#include "core/process/slot.h"

void cw_lane_reset(void);

/* Of the batch's pool_context. */
static inline void cw_lane_take_in_hand(struct cw_pool_context *pool_context)
{
    atomic_fetch_add(&pool_context->in_hand, 1);
}

static inline void cw_lane_put_down(struct cw_pool_context *pool_context)
{
    atomic_fetch_sub(&pool_context->in_hand, 1);
}

/* The most blocks in the calling thread's next batch, and in rotation of one size. */
uint32_t cw_lane_most_blocks(void);

/* Bytes on a device, or of pinned memory, in all lanes. */
uint64_t cw_lane_bytes(uint8_t device);
/* The same in the calling thread's. */
uint64_t cw_lane_own_bytes(uint8_t device);

/* ---- the calling thread's ---- */

/* The usual case, inside the slot: adds a block that was just freed to the open batch. 0: nothing
 * has changed. */
int cw_lane_add_inside(const struct cw_slot *slot, const struct cw_pool *pool, uint32_t block,
                       struct cw_live_block *record, uint64_t held, uint64_t stamp);
/* The same of a block that counts as kept already. 0: the thread cannot hold it. What has to be
 * closed to make room is in *out_full, in hand; NULL: nothing. */
int cw_lane_add(struct cw_pool *pool, uint32_t block, uint64_t stamp, struct cw_batch **out_full);

/* Takes the open batch if it belongs to the pool_context (NULL: to any) and, with `passed`, is
 * ready; the oldest closed one if it belongs to the pool_context. In hand, its blocks still held;
 * or NULL. */
struct cw_batch *cw_lane_detach_open(struct cw_pool_context *pool_context, int passed);
struct cw_batch *cw_lane_detach_oldest(struct cw_pool_context *pool_context);

/* Puts a closed batch of held blocks, in hand, into the lane; front: it was the oldest. Returns the
 * batch that has to leave instead (this one if its pool_context is not open): in hand, not held; or
 * NULL. */
struct cw_batch *cw_lane_keep(struct cw_batch *batch, int front);
/* The thread no longer holds its blocks. */
void cw_lane_unhold(struct cw_batch *batch);
/* Its blocks are ready and go to the thread's cache. Returns those without room there, linked. */
uint32_t cw_lane_take_in(struct cw_batch *batch);

/* All of its batches, newest first, linked, in hand, not held. */
struct cw_batch *cw_lane_take_own(void);

/* ---- all threads' ---- */

/* The batches of the pool_context, newest first in each lane, linked, in hand, not held. */
struct cw_batch *cw_lane_take_all(const struct cw_pool_context *pool_context);

#endif
