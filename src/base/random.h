/* SPDX-License-Identifier: MIT */
/* A number that nobody else can guess, for names of files in directories where others write. */
#ifndef CW_BASE_RANDOM_H
#define CW_BASE_RANDOM_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CW_RANDOM_LATER 1 /* GRND_NONBLOCK */

static inline uint64_t cw_random(void)
{
    struct timespec now;
    uint64_t number;

    if (syscall(SYS_getrandom, &number, sizeof(number), CW_RANDOM_LATER) == sizeof(number))
        return number;
    clock_gettime(CLOCK_MONOTONIC, &now); /* early in the boot: only to tell names apart */
    return ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec) * 0x9e3779b97f4a7c15u;
}

#endif
