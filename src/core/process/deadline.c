/* SPDX-License-Identifier: MIT */
/* What is due, by the clock. See deadline.h. */
#include "core/process/deadline.h"

#include "core/growth/growth.h"

CW_HOT_DATA struct cw_deadlines cw_deadlines = {UINT64_MAX, UINT64_MAX};

void cw_deadline_raise(uint64_t now_ns)
{
    cw_growth_raise(now_ns);
    /* The bit is a hint: who serves looks at the time again, and sets the next one. */
    if (now_ns >= atomic_load_explicit(&cw_deadlines.demand_ns, memory_order_relaxed) &&
        (cw_due_seen() & CW_DUE_DEMAND) == 0)
        cw_due_set(CW_DUE_DEMAND);
}
