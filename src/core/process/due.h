/* SPDX-License-Identifier: MIT */
/*
 * Due work: bits, set by a timer or a signal, which the next thread that leaves a call finds
 * (hook/services/dispatch.h). A request of another process is one, too, and in the live layout:
 * whatever is written there is no other work. A look costs two loads of rarely written lines.
 */
#ifndef CW_CORE_DUE_H
#define CW_CORE_DUE_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/process/session.h"

enum cw_due {
    CW_DUE_GROWTH = 1 << 0,     /* the time for a sample or a point has come */
    CW_DUE_DUMP = 1 << 1,       /* a signal, or the interval, asks for a report */
    CW_DUE_DEMAND = 1 << 2,     /* the time for a sweep has come */
    CW_DUE_WATCH = 1 << 3,      /* much lies idle: the background thread is wanted */
    CW_DUE_NOTICE = 1 << 4,     /* a level of pressure has changed: the program may want to know */
    CW_DUE_NEIGHBOURS = 1 << 5, /* memory is scarce: another process may have some to spare */
    CW_DUE_CONTROL = 1 << 6,    /* another process asks (live/layout_control.h) */
};

static inline int cw_due_is_any(void)
{
    const struct cw_live_header *header = cw_session.arena.header;

    return CW_LIKELY(header != NULL) &&
           (atomic_load_explicit(&header->control.is_due, memory_order_relaxed) |
            atomic_load_explicit(&cw_session.due, memory_order_relaxed)) != 0;
}

static inline unsigned cw_due_seen(void)
{
    const struct cw_live_header *header = cw_session.arena.header;

    if (header == NULL)
        return 0;
    return atomic_load_explicit(&cw_session.due, memory_order_relaxed) |
           (atomic_load_explicit(&header->control.is_due, memory_order_relaxed) != 0
                ? CW_DUE_CONTROL
                : 0);
}

/* Any thread, also in a signal handler. */
static inline void cw_due_set(unsigned bits)
{
    if (cw_session.arena.header != NULL)
        atomic_fetch_or(&cw_session.due, bits);
}

/* Returns which of these are due, and clears them. */
static inline unsigned cw_due_take(unsigned bits)
{
    struct cw_live_header *header = cw_session.arena.header;
    unsigned taken;

    if (header == NULL)
        return 0;
    taken = atomic_fetch_and(&cw_session.due, ~bits) & bits;
    if ((bits & CW_DUE_CONTROL) != 0 && atomic_exchange(&header->control.is_due, 0) != 0)
        taken |= CW_DUE_CONTROL;
    return taken;
}

#endif
