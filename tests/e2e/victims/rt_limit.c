/* SPDX-License-Identifier: MIT */
/* What the runtime tells of memory, and what it says of a call that found none. */
#include "victim_rt.h"

static void tell(void)
{
    size_t free_bytes = 0, total = 0;
    struct cudaDeviceProp prop;

    MUST(cudaMemGetInfo(&free_bytes, &total));
    MUST(cudaGetDeviceProperties(&prop, 0));
    fprintf(stderr, "free=%zu total=%zu properties=%zu\n", free_bytes, total, prop.totalGlobalMem);
}

static void tell_error(const char *call, cudaError_t rc)
{
    say("%s %d", call, (int)rc);
    say("last error %d", (int)cudaGetLastError());
    say("then %d", (int)cudaPeekAtLastError());
}

static void ask(size_t bytes)
{
    void *block = NULL;
    size_t pitch;

    tell_error("cudaMalloc", cudaMalloc(&block, bytes));
    tell_error("cudaMallocAsync", cudaMallocAsync(&block, bytes, NULL));
    tell_error("cudaMallocPitch", cudaMallocPitch(&block, &pitch, 1 << 20, bytes >> 20));
    /* What else is wrong with a call comes first. */
    tell_error("cudaMallocManaged to nowhere", cudaMallocManaged(NULL, bytes, 1));
    tell_error("cudaMallocAsync to nowhere", cudaMallocAsync(NULL, bytes, NULL));
    tell_error("cudaMallocPitch to nowhere", cudaMallocPitch(NULL, NULL, 1 << 20, bytes >> 20));
    tell_error("cudaMallocManaged with no such flags", cudaMallocManaged(&block, bytes, 77));
}

int main(void)
{
    void *block;

    tell();
    MUST(cudaMalloc(&block, 100 << 20));
    tell();
    ask((size_t)1 << 40);
    ask((size_t)900 << 20);
    MUST(cudaFree(block));
    tell();
    return 0;
}
