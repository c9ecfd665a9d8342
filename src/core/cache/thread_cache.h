/* SPDX-License-Identifier: MIT */
/*
 * Thread caches: the idle blocks that each thread keeps to itself.
 *
 * A thread with a slot (core/process/slot.h) keeps a few ready blocks of each size class of each
 * pool, in bins. It works on them inside its slot, without a lock or a locked instruction; another
 * thread that needs them stops the slot. core/cache/retention.c grants a thread what it keeps,
 * ready or pending (core/pending/pending.c), so that the bounds of idle memory hold over all
 * threads; a grant that the thread does not use is taken back at the next sweep
 * (core/reclaim/sweep.c).
 *
 * Always: a ready block in a bin is idle, belongs to the pool that the bins name, whose
 * pool_context was open when it came in, and is at least as large as the bin's class. Ready and
 * pending bytes of a thread are at most what was granted.
 */
#ifndef CW_CORE_THREAD_CACHE_H
#define CW_CORE_THREAD_CACHE_H

#include <stdint.h>

#include "core/cache/bucket.h"
#include "core/process/slot.h"

void cw_thread_cache_reset(void);

/* ---- inside the calling thread's slot, and what is usual; 0: nothing is changed, and the
 * functions below may do it yet ---- */

/* Takes a ready block that fits, and tells its excess; counts a hit. now_ns: session's clock. */
uint32_t cw_thread_cache_take_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                                     struct cw_size_fit fit, uint64_t now_ns, uint64_t *out_excess);
/* A block that was just freed and is ready. */
int cw_thread_cache_put_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                               uint32_t block, struct cw_live_block *record, uint64_t held);
/* One that is pending: it counts as kept by the thread, and lies elsewhere. freed: just now. */
int cw_thread_cache_hold_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                                const struct cw_live_block *record, uint64_t held, int freed);

/* ---- the calling thread's own, from outside the slot ---- */

/* A ready block that fits, 0 for none; counts a hit. */
uint32_t cw_thread_cache_take(struct cw_pool *pool, struct cw_size_fit fit);

/* Keeps a ready block that counts as idle. 1, or 0 if the thread has no room for it. Blocks that
 * had to make room are linked in *out_spill, for the shared buckets. */
int cw_thread_cache_put(struct cw_pool *pool, uint32_t block, uint32_t *out_spill);
/* Makes room for one more block of this size, as put and hold above need it: 1, or 0. */
int cw_thread_cache_prepare(struct cw_pool *pool, uint8_t bin, uint64_t held);
/* Keeps blocks of a linked list from the shared bucket, as many as fit. */
uint32_t cw_thread_cache_refill(struct cw_pool *pool, uint32_t list);

/* Bytes of this class that are pending in the calling thread's hands: a hint. */
uint64_t cw_thread_cache_pending(const struct cw_pool *pool, unsigned size_class);
/* A block is no longer pending in this slot, which is stopped, or whose owner is inside. ready: it
 * goes into the bin: 1; 0: the bin is full, and the caller has the block. */
int cw_thread_cache_unhold(unsigned slot, struct cw_pool *pool, uint32_t block, int ready);

/* ---- all threads' ---- */

/* Takes every block of the pool and size class (CW_SIZE_CLASSES: of all), linked, still counted as
 * idle in the records. */
uint32_t cw_thread_cache_seize(const struct cw_pool *pool, unsigned size_class);
/* Takes the blocks of all pools that their threads have not used since the last call, linked, and
 * takes back unused grants. */
uint32_t cw_thread_cache_sweep(void);
/* 1 if a thread may have blocks of this class: a hint. */
int cw_thread_cache_has(const struct cw_pool *pool, unsigned size_class);
/* The tick (core/cache/bucket.h) of the last hit of this class in any thread; 0: none. A hint. */
uint32_t cw_thread_cache_stamp(const struct cw_pool *pool, unsigned size_class);

/* The calling thread ends: its blocks. */
uint32_t cw_thread_cache_empty(void);

#endif
