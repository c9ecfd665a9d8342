/* SPDX-License-Identifier: MIT */
/* Dispatch of due work. See dispatch.h. */
#include "hook/services/dispatch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "api/listeners.h"
#include "base/compiler.h"
#include "core/control/control.h"
#include "core/process/due.h"
#include "core/growth/growth.h"
#include "core/reclaim/sweep.h"
#include "core/request/neighbours.h"
#include "hook/services/dump.h"
#include "hook/services/background_thread.h"

/* By bit; each is called with no lock held, and may call the driver only through the gate. */
static const struct {
    unsigned bit; /* enum cw_due */
    void (*serve)(void);
    int (*is_here)(void); /* NULL: by any thread */
} servants[] = {
    {CW_DUE_CONTROL, cw_control_serve, NULL},
    {CW_DUE_DUMP, cw_dump_serve, cw_dump_is_here},
    {CW_DUE_GROWTH, cw_growth_serve, NULL},
    {CW_DUE_DEMAND, cw_sweep_serve, NULL},
    {CW_DUE_WATCH, cw_background_thread_watch, NULL},
    {CW_DUE_NEIGHBOURS, cw_neighbours_nudge, NULL},
    {CW_DUE_NOTICE, cw_api_notice_serve, cw_api_notice_is_here},
};

static _Atomic int serving;

void cw_dispatch_reset(void)
{
    atomic_store(&serving, 0);
}

/* The work for the calling thread. */
static unsigned due_here(void)
{
    unsigned seen = cw_due_seen(), here = 0;

    for (size_t i = 0; i < CW_ARRAY_LEN(servants); i++)
        if ((seen & servants[i].bit) != 0 && (servants[i].is_here == NULL || servants[i].is_here()))
            here |= servants[i].bit;
    return here;
}

void cw_dispatch_due(void)
{
    int saved = errno; /* the program's */
    unsigned due;

    if (!cw_session_is_armed() || (due = due_here()) == 0 || atomic_exchange(&serving, 1))
        return;
    due = cw_due_take(due);
    for (size_t i = 0; i < CW_ARRAY_LEN(servants); i++)
        if ((due & servants[i].bit) != 0)
            servants[i].serve();
    atomic_store(&serving, 0);
    errno = saved;
}
