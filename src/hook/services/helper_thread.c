/* SPDX-License-Identifier: MIT */
/* See helper_thread.h. */
#include "hook/services/helper_thread.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/float_env.h"
#include "core/process/thread.h"
#include "hook/resolve/object.h"

/* pthread_create and pthread_sigmask moved between glibc's libraries: the one is looked up, the
 * other is a system call. A pthread_t is an unsigned long there. */
typedef int (*create_fn)(unsigned long *thread, const void *attr, void *(*start)(void *),
                         void *arg);
typedef int (*detach_fn)(unsigned long thread);

#define KERNEL_SIGSET_BYTES 8
#define SET_MASK            2 /* SIG_SETMASK */
/* 32 and 33, which glibc sends to every thread for setuid and the like. */
#define C_LIBRARY_SIGNALS ((uint64_t)3 << 31)

/* As the thread's argument. */
union work {
    void (*fn)(void);
    void *as_pointer;
};

static void *run(void *arg)
{
    union work work = {.as_pointer = arg};

    prctl(PR_SET_NAME, "cuwarden");
    cw_thread.depth = 1; /* hooks that the driver calls on the way pass straight through */
    cw_thread.is_helper = 1;
    (void)cw_float_hold(); /* inherited from the creator, as the mask of signals is */
    work.fn();
    return NULL;
}

int cw_helper_thread_start(void (*work)(void))
{
    uint64_t all = ~C_LIBRARY_SIGNALS, before = 0;
    create_fn create = (create_fn)cw_object_next_symbol("pthread_create");
    detach_fn detach = (detach_fn)cw_object_next_symbol("pthread_detach");
    union work arg = {.fn = work};
    unsigned long thread;
    int rc = -1;

    /* The thread inherits its creator's signal mask. */
    syscall(SYS_rt_sigprocmask, SET_MASK, &all, &before, KERNEL_SIGSET_BYTES);
    if (create != NULL && create(&thread, NULL, run, arg.as_pointer) == 0)
        rc = 0;
    syscall(SYS_rt_sigprocmask, SET_MASK, &before, NULL, KERNEL_SIGSET_BYTES);
    if (rc == 0 && detach != NULL)
        detach(thread); /* nobody waits for its end */
    return rc;
}
