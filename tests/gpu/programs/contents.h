/* SPDX-License-Identifier: MIT */
/* Fills blocks on the device and checks them there: every element depends on its place and a seed.
 */
#ifndef CONTENTS_H
#define CONTENTS_H

#include "gpu.h"
#include "kernel.h"

static __host__ __device__ inline unsigned expected_at(size_t i, unsigned seed)
{
    return (unsigned)i * 2654435761u + seed;
}

static __host__ __device__ inline void fill_body(size_t thread, size_t threads, unsigned *block,
                                                 size_t count, unsigned seed)
{
    for (size_t i = thread; i < count; i += threads)
        block[i] = expected_at(i, seed);
}

static __global__ void fill_kernel(unsigned *block, size_t count, unsigned seed)
{
    fill_body(PLACE, block, count, seed);
}
EMULATED(fill_kernel, fill_body);

static __host__ __device__ inline void check_body(size_t thread, size_t threads,
                                                  const unsigned *block, size_t count,
                                                  unsigned seed, unsigned *wrong)
{
    for (size_t i = thread; i < count; i += threads)
        if (block[i] != expected_at(i, seed))
            count_one(wrong);
}

static __global__ void check_kernel(const unsigned *block, size_t count, unsigned seed,
                                    unsigned *wrong)
{
    check_body(PLACE, block, count, seed, wrong);
}
EMULATED(check_kernel, check_body);

static inline void fill(void *block, size_t bytes, unsigned seed, cudaStream_t stream)
{
    fill_kernel<<<32, 128, 0, stream>>>((unsigned *)block, bytes / sizeof(unsigned), seed);
    MUST(cudaGetLastError());
}

/* Adds the number of wrong elements to *wrong, which lies on the device. */
static inline void check(const void *block, size_t bytes, unsigned seed, unsigned *wrong,
                         cudaStream_t stream)
{
    check_kernel<<<32, 128, 0, stream>>>((const unsigned *)block, bytes / sizeof(unsigned), seed,
                                         wrong);
    MUST(cudaGetLastError());
}

/* A counter of wrong elements that was allocated becomes 0; and it does count: a program whose
 * kernels do nothing must not pass. Both kernels are loaded from here on, so that none has to be
 * during a capture. */
static inline void start_counter(unsigned *wrong, cudaStream_t stream)
{
    unsigned counted;

    fill(wrong, sizeof(*wrong), 7, stream);
    check(wrong, sizeof(*wrong), 8, wrong, stream); /* finds 7 where 8 should be, and adds 1 */
    MUST(cudaMemcpyAsync(&counted, wrong, sizeof(counted), cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(counted == 8 ? cudaSuccess : cudaErrorLaunchFailure);
    MUST(cudaMemsetAsync(wrong, 0, sizeof(*wrong), stream));
}

#endif
