/* SPDX-License-Identifier: MIT */
/*
 * Idle memory that is due for release, and why: set by whoever finds out, done by
 * core/reclaim/reclaim_turn.c inside the program's frees and waits, or by the background thread. A
 * look costs one load of a line that is rarely written. No lock.
 */
#ifndef CW_CORE_RECLAIM_DUE_H
#define CW_CORE_RECLAIM_DUE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "live/layout.h"

enum cw_reclaim_reason {
    CW_RECLAIM_LEVEL = 1 << 0, /* the level of pressure has risen, or stays high */
    CW_RECLAIM_CAP = 1 << 1,   /* more is held than the program has needed lately */
    CW_RECLAIM_AGE = 1 << 2,   /* blocks are doomed (core/reclaim/sweep.h) */
    CW_RECLAIM_COUNT = 1 << 3, /* a bucket has more than POOL_BUCKET_MAX */
    CW_RECLAIM_LENT = 1 << 4,  /* another process has none (core/limits/lending.h) */
    CW_RECLAIM_MOST = 1 << 5,  /* POOL_MAX was lowered, and more lies idle */
};

extern CW_HIDDEN _Atomic uint32_t cw_reclaim_due_any;
extern CW_HIDDEN _Atomic uint8_t cw_reclaim_due_on[CW_DEVICES];

static inline int cw_reclaim_is_due(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_reclaim_due_any, memory_order_relaxed) != 0);
}

static inline unsigned cw_reclaim_due_of(uint8_t device)
{
    return atomic_load_explicit(&cw_reclaim_due_on[device], memory_order_relaxed);
}

static inline void cw_reclaim_due_set(uint8_t device, enum cw_reclaim_reason reason)
{
    if ((cw_reclaim_due_of(device) & reason) == 0)
        atomic_fetch_or(&cw_reclaim_due_on[device], (uint8_t)reason);
    atomic_store(&cw_reclaim_due_any, 1);
}

/* 1 if it was due. */
static inline int cw_reclaim_due_take(uint8_t device, enum cw_reclaim_reason reason)
{
    return (atomic_fetch_and(&cw_reclaim_due_on[device], (uint8_t)~reason) & reason) != 0;
}

static inline void cw_reclaim_due_reset(void)
{
    atomic_store(&cw_reclaim_due_any, 0);
    for (unsigned d = 0; d < CW_DEVICES; d++)
        atomic_store(&cw_reclaim_due_on[d], 0);
}

#endif
