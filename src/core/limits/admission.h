/* SPDX-License-Identifier: MIT */
/*
 * Admission: whether what is freed on a device may be kept at all, in one word that every free
 * looks at. It counts reasons not to: nothing may be kept there (core/cache/retention.c), the level
 * is critical (core/limits/pressure.c), a request has found no memory (core/request/ladder.c). No
 * lock. A free in progress reads the word inside its slot: once all slots have been stopped after a
 * close (cw_reclaim_gather), every thread has seen it.
 */
#ifndef CW_CORE_ADMISSION_H
#define CW_CORE_ADMISSION_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "live/layout.h"

extern CW_HIDDEN _Atomic uint32_t cw_admission_reasons[CW_DEVICES];

static inline int cw_admission_is_open(uint8_t device)
{
    return CW_LIKELY(atomic_load_explicit(&cw_admission_reasons[device], memory_order_relaxed) ==
                     0);
}

static inline void cw_admission_close(uint8_t device)
{
    atomic_fetch_add(&cw_admission_reasons[device], 1);
}

static inline void cw_admission_open(uint8_t device)
{
    atomic_fetch_sub(&cw_admission_reasons[device], 1);
}

/* Before arming, and again in a forked child. */
static inline void cw_admission_reset(void)
{
    for (unsigned d = 0; d < CW_DEVICES; d++)
        atomic_store_explicit(&cw_admission_reasons[d], 0, memory_order_relaxed);
}

#endif
