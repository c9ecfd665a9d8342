/* SPDX-License-Identifier: MIT */
/* A thread that ticks. See helper.h. */
#include "hook/helper.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/lock.h"
#include "base/log.h"
#include "core/gate.h"
#include "core/session.h"
#include "core/thread.h"
#include "core/tick.h"
#include "hook/object.h"

/* pthread_create and pthread_sigmask moved between glibc's libraries: the one is looked up, the
 * other is a system call. A pthread_t is an unsigned long there. */
typedef int (*create_fn)(unsigned long *thread, const void *attr, void *(*start)(void *),
                         void *arg);

#define KERNEL_SIGSET_BYTES 8
#define SET_MASK            2 /* SIG_SETMASK */
/* 32 and 33, by which glibc has every thread take part in setuid and the like. */
#define C_LIBRARY_SIGNALS ((uint64_t)3 << 31)

static struct cw_alarm alarm_at_end;
static _Atomic int started;
static uint64_t interval_ns;
static _Atomic int ticking;

static void *run(void *arg)
{
    (void)arg;
    prctl(PR_SET_NAME, "cuwarden");
    cw_thread.depth = 1; /* hooks that the driver calls on the way pass straight through */
    while (!cw_alarm_wait(&alarm_at_end, interval_ns) && cw_session_is_armed()) {
        atomic_store(&ticking, 1);
        if (cw_session_is_armed())
            cw_tick();
        atomic_store(&ticking, 0);
    }
    return NULL;
}

void cw_helper_start(const struct cw_options *options)
{
    uint64_t all = ~C_LIBRARY_SIGNALS, before = 0;
    unsigned long thread;
    create_fn create;

    interval_ns = cw_tick_interval(options);
    if (interval_ns == 0 || atomic_exchange(&started, 1))
        return;
    cw_tick_init(options);
    create = (create_fn)cw_object_next_symbol("pthread_create");
    /* The thread begins with the mask of the one that makes it. */
    syscall(SYS_rt_sigprocmask, SET_MASK, &all, &before, KERNEL_SIGSET_BYTES);
    if (create == NULL || create(&thread, NULL, run, NULL) != 0)
        cw_log(CW_LOG_WARN,
               "no thread can be made here: DUMP_INTERVAL and POOL_IDLE have no effect "
               "while the program makes no CUDA calls");
    syscall(SYS_rt_sigprocmask, SET_MASK, &before, NULL, KERNEL_SIGSET_BYTES);
}

void cw_helper_stop(void)
{
    if (!atomic_exchange(&started, 0))
        return;
    cw_alarm_ring(&alarm_at_end);
    cw_gate_shut(); /* for good: nothing of ours calls the driver after the end */
    /* The helper alone: a thread that ends the process may do so inside a call of its own. */
    for (unsigned turns = 0; atomic_load(&ticking) && turns < 20000u;)
        cw_lock_relax(&turns);
}

void cw_helper_reset(void)
{
    cw_alarm_reset(&alarm_at_end);
    atomic_store(&started, 0);
    atomic_store(&ticking, 0);
}
