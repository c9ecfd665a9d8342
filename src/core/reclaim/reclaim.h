/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: which idle blocks are released when memory is short or the program no longer needs them.
 *
 * For a request that found no memory (core/request/ladder.h) it happens inside the allocation, and
 * takes as long as it takes. Work that nobody waits for (the level of pressure, blocks beyond the
 * cap, old ones) is done in turns: inside the program's own frees and waits, or by the background
 * thread, each of at most CW_RELIEF_CALLS calls of the driver or CW_RELIEF_NS; the rest follows in
 * the next. A call of the program has one turn, whatever there is to do, also for a neighbour. No
 * lock is held across the driver, and none for longer than some hundred blocks take.
 */
#ifndef CW_CORE_RECLAIM_H
#define CW_CORE_RECLAIM_H

#include <stdint.h>

#include "base/options/options.h"
#include "core/cache/retention.h"
#include "core/cache/pool_context.h"
#include "core/limits/reclaim_due.h"

#define CW_RELIEF_CALLS 64u
#define CW_RELIEF_NS    UINT64_C(5000000)

void cw_reclaim_init(const struct cw_options *options);
void cw_reclaim_reset(void);

/* ---- for a request that found no memory; each returns the bytes that it gave back ---- */

/* Moves threads' own blocks into the shared buckets and their pending ones into the lists of
 * batches, where the functions below find them; the second the ready ones of this device only. */
void cw_reclaim_gather(uint8_t device);
void cw_reclaim_gather_ready(uint8_t device);
/* Below, may_wait: a free may wait for work of the calling thread's context, and where there is
 * nothing else, of others; else only contexts without work give. */
/* The smallest idle block of `need` bytes; if there is none, the largest until they are enough. */
uint64_t cw_reclaim_sufficient(uint8_t device, uint64_t need, int may_wait);
/* All ready blocks, including pinned memory and threads' own: those of contexts without work and of
 * the calling thread's; if there are none, those of the others, which takes as long as their work.
 * is_pinned: it is pinned memory that is short. *out_has_more: others have some, for the next call.
 */
uint64_t cw_reclaim_all(uint8_t device, int is_pinned, int may_wait, int *out_has_more);
/* Waits for the contexts of the device in which something is pending, and gives everything back, in
 * the same order. */
uint64_t cw_reclaim_rest(uint8_t device, int may_wait, int *out_has_more);
/* Blocks that have become ready, of all contexts of the device. */
uint32_t cw_reclaim_harvest(uint8_t device);

/* Waits while other threads are still releasing idle blocks. 1 if any reclaim has ended since
 * cw_reclaim_reclaims() was `since`. */
static inline uint32_t cw_reclaim_reclaims(void)
{
    return atomic_load_explicit(&cw_retention_reclaims_done, memory_order_relaxed);
}
int cw_reclaim_wait_for_others(uint32_t since);

/* ---- for another process that asks (core/control/control.h); each returns the bytes ---- */

/* All ready blocks. gathers: also those in threads' lanes that turn out to be ready. may_wait: also
 * the pending ones, after a wait for the contexts; only inside a call of the program. */
uint64_t cw_reclaim_asked(uint8_t device, int gathers, int may_wait);
/* Idle bytes beyond `most`; the largest blocks first. */
uint64_t cw_reclaim_surplus(uint8_t device, uint64_t most);
/* What is kept beyond POOL_MAX, which was lowered: what need not wait for the device goes now, and
 * the rest is due (CW_RECLAIM_MOST). */
uint64_t cw_reclaim_excess(uint8_t device);

/* ---- what nobody waits for ---- */

/* One turn at what is due (core/limits/reclaim_due.h). Inside a free or a wait of the program's, or
 * on the background thread. A request that finds no memory waits for blocks on their way back
 * (cw_reclaim_wait_for_others). */
void cw_reclaim_work(void);

static inline void cw_reclaim_look(void)
{
    if (cw_reclaim_is_due())
        cw_reclaim_work();
}

/* Before the driver is asked for so many more bytes, inside an allocation: releases what would be
 * beyond the cap, and what is beyond a lowered POOL_MAX, but only if the context has no work, so
 * that the free does not wait. A kernel may run until the program does something more: waiting for
 * it here would be a deadlock. */
void cw_reclaim_before_miss(struct cw_pool *pool, uint64_t bytes);

/* For the background thread, when the program makes no calls: blocks that have become ready by
 * themselves count as idle from now on. */
void cw_reclaim_settle(void);
/* 1 if no context has work that the driver's free of an idle block might wait for, as far as the
 * driver can be asked (core/pending/patience.h). */
int cw_reclaim_is_calm(void);

#endif
