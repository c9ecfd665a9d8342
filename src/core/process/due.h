/* SPDX-License-Identifier: MIT */
/*
 * Due work: bits (enum cw_due) in the live layout. A timer, a signal or another process sets them,
 * and the next thread that leaves a call finds them (hook/services/dispatch.h). A look costs one
 * load of a cache line that is rarely written.
 */
#ifndef CW_CORE_DUE_H
#define CW_CORE_DUE_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/process/session.h"

static inline unsigned cw_due_seen(void)
{
    const struct cw_live_header *header = cw_session.arena.header;

    return CW_LIKELY(header != NULL)
               ? atomic_load_explicit(&header->control.due, memory_order_relaxed)
               : 0;
}

static inline int cw_due_is_any(void)
{
    return cw_due_seen() != 0;
}

/* Any thread, also in a signal handler. */
static inline void cw_due_set(unsigned bits)
{
    struct cw_live_header *header = cw_session.arena.header;

    if (header != NULL)
        atomic_fetch_or(&header->control.due, bits);
}

/* Returns which of these are due, and clears them. */
static inline unsigned cw_due_take(unsigned bits)
{
    struct cw_live_header *header = cw_session.arena.header;

    return header != NULL ? atomic_fetch_and(&header->control.due, ~bits) & bits : 0;
}

#endif
