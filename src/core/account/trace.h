/* SPDX-License-Identifier: MIT */
/*
 * The trace: one line for each block that the program gets and each that it frees, in the form of
 * RMM's log (columns below), for `cuwarden replay` and for RMM's own tools.
 *
 * Lines are put into a mapped window of the file, so those of a process that is killed are in it;
 * until the process ends by itself zeros follow the last line. A line of a free is written before
 * its memory can be anybody else's, and one of an allocation before the program knows the address:
 * the lines of an address are in order. The window is guarded by a lock of CW_RANK_TRACE. When the
 * file cannot grow there is one warning, and no line more.
 */
#ifndef CW_CORE_TRACE_H
#define CW_CORE_TRACE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/types.h"
#include "live/arena.h"

/* The first six are RMM's; its parser goes by name and passes over the others. */
#define CW_TRACE_HEADER "Thread,Time,Action,Pointer,Size,Stream,Device,Kind,Function,Nanoseconds\n"

extern CW_HIDDEN _Atomic int cw_trace_on;

static inline int cw_trace_is_on(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_trace_on, memory_order_relaxed));
}

/* Writes to this new, empty regular file from now on; it belongs to the trace. `path` must stay. 0,
 * or the errno. Once for a session, after it was armed. */
int cw_trace_begin(struct cw_arena *arena, int fd, const char *path);
/* Cuts the file behind the last line. Takes no lock: it may have interrupted a holder. */
void cw_trace_end(void);
/* In a forked child: the file is the parent's. */
void cw_trace_reset(void);

CW_COLD void cw_trace_block(const struct cw_live_block *block, int is_free);

/* The block is the program's. Before it learns the address. */
static inline void cw_trace_taken(const struct cw_live_block *block)
{
    if (cw_trace_is_on())
        cw_trace_block(block, 0);
}

/* The program has freed it. Before anybody else may get its memory. */
static inline void cw_trace_gone(const struct cw_live_block *block)
{
    if (cw_trace_is_on())
        cw_trace_block(block, 1);
}

/* The program got out of memory; `api` is the text of the name that it called. */
void cw_trace_failed(const struct cw_request *request, uint32_t api);

#endif
