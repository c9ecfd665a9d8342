/* SPDX-License-Identifier: MIT */
/* What is due, and who does it. See serve.h. */
#include "hook/serve.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "core/control.h"
#include "core/due.h"
#include "hook/dump.h"
#include "core/growth.h"

/* By bit; each is called with no lock held, and may call the driver only through the gate. */
static const struct {
    unsigned bit; /* enum cw_due */
    void (*serve)(void);
} servants[] = {
    {CW_DUE_CONTROL, cw_control_serve},
    {CW_DUE_DUMP, cw_dump_serve},
    {CW_DUE_GROWTH, cw_growth_serve},
};

static _Atomic int serving;

void cw_serve_reset(void)
{
    atomic_store(&serving, 0);
}

void cw_serve_due(void)
{
    int saved = errno; /* the program's */
    unsigned due;

    if (!cw_session_is_armed() || atomic_exchange(&serving, 1))
        return;
    due = cw_due_take();
    for (size_t i = 0; i < CW_ARRAY_LEN(servants); i++)
        if ((due & servants[i].bit) != 0)
            servants[i].serve();
    atomic_store(&serving, 0);
    errno = saved;
}
