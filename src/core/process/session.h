/* SPDX-License-Identifier: MIT */
/*
 * The session: the one process-wide state, from the first CUDA call to the report.
 *
 *   NEW --arm--> ARMED --finish--> FINISHED          any --disarm--> DISARMED
 *
 * Only ARMED accounts for anything; in every other state calls pass through. A forked child starts
 * over in NEW with nothing of its parent's. Arming is guarded by one cw_once; the state is an
 * atomic.
 */
#ifndef CW_CORE_SESSION_H
#define CW_CORE_SESSION_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/launcher.h"
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
    const struct cw_driver_ops *ops;
    const struct cw_options *options;
    uint64_t start_ns;     /* the header's */
    struct cw_arena arena; /* last: its first words lie with the others */
};

extern CW_HIDDEN struct cw_session cw_session;

static inline int cw_session_is_armed(void)
{
    return CW_LIKELY(atomic_load_explicit(&cw_session.state, memory_order_acquire) ==
                     CW_SESSION_ARMED);
}

/* Makes the arena and starts accounting; does nothing when that was done. Any thread, no lock held.
 * ops and options must live as long as the process; launcher is copied, NULL: nothing is known. */
void cw_session_arm(const struct cw_driver_ops *ops, const struct cw_options *options,
                    const struct cw_launcher *launcher, unsigned driver_version);

/* Something of ours failed: says why, once, and passes every call through from now on. */
void cw_session_disarm(const char *why);

/* Notes how the process ends. 1 for the one caller that must write the report, once. */
int cw_session_finish(enum cw_exit_kind kind, int code);

/* The report is where it belongs: the live file has done its duty, and goes unless the user has
 * named a directory for it. */
void cw_session_reported(void);

/* In a forked child. */
void cw_session_reset(void);

/* Nanoseconds since arming. */
static inline uint64_t cw_session_now(void)
{
    uint64_t now = cw_session.ops->now_ns() - cw_session.start_ns;

    return now ? now : 1; /* 0 means never */
}

#endif
