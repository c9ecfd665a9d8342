/* SPDX-License-Identifier: MIT */
/* The exact clock, for waits of our own: some ten nanoseconds a look. */
#ifndef CW_BASE_CLOCK_H
#define CW_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t cw_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
