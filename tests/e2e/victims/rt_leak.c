/* SPDX-License-Identifier: MIT */
/* Leaks on two paths and frees what it took on a third; the runtime's API. */
#include "victim_rt.h"

static NOINLINE void *load_weights(size_t bytes)
{
    void *weights;
    MUST(cudaMalloc(&weights, bytes));
    return weights;
}

static NOINLINE void grow_cache(int rows)
{
    for (int i = 0; i < rows; i++)
        load_weights(1 << 20);
}

static NOINLINE void forget_scratch(void)
{
    void *scratch;
    MUST(cudaMalloc(&scratch, 3000));
}

static NOINLINE void well_behaved(void)
{
    void *block = load_weights(64 << 20);
    MUST(cudaFree(block));
}

int main(void)
{
    well_behaved();
    grow_cache(4);
    forget_scratch();
    say("leaked 5 blocks, %d bytes", 4 * (1 << 20) + 3000);
    return 0;
}
