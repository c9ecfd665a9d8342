/* SPDX-License-Identifier: MIT */
/* The deadlines. See deadline.h. */
#include "core/process/deadline.h"

#include "core/process/session.h"

#define AGAIN_NS UINT64_C(1000000)

CW_HOT_DATA struct cw_deadlines cw_deadlines = {UINT64_MAX, UINT64_MAX};

/* One of the threads that see it raises the bit; should that come to nothing, the next does a
 * moment later. */
static void raise_growth(uint64_t now_ns)
{
    uint64_t seen = atomic_load_explicit(&cw_deadlines.growth_ns, memory_order_relaxed);

    if (now_ns < seen ||
        !atomic_compare_exchange_strong(&cw_deadlines.growth_ns, &seen, now_ns + AGAIN_NS))
        return;
    atomic_store_explicit(&cw_session.arena.header->growth.worked_ns, now_ns, memory_order_relaxed);
    cw_due_set(CW_DUE_GROWTH);
}

void cw_deadline_raise(uint64_t now_ns)
{
    raise_growth(now_ns);
    /* The bit is a hint: who serves looks at the time again, and sets the next one. */
    if (now_ns >= atomic_load_explicit(&cw_deadlines.demand_ns, memory_order_relaxed) &&
        (cw_due_seen() & CW_DUE_DEMAND) == 0)
        cw_due_set(CW_DUE_DEMAND);
}
