/* SPDX-License-Identifier: MIT */
/* Fills blocks on the device and checks them there: every element depends on its place and a seed.
 */
#ifndef CONTENTS_H
#define CONTENTS_H

#include "gpu.h"

static __host__ __device__ inline unsigned expected_at(size_t i, unsigned seed)
{
    return (unsigned)i * 2654435761u + seed;
}

static __global__ void fill_kernel(unsigned *block, size_t count, unsigned seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        block[i] = expected_at(i, seed);
}

static __global__ void check_kernel(const unsigned *block, size_t count, unsigned seed,
                                    unsigned *wrong)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        if (block[i] != expected_at(i, seed))
            atomicAdd(wrong, 1u);
}

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

#endif
