/* SPDX-License-Identifier: MIT */
/*
 * The workloads over cub::CachingDeviceAllocator of the toolkit's own headers, over a runtime that
 * costs nothing (null_runtime.c).
 *
 * Set up so that it is at its best here. Bins of all powers of two from 512 B to 256 MiB: no size
 * of a workload goes past them. (With a growth of 8, its default, the mixes are 7 % faster and a
 * block may be eight times what was asked for.) No limit to what it keeps. One stream, so that it
 * never asks an event. The forms without a device number, which spare it setting the device and
 * setting it back.
 */
#include <cub/util_allocator.cuh>

#include <cstdint>

extern "C" uint64_t null_upstream(void);

static cub::CachingDeviceAllocator allocator(/* bin_growth */ 2, /* min_bin */ 9, /* max_bin */ 28,
                                             cub::CachingDeviceAllocator::INVALID_SIZE,
                                             /* skip_cleanup */ true);

static inline uint64_t take_block(size_t bytes)
{
    void *address = nullptr;

    if (allocator.DeviceAllocate(&address, bytes) != cudaSuccess)
        return 0;
    return (uint64_t)address;
}

static inline void give_block(uint64_t address)
{
    allocator.DeviceFree((void *)address);
}

/* One stream: it waits for nothing. */
static inline void synchronize(void)
{
}

#include "workload.h"

int main(int argc, char **argv)
{
    return run_workload(argc - 1, argv + 1);
}
