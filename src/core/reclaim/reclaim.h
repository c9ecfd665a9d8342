/* SPDX-License-Identifier: MIT */
/*
 * Relief: which idle blocks go back to the driver when memory is short, or the program needs it no
 * more.
 *
 * For a request that found no memory (core/request/ladder.h) it happens inside the allocation, and
 * takes as long as it takes. What nobody waits for (the level of pressure, blocks beyond the cap,
 * old ones) is done in turns: inside the program's own frees and waits, or by the background
 * thread, each of at most CW_RELIEF_CALLS calls of the driver or CW_RELIEF_NS; the rest follows in
 * the next. No lock is held across the driver, and none for longer than some hundred blocks take.
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

/* What threads keep to themselves comes into the shared buckets, and what they have freed last into
 * the lists of batches, where the functions below find it. */
void cw_reclaim_gather(uint8_t device);
/* The smallest idle block of `need` bytes; if there is none, the largest until they are enough. */
uint64_t cw_reclaim_sufficient(uint8_t device, uint64_t need);
/* All that is ready, in threads' own hands too; pinned memory as well. */
uint64_t cw_reclaim_all(uint8_t device);
/* Waits for the contexts of the device in which something is pending, and gives everything back. */
uint64_t cw_reclaim_rest(uint8_t device);
/* Blocks that have become ready, of all contexts of the device. */
uint32_t cw_reclaim_harvest(uint8_t device);

/* Another thread has taken idle blocks into its hands and is still giving them back: waits until it
 * has done so. 1 if any reclaim has ended since cw_reclaim_reclaims() was `since`. */
static inline uint32_t cw_reclaim_reclaims(void)
{
    return atomic_load_explicit(&cw_retention_reclaims_done, memory_order_relaxed);
}
int cw_reclaim_wait_for_others(uint32_t since);

/* ---- for another process that asks (core/control/control.h); each returns the bytes ---- */

/* All that is ready. gathers: also what threads freed last and still keep as not ready; may_wait:
 * and what is not, after a wait for the contexts, in a call of the program's only. */
uint64_t cw_reclaim_asked(uint8_t device, int gathers, int may_wait);
/* What lies idle beyond `most`; the largest blocks first. */
uint64_t cw_reclaim_surplus(uint8_t device, uint64_t most);

/* ---- what nobody waits for ---- */

/* One turn at what is due (core/limits/reclaim_due.h). Inside a free or a wait of the program's,
 * or on the background thread. What is on its way back a request that finds no memory waits for
 * (cw_reclaim_wait_for_others). */
void cw_reclaim_work(void);

static inline void cw_reclaim_look(void)
{
    if (cw_reclaim_is_due())
        cw_reclaim_work();
}

/* Before the driver is asked for so many bytes more, inside an allocation: what is beyond the cap
 * then goes, but only if the driver says that the context has no work, so that its free has nothing
 * to wait for. A kernel that runs until the program has done something more must not be waited for
 * here. */
void cw_reclaim_before_miss(struct cw_pool *pool, uint64_t bytes);

/* For the background thread, when the program makes no calls: blocks that have become ready by
 * themselves count as idle from now on. */
void cw_reclaim_settle(void);

#endif
