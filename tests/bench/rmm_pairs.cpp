/* SPDX-License-Identifier: MIT */
/*
 * The workloads over the resources of an installed RMM.
 *
 *   rmm_pairs [kind=pool|arena|async] NAME=VALUE...
 *
 * The pool, or the arenas, begin with half of what the device has left, as RMM advises, and may
 * grow to nine tenths. Above them stands what programs hold, a resource of any type; below them a
 * resource that calls the runtime which this program is linked with. RMM's own does the same, but
 * by the runtime inside librmm.so, which needs a real driver; so do arena and async.
 */
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <cstring>
#include <new>

#include "on_runtime.h"

namespace
{

using any_resource = cuda::mr::any_resource<cuda::mr::device_accessible>;

constexpr std::size_t alignment = 256, granularity = std::size_t{2} << 20;

struct runtime_resource {
    void *allocate_sync(std::size_t bytes, std::size_t = alignment)
    {
        void *address = nullptr;

        if (cudaMalloc(&address, bytes) != cudaSuccess)
            throw std::bad_alloc();
        return address;
    }
    void deallocate_sync(void *address, std::size_t, std::size_t = alignment) noexcept
    {
        cudaFree(address);
    }
    void *allocate(cuda::stream_ref, std::size_t bytes, std::size_t = alignment)
    {
        return allocate_sync(bytes);
    }
    void deallocate(cuda::stream_ref, void *address, std::size_t bytes,
                    std::size_t = alignment) noexcept
    {
        deallocate_sync(address, bytes);
    }
    bool operator==(const runtime_resource &) const noexcept
    {
        return true;
    }
    friend void get_property(const runtime_resource &, cuda::mr::device_accessible) noexcept
    {
    }
};

any_resource *resource;

} // namespace

static inline uint64_t take_block(size_t bytes, void *stream)
{
    try {
        return (uint64_t)resource->allocate(cuda::stream_ref{(cudaStream_t)stream}, bytes,
                                            alignment);
    } catch (const std::exception &error) {
        return say_no_block(error);
    }
}

static inline void give_block(uint64_t address, size_t bytes, void *stream)
{
    resource->deallocate(cuda::stream_ref{(cudaStream_t)stream}, (void *)address, bytes, alignment);
}

#include "workload.h"

#include "play_trace.h"

/* Never destroyed: the device may be gone by then. */
static int open_resource(const char *kind)
{
    std::size_t left, half, most;

    begin_thread();
    left = free_memory();
    half = left / 2 / granularity * granularity;
    most = left / 10 * 9 / granularity * granularity;
    if (strcmp(kind, "pool") == 0)
        resource = new any_resource(rmm::mr::pool_memory_resource(runtime_resource{}, half, most));
    else if (strcmp(kind, "arena") == 0)
        resource = new any_resource(rmm::mr::arena_memory_resource(runtime_resource{}, most));
    else if (strcmp(kind, "async") == 0)
        resource = new any_resource(rmm::mr::cuda_async_memory_resource());
    else
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    const char *kind = "pool", *trace;

    argc--;
    argv++;
    if (argc > 0 && strncmp(argv[0], "kind=", 5) == 0) {
        kind = argv[0] + 5;
        argc--;
        argv++;
    }
    trace = traced_file(argc, argv);
    try {
        if (open_resource(kind) != 0) {
            fprintf(stderr, "no kind %s\n", kind);
            return 2;
        }
    } catch (const std::exception &error) {
        say_no_block(error);
        return 2;
    }
    if (trace != NULL)
        return play_trace(trace);
    return run_workload(argc, argv);
}
