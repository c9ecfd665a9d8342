/* SPDX-License-Identifier: MIT */
/*
 * Quiet contexts: those where a free by the driver may be made now.
 *
 * It waits for all work of its context, and a kernel there may run until the very thread does
 * something more, or wait for a kernel of another device that it has not launched yet (NCCL's do).
 * So contexts are asked first, by an event; one where a thread is inside the driver's free, so that
 * the event would wait, counts as busy, and whoever launches meanwhile has bad luck. A driver
 * without such events, or one that refuses them, cannot say, and each of its contexts counts as
 * quiet.
 *
 * Owned by the thread that asks, for as long as a turn of releases takes; no lock.
 */
#ifndef CW_CORE_QUIET_H
#define CW_CORE_QUIET_H

#include "core/reclaim/pool_walk.h"

enum cw_quiet_answer {
    CW_QUIET_BUSY,    /* it has work, or may not be asked now */
    CW_QUIET_IDLE,    /* an event that was recorded now tells that all its work is done */
    CW_QUIET_UNKNOWN, /* there are no such events, or the driver refuses them */
};

struct cw_quiet {
    const struct cw_pool_context *own; /* where a free may wait; NULL: nowhere */
    unsigned count;                    /* that were asked */
    int has_skipped;                   /* one that is not quiet */
    struct {
        const struct cw_pool_context *of;
        enum cw_quiet_answer answer;
    } asked[CW_POOL_CONTEXTS_LIVE];
};

/* Nobody was asked yet. The rest of it is not touched: a turn of releases may have nothing to ask.
 */
static inline void cw_quiet_init(struct cw_quiet *quiet, const struct cw_pool_context *own)
{
    quiet->own = own;
    quiet->count = 0;
    quiet->has_skipped = 0;
}

/* The calling thread's context, where the program's own frees would have waited. */
struct cw_pool_context *cw_quiet_own(void);

/* For what somebody has asked for: NULL inside a call of the program, which waits for it; the
 * background thread must not, and gets *room. */
struct cw_quiet *cw_quiet_for_helper(struct cw_quiet *room);

/* Asked once, and then for all its blocks. No lock held, not inside the gate: a context that cannot
 * be asked may have ended unseen, which is looked into. */
enum cw_quiet_answer cw_quiet_ask(struct cw_quiet *quiet, struct cw_pool_context *pool_context);
/* The same for who wants to free. quiet NULL: 1, whatever the context does. So below. */
int cw_quiet_may_free(struct cw_quiet *quiet, struct cw_pool_context *pool_context);
/* As cw_pool_walk_next: the next pool with blocks that may be freed. */
struct cw_pool *cw_quiet_next(uint8_t device, struct cw_pool_walk *walk, struct cw_quiet *quiet);

/* 1: CW_QUIET_IDLE, asked anew. */
int cw_quiet_is_idle(struct cw_pool_context *pool_context);

#endif
