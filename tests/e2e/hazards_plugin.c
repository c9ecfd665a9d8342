/* SPDX-License-Identifier: MIT */
/* The plug-in of hazards.test. */
int usleep(unsigned microseconds);
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *block, unsigned long bytes);
int cuMemFree_v2(unsigned long long block);
static void __attribute__((constructor)) loaded(void)
{
    unsigned long long block;
    void *context;

    usleep(5000); /* the other thread is well inside its first call by now */
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    for (int i = 0; i < 1000; i++)
        if (cuMemAlloc_v2(&block, 512) == 0)
            cuMemFree_v2(block);
}
