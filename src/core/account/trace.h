/* SPDX-License-Identifier: MIT */
/*
 * The trace: one line for each block that the program gets and each that it frees, in the form of
 * RMM's log (columns below), for `cuwarden replay` and for RMM's own tools. The static probes
 * (probe.h) are fired at the same two moments.
 *
 * Lines are written to a mapped window of the file, so a killed process leaves them there; until an
 * orderly end, zeros follow the last line. A free's line is written before its memory can have
 * another owner, and an allocation's before the program knows the address: the lines of an address
 * are in order. The window is guarded by a lock of CW_RANK_TRACE. If the file cannot grow, there is
 * one warning and no further line.
 */
#ifndef CW_CORE_TRACE_H
#define CW_CORE_TRACE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/account/probe.h"
#include "core/process/types.h"
#include "live/arena.h"

/* The first six are RMM's; its parser looks columns up by name and ignores the others. */
#define CW_TRACE_HEADER                                                                            \
    "Thread,Time,Action,Pointer,Size,Stream,Device,Kind,Function,Nanoseconds,Id\n"

/* Who is told of each block; one word, so that the usual call asks once. */
enum {
    CW_TRACE_FILE = 1 << 0,
    CW_TRACE_OTEL = 1 << 1, /* the probes of OpenTelemetry's provider (core/account/probe.h) */
};
extern CW_HIDDEN _Atomic int cw_trace_on;

static inline int cw_trace_is_on(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_trace_on, memory_order_relaxed));
}

static inline int cw_trace_has_file(void)
{
    return (atomic_load_explicit(&cw_trace_on, memory_order_relaxed) & CW_TRACE_FILE) != 0;
}

/* Writes to this new, empty regular file from now on; it belongs to the trace. `path` must stay. 0,
 * or the errno; EBUSY: there is one. After the session was armed. */
int cw_trace_begin(struct cw_arena *arena, int fd, const char *path);
/* The file is complete, and another may be begun. 0; -1: there is none. */
int cw_trace_stop(void);
/* Truncates the file after the last line. Takes no lock: the caller may have interrupted a
 * holder. */
void cw_trace_end(void);
/* In a forked child: the file is the parent's. */
void cw_trace_reset(void);

CW_COLD void cw_trace_block(uint32_t block, int is_free);

/* The program gets the block, of a kind that takes memory; device: or CW_DEVICE_HOST. Called before
 * it learns the address. */
static CW_INLINE void cw_trace_taken(uint32_t block, uint64_t key, uint64_t bytes, uint8_t device)
{
    cw_probe_alloc(key, bytes, device);
    if (cw_trace_is_on())
        cw_trace_block(block, 0);
}

/* The program has freed the block. Called before anybody else may get its memory. */
static CW_INLINE void cw_trace_gone(uint32_t block, uint64_t key)
{
    cw_probe_free(key);
    if (cw_trace_is_on())
        cw_trace_block(block, 1);
}

/* Fires OpenTelemetry's probes for device memory, from now on and in forked children. */
void cw_trace_begin_otel(void);

/* A call of the program failed with out of memory; api: text of the name that it called. */
void cw_trace_failed(const struct cw_request *request, uint32_t api);

#endif
