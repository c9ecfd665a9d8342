/* SPDX-License-Identifier: MIT */
/* Leaks on two paths and frees what it took on a third; the driver's API. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s returned %d\n", what, (int)result);
        exit(1);
    }
}
#define MUST(call) must(call, #call)

/* So that the leaks have stacks to tell them apart. */
#define NOINLINE __attribute__((noinline))

static NOINLINE CUdeviceptr load_weights(size_t bytes)
{
    CUdeviceptr weights;
    MUST(cuMemAlloc(&weights, bytes));
    return weights;
}

static NOINLINE void grow_cache(int rows)
{
    for (int i = 0; i < rows; i++)
        load_weights(1 << 20);
}

static NOINLINE void forget_scratch(void)
{
    CUdeviceptr scratch;
    MUST(cuMemAlloc(&scratch, 3000));
}

static NOINLINE void well_behaved(void)
{
    CUdeviceptr block = load_weights(64 << 20);
    MUST(cuMemFree(block));
}

int main(void)
{
    CUdevice device;
    CUcontext context;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    well_behaved();
    grow_cache(4);
    forget_scratch();
    printf("leaked 5 blocks, %d bytes\n", 4 * (1 << 20) + 3000);
    return 0;
}
