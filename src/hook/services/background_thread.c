/* SPDX-License-Identifier: MIT */
/*
 * A thread that ticks, and does what has come due. See background_thread.h.
 *
 * A thread sets its request before it rings, and the background thread looks for requests after it
 * resets the alarm: no request is lost.
 */
#include "hook/services/background_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/sys.h"
#include "core/account/idle.h"
#include "core/limits/demand.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/control/tick.h"
#include "core/cache/retention.h"
#include "hook/services/dump.h"
#include "hook/services/dispatch.h"
#include "hook/services/helper_thread.h"

/* Fields of /proc/self/stat, from 1. */
#define STAT_STATE   3
#define STAT_THREADS 20

#define LEAVE_TURNS 4000u /* of cw_lock_relax, for a thread that is at work */

/* How often it looks for due work by itself: where another process cannot ring, because the file
 * system maps another file than was opened. */
#define LOOK_NS UINT64_C(250000000)

static _Atomic int started, running, stopping, working;
static _Atomic int watching; /* much lies idle */
static _Atomic int leaving;  /* the thread is to end if it may */
static _Atomic uint32_t tid;
static const struct cw_options *asked; /* what the options ask for, if anything; else NULL */

/* In the live file, so that another process can ring. */
static struct cw_alarm *bell(void)
{
    static struct cw_alarm none;
    struct cw_live_header *header = cw_session.arena.header;

    return header != NULL ? &header->control.bell : &none;
}

static int is_over(void)
{
    return atomic_load(&stopping) || !cw_session_is_armed();
}

static uint64_t after(uint64_t ns)
{
    uint64_t now = cw_clock_ns();

    return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

static uint64_t next_tick(void)
{
    return after(cw_tick_left(atomic_load(&watching)));
}

/* Looks every LOOK_NS only if the options ask for something: otherwise nobody waits for an
 * answer. */
static void wait_until(uint64_t next)
{
    uint64_t now = cw_clock_ns(), left = next > now ? next - now : 0;

    cw_alarm_wait(bell(), asked != NULL && left > LOOK_NS ? LOOK_NS : left);
    cw_alarm_reset(bell());
}

static void work(uint64_t *next)
{
    if (cw_clock_ns() >= *next) {
        if (cw_tick())
            cw_dump_ask(CW_DUMP_INTERVAL);
        if (atomic_load(&watching) && cw_retention_end_watch())
            atomic_store(&watching, 0);
        *next = next_tick();
    }
    if (*next > next_tick()) /* there is more to look at than before */
        *next = next_tick();
    cw_dispatch_due();
}

/* 1: all threads of the program have ended, the first one by pthread_exit. The process ends with
 * its last thread, which must not be ours: we take no signals, so nothing could end it. */
static int is_alone(void)
{
    char text[512];
    const char *at;
    size_t len = 0;
    int fd = cw_sys_open("/proc/self/stat", O_RDONLY, 0);

    if (fd < 0)
        return 0;
    len = cw_sys_read_at(fd, text, sizeof(text) - 1, 0);
    cw_sys_close(fd);
    text[len] = '\0';
    at = strrchr(text, ')'); /* of the name; then " STATE ..." */
    if (at == NULL || strncmp(at, ") Z ", 4) != 0)
        return 0;
    for (int field = STAT_STATE - 1; at != NULL && field < STAT_THREADS; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && strncmp(at, " 2 ", 3) == 0;
}

/* Who watches from now on starts another thread, unless that was before `started` was reset. */
static int has_left(void)
{
    if (!atomic_exchange(&leaving, 0) || (atomic_load(&watching) && !cw_retention_end_watch()))
        return 0;
    atomic_store(&watching, 0);
    atomic_store(&running, 0);
    atomic_store(&started, 0);
    if (!atomic_load(&watching) || atomic_exchange(&started, 1))
        return 1;
    atomic_store(&running, 1);
    return 0;
}

static void run(void)
{
    uint64_t next = next_tick();
    int is_last = 0;

    atomic_store(&tid, cw_thread_tid());
    atomic_store(&running, 1);
    while (!is_last) {
        wait_until(next);
        atomic_store(&working, 1);
        is_last = is_over() || is_alone() || has_left();
        if (!is_last)
            work(&next);
        atomic_store(&working, 0);
    }
}

static void start(const char *in_vain)
{
    if (atomic_exchange(&started, 1))
        return;
    cw_tick_init(cw_session.options);
    if (cw_helper_thread_start(run) != 0)
        cw_log(CW_LOG_WARN, "no thread can be made here: %s while the program makes no CUDA calls",
               in_vain);
}

void cw_background_thread_start(const struct cw_options *options)
{
    if (!cw_tick_is_asked(options) && options->dump_signal == 0)
        return;
    asked = options;
    start("DUMP_INTERVAL, LOG_INTERVAL and DUMP_SIGNAL have no effect");
}

void cw_background_thread_watch(void)
{
    atomic_store(&watching, 1);
    if (!atomic_load(&started))
        start("idle memory stays");
    else
        cw_alarm_ring(bell());
}

int cw_background_thread_runs(void)
{
    return atomic_load(&running) && !atomic_load(&stopping);
}

void cw_background_thread_wake(void)
{
    cw_alarm_ring(bell());
}

static int is_any_idle(void)
{
    for (unsigned i = 0; i < CW_DEVICES; i++)
        if (cw_idle_bytes((uint8_t)i) != 0)
            return 1;
    return 0;
}

/* The kernel no longer counts it. */
static int is_gone(void)
{
    return !atomic_load(&started) &&
           syscall(SYS_tgkill, getpid(), (pid_t)atomic_load(&tid), 0) != 0;
}

void cw_background_thread_leave(void)
{
    unsigned turns = 0;
    int saved = errno;

    if (!atomic_load(&started) || asked != NULL || cw_thread.is_helper || is_any_idle())
        return;
    atomic_store(&leaving, 1);
    cw_alarm_ring(bell());
    while (turns < LEAVE_TURNS && !is_gone())
        cw_lock_relax(&turns);
    errno = saved;
}

void cw_background_thread_stop(void)
{
    if (!atomic_exchange(&started, 0))
        return;
    atomic_store(&stopping, 1);
    cw_alarm_ring(bell());
    cw_gate_shut_down(); /* we call the driver no more after the end */
    /* Only the background thread's calls: a thread may end the process inside a call of its own. */
    for (unsigned turns = 0; atomic_load(&working) && turns < 20000u;)
        cw_lock_relax(&turns);
}

void cw_background_thread_reset(void)
{
    atomic_store(&started, 0);
    atomic_store(&running, 0);
    atomic_store(&stopping, 0);
    atomic_store(&working, 0);
    atomic_store(&watching, 0);
    atomic_store(&leaving, 0);
    asked = NULL;
}
