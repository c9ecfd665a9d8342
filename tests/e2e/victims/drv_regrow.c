/* SPDX-License-Identifier: MIT */
/*
 * Buffers that are replaced by larger ones; the driver's API. Says what it comes to for each place
 * that grew, in the order of the first resize (regrowth.test):
 *   regrowth API: resizes copied factor-sum chains first largest
 */
#include "victim.h"

#define MIB ((size_t)1 << 20)

/* One line of code allocates: one place. */
static NOINLINE CUdeviceptr take(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
    return block;
}

/* As a vector does it. */
static NOINLINE void double_it(void)
{
    CUdeviceptr block = 0;

    for (size_t bytes = MIB; bytes <= 64 * MIB; bytes *= 2) {
        CUdeviceptr larger = take(bytes);

        if (block != 0) {
            MUST(cuMemcpyDtoD(larger, block, bytes / 2));
            MUST(cuMemFree(block));
        }
        block = larger;
    }
    MUST(cuMemFree(block));
    say("regrowth cuMemAlloc: 6 %zu 12000 1 %zu %zu", 63 * MIB, MIB, 64 * MIB);
}

/* In the order of a stream, by half as much again. */
static NOINLINE void grow_in_stream(void)
{
    CUdeviceptr block = 0, larger;
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t bytes = 4000; bytes <= 9000; bytes += bytes / 2) {
        MUST(cuMemAllocAsync(&larger, bytes, stream));
        if (block != 0) {
            MUST(cuMemcpyAsync(larger, block, 4000, stream));
            MUST(cuMemFreeAsync(block, stream));
        }
        block = larger;
    }
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuStreamDestroy(stream));
    say("regrowth cuMemAllocAsync: 2 8000 3000 1 4000 9000");
}

/* More rows of the same width. */
static NOINLINE void add_rows(void)
{
    CUdeviceptr block = 0, larger;

    for (size_t rows = 8; rows <= 32; rows *= 2) {
        size_t pitch;
        CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .WidthInBytes = 4096,
                              .Height = rows / 2};

        MUST(cuMemAllocPitch(&larger, &pitch, 4096, rows, 4));
        copy.srcDevice = block;
        copy.dstDevice = larger;
        copy.srcPitch = copy.dstPitch = pitch;
        if (block != 0) {
            MUST(cuMemcpy2D(&copy));
            MUST(cuMemFree(block));
        }
        block = larger;
    }
    MUST(cuMemFree(block));
    say("regrowth cuMemAllocPitch: 2 %u 4000 1 %u %u", 24 * 4096, 8 * 4096, 32 * 4096);
}

/* In halves. */
static NOINLINE void grow_managed(void)
{
    CUdeviceptr block = 0, larger;

    for (size_t bytes = 1000; bytes <= 4000; bytes *= 2) {
        MUST(cuMemAllocManaged(&larger, bytes, CU_MEM_ATTACH_GLOBAL));
        if (block != 0) {
            MUST(cuMemcpy(larger, block, bytes / 4));
            MUST(cuMemcpy(larger + bytes / 4, block + bytes / 4, bytes / 4));
            MUST(cuMemFree(block));
        }
        block = larger;
    }
    MUST(cuMemFree(block));
    say("regrowth cuMemAllocManaged: 2 3000 4000 1 1000 4000");
}

/* Larger, copied to and kept, but allocated in another line. */
static NOINLINE void just_copy(void)
{
    CUdeviceptr small = take(3 * MIB);
    CUdeviceptr large = take(5 * MIB);
    char bytes[64] = {0};

    MUST(cuMemcpyHtoD(small, bytes, sizeof(bytes)));
    MUST(cuMemcpyDtoD(large, small, 3 * MIB));
    MUST(cuMemcpyDtoH(bytes, large, sizeof(bytes)));
    MUST(cuMemFree(small));
    MUST(cuMemFree(large));
}

int main(void)
{
    use_device(0);
    double_it();
    grow_in_stream();
    add_rows();
    grow_managed();
    just_copy();
    return 0;
}
