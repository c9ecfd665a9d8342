/* SPDX-License-Identifier: MIT */
/*
 * Batches: freed blocks of one pool_context that become ready together.
 *
 * A batch belongs to who has it (core/pending/pending.c); nothing here takes a lock but that of the
 * pool_contexts' events. Always: `stamp` is at least the stamp of each free in it; its events, once
 * `recorded`, stand for all work that its blocks may still be used by.
 */
#ifndef CW_CORE_BATCH_H
#define CW_CORE_BATCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/cache/pool_context.h"

/* It is closed when it holds so much: later frees would hold it back. */
#define CW_BATCH_MOST_BLOCKS 64u
#define CW_BATCH_MOST_BYTES  ((uint64_t)64 << 20)

struct cw_mark {
    struct cw_pool_context *pool_context;
    uint64_t event; /* 0: passed */
};

struct cw_batch {
    struct cw_batch *next;
    struct cw_pool_context *pool_context; /* of all its blocks */
    uint32_t head, count;
    uint64_t bytes, host_bytes; /* on the device, and pinned */
    uint64_t stamp;             /* the last ticket drawn before the last free */
    int recorded;
    uint32_t marks; /* events, one for each context that had not passed when it was recorded */
    struct cw_mark mark[CW_POOL_CONTEXTS_LIVE];
};

extern CW_HIDDEN _Atomic uint32_t cw_batches; /* that there are, open ones included */

extern CW_HIDDEN _Atomic uint64_t cw_batch_tickets;

/* The number of the last ticket drawn: a free that has it is covered by the next. Read after the
 * work that the program has submitted, in every thread's eyes: the claim of the block comes before,
 * which is a barrier where locked instructions are. */
static inline uint64_t cw_batch_stamp(void)
{
#if defined(__x86_64__)
    atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
    return atomic_load_explicit(&cw_batch_tickets, memory_order_relaxed);
}

/* 1 if anything may be pending anywhere: a hint. */
static inline int cw_batch_is_any(void)
{
    return atomic_load_explicit(&cw_batches, memory_order_relaxed) != 0;
}

/* ---- synchronisations of a whole context, the program's or ours ---- */

/* Before: the ticket. */
uint64_t cw_batch_sync_begin(void);
/* After it has returned success. */
void cw_batch_sync_end(struct cw_pool_context *pool_context, uint64_t ticket);

/* ---- batches ---- */

/* NULL without memory. */
struct cw_batch *cw_batch_make(struct cw_pool_context *pool_context);
/* Frees the batch and its events. Returns its blocks, linked. */
uint32_t cw_batch_dissolve(struct cw_batch *batch);

static inline int cw_batch_is_full(const struct cw_batch *batch)
{
    return batch->count >= CW_BATCH_MOST_BLOCKS ||
           batch->bytes + batch->host_bytes >= CW_BATCH_MOST_BYTES;
}

void cw_batch_append(struct cw_batch *batch, uint32_t block, uint64_t stamp);

/* 1 if no event is needed: every live context has been waited for since. */
int cw_batch_is_passed(const struct cw_batch *batch);

/* Inside the gate. 0: a context that has to pass a point may not be asked for one now: a thread is
 * in a free there (cw_pool_context_is_in_free), or it is closing. */
int cw_batch_may_record(const struct cw_batch *batch);
/* Inside the gate: marks a point in each context that has to pass one. 0, or -1 when a context gave
 * no event. */
int cw_batch_record(struct cw_batch *batch);
/* 1 if its own context has work that its blocks wait for: 0 also where only others have. */
int cw_batch_waits_for_own(const struct cw_batch *batch);
/* Inside the gate, once it is recorded. 1: every context has passed; 0: not yet; -1: failed. */
int cw_batch_query(struct cw_batch *batch);

#endif
