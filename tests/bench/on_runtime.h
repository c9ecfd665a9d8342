/* SPDX-License-Identifier: MIT */
/*
 * What workload.h asks of its contestants and is the same for all that stand on the CUDA runtime:
 * the one that costs nothing (null_runtime.c, with -DNULL_DRIVER) or a real one.
 */
#ifndef ON_RUNTIME_H
#define ON_RUNTIME_H

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

static void must(cudaError_t result, const char *call)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s: error %d of the runtime\n", call, (int)result);
    exit(2);
}

/* For allocators that throw: the first line of what they say. Returns 0, no address. */
static inline uint64_t say_no_block(const std::exception &error)
{
    const char *text = error.what();

    fprintf(stderr, "%.*s\n", (int)strcspn(text, "\n"), text);
    return 0;
}

static inline void touch_block(uint64_t address, size_t bytes, void *stream)
{
    must(cudaMemsetAsync((void *)address, 1, bytes, (cudaStream_t)stream), "cudaMemsetAsync");
}

static inline void wait_stream(void *stream)
{
    must(cudaStreamSynchronize((cudaStream_t)stream), "cudaStreamSynchronize");
}

static inline void synchronize(void)
{
    cudaDeviceSynchronize();
}

static void begin_thread(void)
{
    must(cudaSetDevice(0), "cudaSetDevice");
}

static void open_streams(void **streams, long count)
{
    for (long i = 0; i < count; i++)
        must(cudaStreamCreateWithFlags((cudaStream_t *)&streams[i], cudaStreamNonBlocking),
             "cudaStreamCreateWithFlags");
}

static uint64_t free_memory(void)
{
    size_t free_bytes, total;

    must(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
    return free_bytes;
}

#ifdef NULL_DRIVER
extern "C" uint64_t null_upstream(void);
#else
static uint64_t null_upstream(void)
{
    return UINT64_MAX;
}
#endif

#endif
