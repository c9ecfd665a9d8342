/* SPDX-License-Identifier: MIT */
/*
 * Deadlines: when something is to be done that no call of the program's asks for. A thread that has
 * read the clock compares it with these words; the first that finds a time passed raises a bit
 * (core/process/due.h), and the next thread that leaves a call does the work
 * (hook/services/dispatch.h).
 *
 * A cache line of their own: read at every allocation, rarely written.
 */
#ifndef CW_CORE_DEADLINE_H
#define CW_CORE_DEADLINE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/due.h"

struct cw_deadlines {
    CW_ALIGNED_LINE _Atomic uint64_t growth_ns; /* core/growth/growth.h; UINT64_MAX: never */
    _Atomic uint64_t demand_ns;                 /* core/reclaim/sweep.h; the same */
};
extern CW_HIDDEN struct cw_deadlines cw_deadlines;

CW_COLD void cw_deadline_raise(uint64_t now_ns);

/* Any thread, in an allocation, a copy or a wait of the program's: while the program works with the
 * device, the times at which it did are known to a period of samples. Also under locks. */
static inline void cw_deadline_look(uint64_t now_ns)
{
    if (CW_UNLIKELY(now_ns >=
                    atomic_load_explicit(&cw_deadlines.growth_ns, memory_order_relaxed)) ||
        CW_UNLIKELY(now_ns >= atomic_load_explicit(&cw_deadlines.demand_ns, memory_order_relaxed)))
        cw_deadline_raise(now_ns);
}

#endif
