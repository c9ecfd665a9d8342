/* SPDX-License-Identifier: MIT */
/*
 * The session: the one process-wide state, from the first CUDA call to the report.
 *
 *   NEW --arm--> ARMED --finish--> FINISHED          any --disarm--> DISARMED
 *
 * Only ARMED accounts for anything; in every other state calls pass through. A forked child starts
 * over in NEW with nothing of its parent's. core/control/lifecycle.c starts the modules, this one
 * included, in order. Arming is guarded by one cw_once; the state is an atomic.
 */
#ifndef CW_CORE_SESSION_H
#define CW_CORE_SESSION_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "core/process/driver_ops.h"
#include "live/arena.h"

enum cw_session_state {
    CW_SESSION_NEW,
    CW_SESSION_ARMED,
    CW_SESSION_FINISHED,
    CW_SESSION_DISARMED
};

struct cw_session {
    _Atomic int state;
    _Atomic int has_driver; /* it has started */
    const struct cw_driver_ops *ops;
    const struct cw_options *options;
    /* As in the file's header, which nothing of ours reads. */
    uint64_t start_ns, start_realtime_ns;
    unsigned driver_version;
    pid_t pid;
    _Atomic uint64_t disarmed_ns; /* by cw_clock_ns */
    _Atomic unsigned due;         /* enum cw_due, but requests of others */
    struct cw_arena arena;        /* last: its first words lie with the others */
};

extern CW_HIDDEN struct cw_session cw_session;

static inline int cw_session_is_armed(void)
{
    return CW_LIKELY(atomic_load_explicit(&cw_session.state, memory_order_acquire) ==
                     CW_SESSION_ARMED);
}

/* The driver refused to start: nothing can be allocated. 0: it has started. What it says of later
 * tries, as a process that ends may make, changes neither. */
void cw_session_set_init_error(int code);

/* At the end: this object called CUDA, or may have, past us. is_uncalled: nobody else's calls came
 * here. */
void cw_session_set_unseen(const char *object, int is_uncalled);

/* Something of ours failed: says why, once, and passes every call through from now on. */
void cw_session_disarm(const char *why);

/* The report is written: removes the live file unless the user has named a directory for it. */
void cw_session_reported(void);

/* ---- the steps of core/control/lifecycle.c, which calls everybody else in between ---- */

/* 1 for the one caller that arms the session, and tells cw_session_begun how that went. Others wait
 * here meanwhile, and get 0. */
int cw_session_begin(const struct cw_driver_ops *ops, const struct cw_options *options);
void cw_session_begun(int is_built);

/* The arena, with a live file behind it if there may be one; then, when all is in place, the name
 * of that file. 0, or -1. */
int cw_session_make_arena(void);
int cw_session_publish(void);

/* ARMED or DISARMED, the state before, for the one caller that is to write the report; NEW for all
 * others. */
enum cw_session_state cw_session_close(void);

/* In a forked child: last, because it drops the arena. */
void cw_session_reset(void);

/* Nanoseconds since arming. */
static inline uint64_t cw_session_now(void)
{
    uint64_t now = cw_session.ops->now_ns() - cw_session.start_ns;

    return now ? now : 1; /* 0 means never */
}

/* A tick is an eighth of a second of that clock, for approximate times. */
#define CW_SESSION_TICK_SHIFT 27

static inline uint32_t cw_session_tick(uint64_t now_ns)
{
    return (uint32_t)(now_ns >> CW_SESSION_TICK_SHIFT) + 1; /* 0 means never */
}

#endif
