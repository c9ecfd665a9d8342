/* SPDX-License-Identifier: MIT */
/* A futex that is waited on with a deadline. See alarm.h. */
#include "base/alarm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

int cw_alarm_wait(struct cw_alarm *alarm, uint64_t ns)
{
    uint64_t now = cw_clock_ns(), end = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
    int saved = errno;

    for (; atomic_load(&alarm->rung) == 0 && now < end; now = cw_clock_ns()) {
        struct timespec rest = {.tv_sec = (time_t)((end - now) / 1000000000u),
                                .tv_nsec = (long)((end - now) % 1000000000u)};

        syscall(SYS_futex, &alarm->rung, FUTEX_WAIT, 0, &rest, NULL, 0);
    }
    errno = saved;
    return atomic_load(&alarm->rung) != 0;
}

void cw_alarm_ring(struct cw_alarm *alarm)
{
    int saved = errno;

    atomic_store(&alarm->rung, 1);
    syscall(SYS_futex, &alarm->rung, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

void cw_alarm_reset(struct cw_alarm *alarm)
{
    atomic_store(&alarm->rung, 0);
}
