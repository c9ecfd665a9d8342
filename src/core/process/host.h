/* SPDX-License-Identifier: MIT */
/*
 * What the core asks of its host, besides the driver (core/process/driver_ops.h). The host is the
 * hook layer in a program, a replay, or a unit test.
 *
 * Set once, before the session is armed, and read without a lock; a forked child keeps it. A member
 * may be NULL.
 */
#ifndef CW_CORE_HOST_H
#define CW_CORE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/compiler.h"
#include "live/layout.h"

/* Bounds of a device that nobody has set in the environment; 0: none. */
struct cw_host_bounds {
    uint64_t bytes[CW_BOUND_COUNT];
    uint64_t used[CW_BOUND_COUNT]; /* of it, by all whom it is for; 0: not known */
    int is_served;                 /* this process is a client of MPS there */
};

struct cw_host_ops {
    /* Arranges that the calling thread calls cw_lifecycle_thread_ends at its end, and returns 0. It
     * must not wait for the loader or allocate. NULL: all threads share slot 0. */
    int (*watch_thread)(void);
    /* Calls cw_unwind_set if it finds the functions of libgcc_s: which was loaded by us and is
     * complete, or, with is_linked, in what the program is linked with. Never waits for others to
     * load. NULL: glibc's backtrace() walks. */
    void (*find_unwinder)(int is_linked);
    /* Calls work in a thread of ours: 0, or -1. NULL: there is none. */
    int (*help)(void (*work)(void));
    /* Writes a report for process `asker`. Returns 0 with its name in text, or an errno with the
     * reason. NULL: not supported. */
    int (*dump)(uint32_t asker, char *text, size_t cap);
    /* Writes the trace (core/account/trace.h) to this new file from now on. 0, or an errno; EBUSY:
     * one is being written. NULL: not supported. */
    int (*record)(const char *path);
    /* 0; -1: none is being written. */
    int (*end_record)(void);
    /* Frees a block as the program would; outside of any call. 0, -1 for a kind that is not freed
     * by its address alone, or the driver's code. NULL: not supported. */
    int (*free_block)(enum cw_kind kind, uint64_t address);
    /* What the system lets the process and its like have of a device now. *out is complete; 0:
     * there is no such thing here, so that it need not be asked often; -1: that cannot be said now,
     * for want of a descriptor, say. Any time, also inside the
     * gate; it takes some microseconds. NULL: there never is. */
    int (*bounds)(uint8_t device, struct cw_host_bounds *out);
};

extern CW_HIDDEN const struct cw_host_ops *cw_host; /* never NULL */

/* NULL: a host without any member. */
void cw_host_set(const struct cw_host_ops *host);

#endif
