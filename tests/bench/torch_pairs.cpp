/* SPDX-License-Identifier: MIT */
/*
 * The workloads over PyTorch's caching allocator, that of an installed PyTorch, as it is set up by
 * default. What tensors and Python do around it is not in it: an allocation of a tensor comes to
 * the same two calls, with more before them.
 */
#include <c10/cuda/CUDACachingAllocator.h>

#include "on_runtime.h"

namespace allocator = c10::cuda::CUDACachingAllocator;

static inline uint64_t take_block(size_t bytes, void *stream)
{
    try {
        return (uint64_t)allocator::raw_alloc_with_stream(bytes, (cudaStream_t)stream);
    } catch (const std::exception &error) {
        return say_no_block(error);
    }
}

static inline void give_block(uint64_t address, size_t, void *)
{
    allocator::raw_delete((void *)address);
}

#include "workload.h"

#include "play_trace.h"

int main(int argc, char **argv)
{
    const char *trace = traced_file(argc - 1, argv + 1);

    allocator::init(1);
    if (trace != NULL)
        return play_trace(trace);
    return run_workload(argc - 1, argv + 1);
}
