/* SPDX-License-Identifier: MIT */
/* Asking contexts. See quiet.h. */
#include "core/reclaim/quiet.h"

#include "base/compiler.h"
#include "core/pending/patience.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/process/thread.h"

#define PROBES 16 /* queries until an event of an idle context has surely passed */

#define CANNOT_SAY 2

/* 1: idle; 0: not; CANNOT_SAY: the driver refuses such events. */
static int ask(struct cw_pool_context *pool_context)
{
    struct cw_context_name context = cw_context_name(pool_context->record);
    int recorded = -1, passed = 0;
    uint64_t event;

    if (!cw_gate_enter())
        return 0;
    event = cw_pool_context_acquire_event(pool_context);
    if (event != 0)
        recorded = cw_session.ops->event_record(context, event);
    for (int i = 0; recorded == 0 && passed == 0 && i < PROBES; i++)
        passed = cw_session.ops->event_query(context, event);
    if (event != 0)
        cw_pool_context_release_event(pool_context, event);
    cw_gate_leave();
    return recorded == 1 ? CANNOT_SAY : passed == 1;
}

int cw_quiet_is_idle(struct cw_pool_context *pool_context)
{
    return cw_session.ops->has_context_events() && ask(pool_context) == 1;
}

const struct cw_pool_context *cw_quiet_own(void)
{
    uint8_t device;

    return cw_pool_context_of(cw_context_current(&device));
}

struct cw_quiet *cw_quiet_for_helper(struct cw_quiet *room)
{
    cw_quiet_init(room, NULL);
    return cw_thread.is_helper ? room : NULL;
}

static int ask_idle(struct cw_quiet *quiet, struct cw_pool_context *pool_context)
{
    int is = ask(pool_context) != 0;

    if (quiet->count < CW_ARRAY_LEN(quiet->asked)) {
        quiet->asked[quiet->count].of = pool_context;
        quiet->asked[quiet->count++].is_idle = is;
    }
    return is;
}

/* A free in a context that is known to be at work does not wait for it either. */
static int is_own(const struct cw_quiet *quiet, const struct cw_pool_context *pool_context)
{
    return pool_context == quiet->own && !cw_patience_is_over(pool_context);
}

int cw_quiet_may_free(struct cw_quiet *quiet, struct cw_pool_context *pool_context)
{
    unsigned i = 0;
    int is;

    if (quiet == NULL || is_own(quiet, pool_context) || !cw_session.ops->has_context_events())
        return 1;
    while (i < quiet->count && quiet->asked[i].of != pool_context)
        i++;
    is = i < quiet->count ? quiet->asked[i].is_idle : ask_idle(quiet, pool_context);
    quiet->has_skipped |= !is;
    return is;
}

struct cw_pool *cw_quiet_next(uint8_t device, struct cw_pool_walk *walk, struct cw_quiet *quiet)
{
    struct cw_pool *pool;

    do
        pool = cw_pool_walk_next(device, walk);
    while (pool != NULL && !cw_quiet_may_free(quiet, pool->pool_context));
    return pool;
}
