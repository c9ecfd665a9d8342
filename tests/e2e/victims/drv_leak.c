/* SPDX-License-Identifier: MIT */
/* Leaks on two paths and frees what it took on a third; the driver's API. */
#include "victim.h"

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
    use_device(0);
    well_behaved();
    grow_cache(4);
    forget_scratch();
    say("leaked 5 blocks, %d bytes", 4 * (1 << 20) + 3000);
    return 0;
}
