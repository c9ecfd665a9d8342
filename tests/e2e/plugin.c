/* SPDX-License-Identifier: MIT */
/* A plugin that leaks: see init.sh. */
#include "victim.h"
#include <unistd.h>

#ifdef SYMBOL
NOINLINE int take(void) __asm__(SYMBOL);
int take(void)
{
    CUdeviceptr block;

    use_device(0);
    for (volatile int i = 0; i < BLOCKS; i++)
        MUST(cuMemAlloc(&block, BYTES));
    return BLOCKS;
}
#endif
#ifdef CALLS
NOINLINE int call(void) __asm__(CALLS);
#else
#define call take
#endif
NOINLINE int work(void)
{
    int result = call();

    usleep(5000); /* so that blocks have an age */
    return chdir("/") + result;
}
