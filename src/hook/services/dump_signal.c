/* SPDX-License-Identifier: MIT */
/*
 * The handler of DUMP_SIGNAL. See dump_signal.h.
 *
 * It may interrupt any code, even code that holds a lock, so it only sets bits and wakes the
 * background thread, which does the work. Then the program gets the signal, as it would have
 * without us.
 */
#include "hook/services/dump_signal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "base/log.h"
#include "base/out.h"
#include "base/reason.h"
#include "base/signal_name.h"
#include "core/process/session.h"
#include "hook/services/dump.h"
#include "hook/services/background_thread.h"

static _Atomic int is_on;         /* in this process, which is armed */
static struct sigaction previous; /* of the program; constant while ours is installed */

/* A vfork child shares our memory but is another process. */
static void ask(void)
{
    int saved = errno;

    if (atomic_load(&is_on) && cw_session_is_armed() && cw_session.pid == getpid()) {
        cw_dump_ask(CW_DUMP_SIGNAL);
        cw_background_thread_wake();
    }
    errno = saved;
}

static void handle(int number, siginfo_t *info, void *context)
{
    ask();
    if ((previous.sa_flags & SA_SIGINFO) != 0)
        previous.sa_sigaction(number, info, context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        previous.sa_handler(number);
}

/* The program's handler runs as before: with its mask, and with or without SA_RESTART. */
static struct sigaction ours(const struct sigaction *program)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int has_handler = (program->sa_flags & SA_SIGINFO) != 0 ||
                      (program->sa_handler != SIG_DFL && program->sa_handler != SIG_IGN);

    if (!has_handler) {
        action.sa_flags |= SA_RESTART;
        return action;
    }
    action.sa_mask = program->sa_mask;
    action.sa_flags |= program->sa_flags & (SA_RESTART | SA_NODEFER);
    return action;
}

static int install(int number)
{
    struct sigaction before, action;

    if (sigaction(number, NULL, &before) != 0)
        return -1;
    /* In a forked child the handler is installed already, with the handler found before it. */
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == handle)
        return 0;
    previous = before;
    action = ours(&before);
    return sigaction(number, &action, NULL);
}

void cw_dump_signal_install(const struct cw_options *options)
{
    int saved = errno;
    char name[16];
    struct cw_out out;

    if (options->dump_signal == 0 || atomic_load(&is_on))
        return;
    if (install(options->dump_signal) == 0) {
        atomic_store(&is_on, 1);
    } else {
        cw_out_init(&out, -1, name, sizeof(name) - 1);
        cw_signal_print(options->dump_signal, &out);
        name[out.len] = '\0';
        cw_log(CW_LOG_WARN, "CUWARDEN_DUMP_SIGNAL=%s: no handler can be installed: %s (errno %d)",
               name, cw_reason(errno), errno);
    }
    errno = saved;
}

void cw_dump_signal_reset(void)
{
    atomic_store(&is_on, 0);
}
