/* SPDX-License-Identifier: MIT */
/*
 * Places that grow, and places that do not, for some time (growth.test). Each step takes a few
 * milliseconds, so that there are enough samples of it.
 *   drv_growth [free]   free: everything goes back in the end
 */
#include "victim.h"

#include <string.h>
#include <time.h>

#define KIB   ((size_t)1024)
#define STEPS 80

static CUdeviceptr steady[STEPS], rising[STEPS], cache[STEPS / 8], tooth[10], large;

static void wait_a_little(void)
{
    const struct timespec pause = {.tv_nsec = 8000000};

    nanosleep(&pause, NULL);
}

/* A block each step, and none goes. */
static NOINLINE void grow_steadily(unsigned step)
{
    MUST(cuMemAlloc(&steady[step], 64 * KIB));
}

/* Half of what comes goes again: every second step two come, then one goes. */
static NOINLINE void grow_in_teeth(unsigned step)
{
    MUST(cuMemAlloc(&rising[step], 256 * KIB));
    if (step % 2 == 1) {
        MUST(cuMemFree(rising[step - 1]));
        rising[step - 1] = 0;
    }
}

/* Its table is full early on. */
static NOINLINE void warm_up(unsigned step)
{
    if (step < STEPS / 8)
        MUST(cuMemAlloc(&cache[step], 512 * KIB));
}

/* Up and down, and never further down than before. */
static NOINLINE void stay_level(unsigned step)
{
    if (step % 10 == 0 && step > 0) {
        for (unsigned i = 0; i < 10; i++)
            MUST(cuMemFree(tooth[i]));
    }
    MUST(cuMemAlloc(&tooth[step % 10], 128 * KIB));
}

static NOINLINE void take_late(unsigned step)
{
    if (step == STEPS * 3 / 4)
        MUST(cuMemAlloc(&large, 8192 * KIB));
}

static void give_back(CUdeviceptr *block, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (block[i] != 0)
            MUST(cuMemFree(block[i]));
}

int main(int argc, char **argv)
{
    int frees = argc > 1 && strcmp(argv[1], "free") == 0;

    use_device(0);
    for (unsigned step = 0; step < STEPS; step++) {
        grow_steadily(step);
        grow_in_teeth(step);
        warm_up(step);
        stay_level(step);
        take_late(step);
        wait_a_little();
    }
    if (frees) {
        give_back(steady, STEPS);
        give_back(rising, STEPS);
    }
    give_back(cache, STEPS / 8);
    give_back(tooth, 10);
    MUST(cuMemFree(large));
    return 0;
}
