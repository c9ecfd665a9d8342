/* SPDX-License-Identifier: MIT */
/*
 * Keeping: what may lie idle, where it goes when it is ready, and what goes back to the driver.
 *
 * Owns the limits of idle memory (POOL_MAX, POOL_BUCKET_MAX, POOL_IDLE, the least that stays free)
 * and every release of an idle block; when memory is short, core/relief.c chooses what is released.
 * Nothing is given back inside an allocation, where the device might have to be waited for, unless
 * the driver has said that it is out of memory. No lock of its own; none is held across the driver.
 */
#ifndef CW_CORE_KEEP_H
#define CW_CORE_KEEP_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options.h"
#include "core/bucket.h"
#include "core/pressure.h"

void cw_keep_init(struct cw_arena *arena, const struct cw_options *options);

/* POOL_MAX of the device, or of pinned memory (CW_DEVICE_HOST), while the process runs; what is
 * kept beyond it stays until somebody gives it back. */
void cw_keep_set_most(uint8_t device, uint64_t bytes);

/* 1 if one more block of this size may lie idle in the shared buckets. */
int cw_keep_has_room(const struct cw_pool *pool, uint64_t held);

/* Blocks up to this size are kept without a look at the limits. */
extern CW_HIDDEN _Atomic uint64_t cw_keep_unchecked;

/* 1 if a block of this size, just being freed, has to go to the driver at once. */
static inline int cw_keep_must_ask(const struct cw_pool *pool, uint64_t held)
{
    return (CW_UNLIKELY(held > atomic_load_explicit(&cw_keep_unchecked, memory_order_relaxed)) ||
            CW_UNLIKELY(cw_pressure_level(pool->device) == CW_LEVEL_CRITICAL)) &&
           !cw_keep_has_room(pool, held);
}

/* What to ask the driver for on a miss. */
uint64_t cw_keep_round(uint8_t device, uint64_t bytes);

/* A retired, ready block, freed at now_ns (0: not asked, it is small): to the calling thread or to
 * all, or back. */
void cw_keep_block(struct cw_pool *pool, uint32_t block, uint64_t now_ns);
/* An idle, ready block for all, whatever the limits; kept: and counts it as a kept free. */
void cw_keep_put(struct cw_pool *pool, uint32_t block, int kept);
/* Linked, counted blocks of the realm have become ready. may_release: those beyond the limits go
 * back to the driver now, which may wait for the device: never inside an allocation. */
void cw_keep_ready(struct cw_realm *realm, uint32_t list, int may_release);

enum cw_release {
    CW_RELEASE_FULL,     /* beyond what may be kept */
    CW_RELEASE_IDLE,     /* for POOL_IDLE */
    CW_RELEASE_OOM,      /* for a request that found no memory */
    CW_RELEASE_PRESSURE, /* because of the level of the device */
    CW_RELEASE_EMPTY,    /* the program had freed nearly everything */
};
/* Idle blocks are on their way back to the driver, from before they are taken out of the pool until
 * the driver has them: `bytes` of them, which is what the second returns. */
void cw_keep_reclaim_begins(void);
uint64_t cw_keep_reclaim_ends(uint64_t bytes);
extern CW_HIDDEN _Atomic uint32_t cw_keep_reclaims_running;
extern CW_HIDDEN _Atomic uint32_t cw_keep_reclaims_done; /* that gave something back */

/* Linked idle blocks go back to the driver; what cannot now is kept. The bytes given back. */
uint64_t cw_keep_release(struct cw_realm *realm, uint32_t list, enum cw_release why);
/* Linked idle blocks whose memory went with their context. */
void cw_keep_forget(struct cw_realm *realm, uint32_t list);
/* Gives back what has been idle for too long, if it is time to look. */
void cw_keep_trim(struct cw_realm *realm, uint64_t now_ns);
/* Bytes of the device that the program has freed and the pool keeps, ready or not, or is just
 * giving back. */
uint64_t cw_keep_idle(uint8_t device);

/* The calling thread ends: what it kept to itself is for all. */
void cw_keep_thread_ends(void);

#endif
