/* SPDX-License-Identifier: MIT */
/* A program of stacks.test. */
#include <stddef.h>
#include <stdio.h>
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *block, size_t bytes);
#define FUNCTION __attribute__((noinline, noclone, noipa)) static int
#define STAY()   __asm__ volatile("" ::: "memory")
FUNCTION inner(size_t bytes)
{
    unsigned long long block;
    int rc = cuMemAlloc_v2(&block, bytes);
    STAY();
    return rc;
}
FUNCTION middle(size_t bytes)
{
    volatile char room[200];
    room[bytes % 200] = 1;
    int rc = inner(bytes);
    STAY();
    return rc + room[bytes % 200] - 1;
}
FUNCTION varying(size_t bytes)
{
    volatile char room[bytes];
    room[bytes - 1] = 1;
    int rc = middle(bytes);
    STAY();
    return rc + room[bytes - 1] - 1;
}
int main(int argc, char **argv)
{
    void *context;
    static const char *const lines[] = {"stack %zu inner<middle<varying<main<...\n",
                                        "stack %zu shipped<shipped<shipped<shipped<...\n"};
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    for (size_t bytes = 100; bytes < 130; bytes++) {
        printf(lines[argc > 1], bytes);
        varying(bytes);
    }
    (void)argv;
    return 0;
}
