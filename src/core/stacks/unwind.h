/* SPDX-License-Identifier: MIT */
/*
 * The walk up the calling thread's own stack, by the process's unwinder.
 *
 * libgcc_s is not linked: when the session is armed glibc's backtrace() loads it for good, and the
 * host (core/process/host.h) finds its functions. Without an unwinder, backtrace() does the walk,
 * and tells addresses of code but not where on the stack they lie.
 */
#ifndef CW_CORE_UNWIND_H
#define CW_CORE_UNWIND_H

#include <stdint.h>
#include <unwind.h>

#include "live/layout.h"

/* Our own frames above the program's: the hook, the core's entry, the walk. */
#define CW_OWN_FRAMES 16
#define CW_WALK_MAX   (CW_DEPTH_MAX + CW_OWN_FRAMES)

/* Functions of one and the same unwinder. */
struct cw_unwinder {
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn visit, void *arg);
    _Unwind_Ptr (*ip_info)(struct _Unwind_Context *context, int *out_is_interrupted);
    _Unwind_Word (*cfa)(struct _Unwind_Context *context);
    _Unwind_Word (*gr)(struct _Unwind_Context *context, int index);
};

/* Frames, innermost first. */
struct cw_walk {
    unsigned count;
    unsigned own;   /* frames of this library at the inner end */
    unsigned exact; /* frames from the inside whose sp and fp are known; no signal among them */
    int is_whole;   /* the last frame has no caller; sp[count] is set */
    uint64_t pc[CW_WALK_MAX];     /* where the frame goes on: return addresses */
    uint64_t sp[CW_WALK_MAX + 1]; /* stack pointer there; the end of the frame before */
    uint64_t fp[CW_WALK_MAX];     /* frame pointer register there: rbp or x29 */
};

/* A library is about to be loaded. If it is one that gives functions stacks of their own,
 * greenlet's, walks end in it from now on: what lies below the function that it starts one with is
 * left over from another, and libgcc's unwinder reads where a return address leads, whatever it is.
 */
void cw_unwind_opening(const char *path);

/* Once the session is armed, and nobody waits for us: what walks need is loaded, so that none has
 * to do it later. */
void cw_unwind_prepare(void);
/* In a forked child. */
void cw_unwind_reset(void);

/* The first one that is set stays. */
void cw_unwind_set(const struct cw_unwinder *unwinder);

/* Our own frames at the inner end, at most CW_OWN_FRAMES, and at most max more, 1..CW_DEPTH_MAX;
 * none while there is no unwinder. No lock held, and nobody waiting for us. */
void cw_unwind_walk(struct cw_walk *out, unsigned max);

#endif
