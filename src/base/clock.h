/* SPDX-License-Identifier: MIT */
/* The exact clocks: some ten nanoseconds a look. */
#ifndef CW_BASE_CLOCK_H
#define CW_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cw_clock_read(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* For durations, in ns. */
static inline uint64_t cw_clock_ns(void)
{
    return cw_clock_read(CLOCK_MONOTONIC);
}

/* Since 1970, in ns. */
static inline uint64_t cw_clock_real_ns(void)
{
    return cw_clock_read(CLOCK_REALTIME);
}

#endif
