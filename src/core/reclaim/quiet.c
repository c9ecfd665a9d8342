/* SPDX-License-Identifier: MIT */
/* Asking contexts. See quiet.h. */
#include "core/reclaim/quiet.h"

#include "base/compiler.h"
#include "core/pending/patience.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/process/thread.h"

#define PROBES 16 /* queries until an event of an idle context has surely passed */

static enum cw_quiet_answer ask(struct cw_pool_context *pool_context)
{
    struct cw_context_name context = cw_context_name(pool_context->record);
    int recorded = -1, passed = 0;
    uint64_t event;

    if (!cw_session.ops->has_context_events())
        return CW_QUIET_UNKNOWN;
    if (!cw_gate_enter())
        return CW_QUIET_BUSY;
    if (cw_pool_context_is_in_free(pool_context)) {
        cw_gate_leave();
        return CW_QUIET_BUSY;
    }
    event = cw_pool_context_acquire_event(pool_context);
    if (event != 0)
        recorded = cw_session.ops->event_record(context, event);
    for (int i = 0; recorded == 0 && passed == 0 && i < PROBES; i++)
        passed = cw_session.ops->event_query(context, event);
    if (event != 0)
        cw_pool_context_release_event(pool_context, event);
    cw_gate_leave();
    if (recorded < 0 || passed < 0)
        cw_context_check_all();
    if (recorded == 1)
        return CW_QUIET_UNKNOWN;
    return passed == 1 ? CW_QUIET_IDLE : CW_QUIET_BUSY;
}

int cw_quiet_is_idle(struct cw_pool_context *pool_context)
{
    return ask(pool_context) == CW_QUIET_IDLE;
}

struct cw_pool_context *cw_quiet_own(void)
{
    uint8_t device;

    return cw_pool_context_of(cw_context_current(&device));
}

struct cw_quiet *cw_quiet_for_helper(struct cw_quiet *room)
{
    cw_quiet_init(room, NULL);
    return cw_thread.is_helper ? room : NULL;
}

enum cw_quiet_answer cw_quiet_ask(struct cw_quiet *quiet, struct cw_pool_context *pool_context)
{
    enum cw_quiet_answer answer;
    unsigned i = 0;

    while (i < quiet->count && quiet->asked[i].of != pool_context)
        i++;
    if (i < quiet->count)
        return quiet->asked[i].answer;
    answer = ask(pool_context);
    if (i < CW_ARRAY_LEN(quiet->asked)) {
        quiet->asked[i].of = pool_context;
        quiet->asked[i].answer = answer;
        quiet->count++;
    }
    return answer;
}

/* A free in a context that is known to be at work does not wait for it either. */
static int is_own(const struct cw_quiet *quiet, const struct cw_pool_context *pool_context)
{
    return pool_context == quiet->own && !cw_patience_is_over(pool_context);
}

int cw_quiet_may_free(struct cw_quiet *quiet, struct cw_pool_context *pool_context)
{
    int is;

    if (quiet == NULL || is_own(quiet, pool_context))
        return 1;
    is = cw_quiet_ask(quiet, pool_context) != CW_QUIET_BUSY;
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
