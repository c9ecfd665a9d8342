/* SPDX-License-Identifier: MIT */
/*
 * Relief: which idle blocks go back to the driver when memory is short, or the program needs it no
 * more.
 *
 * For a request that found no memory (core/ladder.h) it happens inside the allocation; for the
 * level of pressure, and after the program has freed nearly everything, only inside the program's
 * own frees and synchronisations, because the driver's free may wait for the device. No lock is
 * held across the driver, and none for longer than some hundred blocks take.
 */
#ifndef CW_CORE_RELIEF_H
#define CW_CORE_RELIEF_H

#include <stdint.h>

#include "base/options.h"
#include "core/keep.h"
#include "core/realm.h"

void cw_relief_init(const struct cw_options *options);
void cw_relief_reset(void);

/* ---- for a request that found no memory; each returns the bytes that it gave back ---- */

/* The smallest idle block of `need` bytes; if there is none, the largest until they are enough. */
uint64_t cw_relief_sufficient(uint8_t device, uint64_t need);
/* All that is ready, in threads' own hands too; pinned memory as well. */
uint64_t cw_relief_all(uint8_t device);
/* Waits for the contexts of the device in which something is pending, and gives everything back. */
uint64_t cw_relief_rest(uint8_t device);
/* Blocks that have become ready, of all contexts of the device. */
uint32_t cw_relief_harvest(uint8_t device);

/* Another thread has taken idle blocks into its hands and is still giving them back: waits until it
 * has done so. 1 if any reclaim has ended since cw_relief_reclaims() was `since`. */
static inline uint32_t cw_relief_reclaims(void)
{
    return atomic_load_explicit(&cw_keep_reclaims_done, memory_order_relaxed);
}
int cw_relief_wait_for_others(uint32_t since);

/* ---- for another process that asks (core/control.h); each returns the bytes ---- */

/* All that is ready. gathers: also what threads freed last and still keep as not ready; may_wait:
 * and what is not, after a wait for the contexts, in a call of the program's only. */
uint64_t cw_relief_asked(uint8_t device, int gathers, int may_wait);
/* What lies idle beyond `most`; the largest blocks first. */
uint64_t cw_relief_surplus(uint8_t device, uint64_t most);

/* ---- inside the program's frees and synchronisations ---- */

/* What the levels of pressure ask for, on each device for which it is due. */
void cw_relief_pressure(void);
/* The program has waited for the whole context: if nearly nothing is live on its device, what lies
 * idle goes back; at most a few times in POOL_IDLE, so that a program that empties itself in a loop
 * keeps the use of the pool. */
void cw_relief_emptied(uint8_t device, uint64_t now_ns);
/* For a thread of our own, while the program makes no calls: what has been idle for POOL_IDLE. */
void cw_relief_old(uint8_t device, uint64_t now_ns);
/* For a thread of our own. All that lies idle on the device goes back
 * if nothing was served or kept there since POOL_IDLE. */
void cw_relief_asleep(uint8_t device, uint64_t now_ns);

#endif
