/* SPDX-License-Identifier: MIT */
/*
 * The batches that wait for the device in no thread's lane: one list for each pool context, oldest
 * first.
 *
 * Guarded by the lock of pool_contexts (CW_RANK_POOL). A thread that works on a batch has taken it
 * out, and has it in hand (core/pending/lane.h) until it is in a list again or dissolved. A pool
 * context that is not open takes none: blocks that come in then wait in limbo for the outcome, or
 * are forgotten. Listed blocks are in no thread's grant (core/cache/thread_cache.h). No call of the
 * driver.
 */
#ifndef CW_CORE_WAITING_H
#define CW_CORE_WAITING_H

#include <stdint.h>

#include "core/pending/batch.h"

/* A batch in hand into the list of its pool_context; front: it was the oldest. */
void cw_waiting_push(struct cw_batch *batch, int front);
/* The oldest batch, in hand; NULL: there is none. */
struct cw_batch *cw_waiting_pop(struct cw_pool_context *pool_context);
/* An empty batch in hand; NULL without memory. */
struct cw_batch *cw_waiting_make(struct cw_pool_context *pool_context);

/* Linked idle blocks of the pool_context that have to wait again. */
void cw_waiting_add(struct cw_pool_context *pool_context, uint32_t list);
/* The same of blocks that come in while the pool_context may not be open. */
void cw_waiting_defer(struct cw_pool_context *pool_context, uint32_t list);

#endif
