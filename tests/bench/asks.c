/* SPDX-License-Identifier: MIT */
/*
 * What a program pays for asking (include/cuwarden): nanoseconds of a push, a pop, a mark and the
 * statistics of a device, each the best of many bursts, so that who else is at work does not count.
 * Over the driver that costs nothing.
 */
#include <cuwarden/cuwarden.h>

#include <cuda.h>

#include <stdio.h>
#include <time.h>

#define BURST  30 /* no more than tags nest */
#define BURSTS 20000

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The best burst of a call. */
#define BEST(best, call)                                                                           \
    do {                                                                                           \
        double begin = now_ns(), each;                                                             \
                                                                                                   \
        for (int i = 0; i < BURST; i++)                                                            \
            call;                                                                                  \
        each = (now_ns() - begin) / BURST;                                                         \
        if (best == 0 || each < best)                                                              \
            best = each;                                                                           \
    } while (0)

int main(void)
{
    double push = 0, pop = 0, mark = 0, statistics = 0;
    struct cuwarden_stats stats;
    CUcontext context;
    CUdeviceptr block;
    uint64_t moment;

    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc(&block, 4096) != CUDA_SUCCESS)
        return 1;
    for (int burst = 0; burst < BURSTS; burst++) {
        BEST(push, cuwarden_tag_push("forward pass"));
        BEST(pop, cuwarden_tag_pop());
        BEST(mark, cuwarden_mark(&moment));
        BEST(statistics, cuwarden_device_stats(0, &stats));
    }
    if (!cuwarden_is_active())
        return 2;
    printf("%.1f %.1f %.1f %.1f\n", push, pop, mark, statistics);
    return 0;
}
