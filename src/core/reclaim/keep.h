/* SPDX-License-Identifier: MIT */
/*
 * Keeping: what may lie idle, where it goes when it is ready, and what goes back to the driver.
 *
 * Owns the bounds of idle memory (POOL_MAX, POOL_BUCKET_MAX, the least that stays free), the grants
 * of threads (core/cache/thread_cache.h), and every release of an idle block; which ones are
 * released when memory is short, or not needed any more, core/reclaim/relief.c chooses. A block
 * that is freed comes in if there is room for it. What is in is given back inside the program's own
 * frees and waits, never inside an allocation, where the device might have to be waited for, unless
 * the driver has said that it is out of memory. No lock of its own; none is held across the driver.
 */
#ifndef CW_CORE_KEEP_H
#define CW_CORE_KEEP_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "core/cache/admission.h"
#include "core/cache/bucket.h"
#include "core/limits/pressure.h"

void cw_keep_init(struct cw_arena *arena, const struct cw_options *options);

/* POOL_MAX of the device, or of pinned memory (CW_DEVICE_HOST), while the process runs; what is
 * kept beyond it stays until somebody gives it back. */
void cw_keep_set_most(uint8_t device, uint64_t bytes);

/* 1 if one more block of this size may lie idle. */
int cw_keep_has_room(const struct cw_pool *pool, uint64_t held);

/* So many bytes more may be kept by a thread: 1, and they count as idle from now on; or 0. May be
 * called inside a slot. held: of the block that they are for. */
int cw_keep_grant(const struct cw_pool *pool, uint64_t bytes, uint64_t held);
void cw_keep_ungrant(uint8_t device, uint64_t bytes);

/* Requests that have found no memory on the device (or of the host) and are looking for some. */
extern CW_HIDDEN _Atomic uint32_t cw_keep_wanted[CW_DEVICES];

static inline int cw_keep_is_wanted(uint8_t device)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_keep_wanted[device], memory_order_relaxed) != 0);
}

/* From now on what is freed on the device goes to the driver; and no more. */
void cw_keep_want(uint8_t device);
void cw_keep_unwant(uint8_t device);

/* A ready block that was just freed, and is counted as kept: to the calling thread or to all, or
 * back. */
void cw_keep_block(struct cw_pool *pool, uint32_t block);
/* An idle, ready block for all, whatever the bounds; kept: and counts it as a kept free. */
void cw_keep_put(struct cw_pool *pool, uint32_t block, int kept);
/* Linked, counted blocks of the realm, for all. */
void cw_keep_share(struct cw_realm *realm, uint32_t list);
/* The same of blocks that have just become ready: for the calling thread first. */
void cw_keep_ready(struct cw_realm *realm, uint32_t list);

/* Idle memory may have grown: sees whether some of it is due to go, or needs a thread that looks
 * after it. */
void cw_keep_check(uint8_t device);

enum cw_release {
    CW_RELEASE_FULL,     /* beyond what may be kept */
    CW_RELEASE_IDLE,     /* nobody has needed it for some time */
    CW_RELEASE_OOM,      /* for a request that found no memory */
    CW_RELEASE_PRESSURE, /* because of the level of the device */
    CW_RELEASE_CONTEXT,  /* its context ends, and others may still use it */
};
/* Idle blocks are in the calling thread's hands, from before they are taken out of a thread's cache
 * or the pool until they lie where others find them, or the driver has them: `bytes` of them, which
 * is what the second returns. Who finds no memory meanwhile waits (cw_relief_wait_for_others). */
void cw_keep_reclaim_begins(void);
uint64_t cw_keep_reclaim_ends(uint64_t bytes);
extern CW_HIDDEN _Atomic uint32_t cw_keep_reclaims_running;
extern CW_HIDDEN _Atomic uint32_t cw_keep_reclaims_done; /* that gave something back */

/* Linked idle blocks go back to the driver; what cannot now is kept. The bytes given back. */
uint64_t cw_keep_release(struct cw_realm *realm, uint32_t list, enum cw_release why);
void cw_keep_release_one(struct cw_pool *pool, uint32_t block, enum cw_release why);
/* Linked idle blocks whose memory went with their context. */
void cw_keep_forget(struct cw_realm *realm, uint32_t list);

/* Bytes of the device that the program has freed and the pool keeps, ready or not, or is just
 * giving back. Exact, and some microseconds' work. */
uint64_t cw_keep_idle(uint8_t device);
/* Around a question to the driver for what is free and one here for what is idle: 1 if since
 * cw_keep_motion no block was on its way from here to there, and so counted twice or not at all. */
uint64_t cw_keep_motion(void);
int cw_keep_is_settled(uint64_t motion);
/* The same with what threads were granted and do not use; cheap. */
uint64_t cw_keep_counted(uint8_t device);

/* The calling thread ends: what it kept to itself is for all. */
void cw_keep_thread_ends(void);

#endif
