/* SPDX-License-Identifier: MIT */
/*
 * The workloads over cub::CachingDeviceAllocator of the toolkit's own headers.
 *
 * Set up so that it is at its best here. Bins of all powers of two from 512 B to 2 GiB, which is as
 * far as its arithmetic goes: what is larger it takes from the runtime each time. (With a growth of
 * 8, its default, the mixes are 7 % faster and a block may be eight times what was asked for.) No
 * limit to what it keeps. The forms without a device number, which spare it setting the device and
 * setting it back.
 */
#include <cub/util_allocator.cuh>

#include "on_runtime.h"

static cub::CachingDeviceAllocator allocator(/* bin_growth */ 2, /* min_bin */ 9, /* max_bin */ 31,
                                             cub::CachingDeviceAllocator::INVALID_SIZE,
                                             /* skip_cleanup */ true);

static inline uint64_t take_block(size_t bytes, void *stream)
{
    void *address = nullptr;

    if (allocator.DeviceAllocate(&address, bytes, (cudaStream_t)stream) != cudaSuccess)
        return 0;
    return (uint64_t)address;
}

static inline void give_block(uint64_t address, size_t, void *)
{
    allocator.DeviceFree((void *)address);
}

#include "workload.h"

int main(int argc, char **argv)
{
    return run_workload(argc - 1, argv + 1);
}
