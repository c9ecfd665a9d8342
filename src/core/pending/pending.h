/* SPDX-License-Identifier: MIT */
/*
 * Pending blocks: freed by the program, while work of the device that was submitted before may
 * still run.
 *
 * A block is ready when every live context has passed a point after the free. Two kinds of points
 * count: a synchronisation of the whole context that started after the free and has returned
 * success (a ticket), and an event of the whole context that was recorded after the free. Frees
 * collect in batches (core/pending/batch.h). Each thread has a lane of its own
 * (core/pending/lane.h); what is too old for that goes to the list of its pool_context
 * (core/pending/waiting.h), from which all threads harvest. Closing a batch records one event in
 * each context that still needs one. A thread that works on a batch has taken it out of its lane or
 * list. An event that was never recorded reads as passed (the race of CUB's allocator,
 * NVIDIA/cub#156): a batch says itself whether its events are recorded, and one that was closed
 * without, because a capture kept the gate shut, is recorded before it is asked about.
 *
 * Memory in rotation is what makes events cheap: as long as a thread has little pending of a size
 * it takes one block more from the driver rather than close its batch, and so one event is for many
 * blocks. When much of a size is pending its request waits for the oldest batch, as the driver's
 * own free would have waited before. So does any request when more is pending than twice what the
 * program has ever had: one of many sizes, ahead of an H100, held five times its own memory.
 *
 * Tickets: one counter for the process, stamped into a batch at each free, drawn by each
 * synchronisation before it starts. A ticket larger than the stamp began after the free.
 */
#ifndef CW_CORE_PENDING_H
#define CW_CORE_PENDING_H

#include <stdint.h>

#include "core/pending/batch.h"
#include "core/pending/waiting.h"
#include "core/cache/pool_context.h"

void cw_pending_reset(void);

/* ---- blocks ---- */

/* 1 if blocks that are not ready can be kept: there are events, and few enough contexts, all
 * known. */
int cw_pending_is_possible(void);

/* Keeps an idle block that counts as kept, until it is ready. 0; -1: release it. May close batches,
 * so the caller holds no lock. */
int cw_pending_add(struct cw_pool *pool, uint32_t block, uint64_t stamp);

/* At a free: batches whose events have failed a request, which may release nothing, are asked about
 * once more, the oldest first and two at most, and go to the driver's own free if they fail again.
 * Otherwise an answer that fails for ever, without being fatal, would keep its blocks for ever. */
void cw_pending_give_up(struct cw_pool_context *pool_context);

/* Closes the calling thread's open batch: records its events now. may_release: without them its
 * blocks go to the driver, which waits by itself. */
void cw_pending_close(int may_release);

/*
 * Hands blocks of the pool context that have become ready, by ticket or event, to the pool
 * (core/pending/ready.h), from its list and the calling thread's lane. Asks the driver about
 * `queries` batches at most, and stops after `blocks` blocks. Returns how many were ready.
 * may_release: a batch whose events fail goes to the driver, which waits by itself; else, inside an
 * allocation, it stays.
 */
uint32_t cw_pending_harvest(struct cw_pool_context *pool_context, unsigned queries, uint32_t blocks,
                            int may_release);

/* ---- what is pending of one size ---- */

/* Bytes of a size that a thread has in rotation before it closes a batch that is not full. */
#define CW_PENDING_ROTATION ((uint64_t)2 << 20)

/* 1 if so little of this size is pending that one more block is cheaper than an event. */
int cw_pending_may_rotate(const struct cw_pool *pool, unsigned size_class);
/* 1 if so much is pending that a request waits. */
int cw_pending_is_much(const struct cw_pool *pool, unsigned size_class);
/* 1 if more of all sizes is pending than twice what the program has ever had on the device, of what
 * this thread can wait for: in the pool context's list and its own lane. */
int cw_pending_is_backlog(const struct cw_pool *pool);
/* Waits for the oldest batch of the pool context, as long as there is patience
 * (core/pending/patience.h), and hands its blocks over. Returns how many; 0: there is no batch, it
 * is not ready, or the gate is closed. */
uint32_t cw_pending_await(struct cw_pool_context *pool_context);

/* Bytes that are pending on a device, or of pinned memory (CW_DEVICE_HOST). */
uint64_t cw_pending_bytes(uint8_t device);

/* ---- all threads' ---- */

/* Moves the batches of this pool context from all lanes into its list. */
void cw_pending_collect(struct cw_pool_context *pool_context);

/* All pending blocks of the pool_context, linked: with the gate closed at the end of a context, and
 * when memory is short. */
uint32_t cw_pending_seize(struct cw_pool_context *pool_context);

/* Before a context ends: waits for blocks that only wait for this context; the others go to the
 * driver's own free, beside whatever keeps the gate shut. Returns how many blocks had to stay. */
uint32_t cw_pending_drain(struct cw_pool_context *pool_context);

/* The calling thread ends: its batches and its own ready blocks become everybody's. */
void cw_pending_thread_ends(void);

#endif
