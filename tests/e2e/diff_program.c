/* SPDX-License-Identifier: MIT */
/* The program of diff.test before the change. */
#include "victim.h"
static NOINLINE void load(size_t bytes)
{
    CUdeviceptr block;
#ifdef REBUILT
    volatile int longer[16] = {0};

    for (int i = 0; i < 16; i++)
        longer[i] += i;
#endif
    MUST(cuMemAlloc(&block, bytes));
}
NOINLINE void extra(size_t bytes);
NOINLINE void extra(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL));
}
int main(int argc, char **argv)
{
    use_device(0);
#ifdef REBUILT
    extra(4096);
#endif
    load(strtoul(argv[argc - 1], NULL, 0));
    load(1000);
    return 0;
}
