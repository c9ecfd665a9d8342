/* SPDX-License-Identifier: MIT */
/*
 * What stands between a request of the program and the pool, if anything does: injected failures
 * (core/limits/inject.h) and budgets (core/account/budget.h); and between a free and the pool:
 * prefetches (api/prefetches.h). One word, so that all of it together costs a request one load
 * where nothing does. No lock: each bit has one owner.
 */
#ifndef CW_CORE_GUARD_H
#define CW_CORE_GUARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

enum cw_guard {
    CW_GUARD_INJECT = 1 << 0,
    CW_GUARD_BUDGET = 1 << 1,
    CW_GUARD_CHANGING = 1 << 2, /* which budget counts a block may be about to change */
    CW_GUARD_PREFETCH = 1 << 3, /* files are read for blocks, whose frees say so before */
};

extern CW_HIDDEN _Atomic uint32_t cw_guards;

void cw_guard_set(uint32_t guards, int is_on);

static inline uint32_t cw_guard_any(void)
{
    return atomic_load_explicit(&cw_guards, memory_order_relaxed);
}

static inline int cw_guard_is_on(enum cw_guard guard)
{
    return CW_UNLIKELY((cw_guard_any() & (uint32_t)guard) != 0);
}

#endif
