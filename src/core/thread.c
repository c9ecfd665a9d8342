/* SPDX-License-Identifier: MIT */
/* The per-thread state and the epoch of its caches. See thread.h. */
#include "core/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

CW_TLS struct cw_thread cw_thread;

_Atomic uint32_t cw_epoch = 1;

void cw_epoch_advance(void)
{
    atomic_fetch_add(&cw_epoch, 1);
}

uint32_t cw_thread_tid(void)
{
    if (cw_thread.tid == 0)
        cw_thread.tid = (uint32_t)syscall(SYS_gettid);
    return cw_thread.tid;
}
