/* SPDX-License-Identifier: MIT */
/* A plug-in of hazards.test: its constructor waits for a thread that calls CUDA. */
#include <pthread.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *block, unsigned long bytes);
int cuMemFree_v2(unsigned long long block);

/* Two frames are more than a caller. */
static __attribute__((noinline)) int take(void)
{
    unsigned long long kept, block;

    return cuMemAlloc_v2(&kept, 1000) == 0 && cuMemAlloc_v2(&block, 1 << 20) == 0 &&
           cuMemFree_v2(block) == 0;
}

static __attribute__((noinline)) void *call(void *unused)
{
    void *context;

    if (cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
        cuCtxSetCurrent(context) == 0 && take())
        puts("the constructor's thread has its blocks");
    return unused;
}

static void __attribute__((constructor)) loaded(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, call, NULL) == 0)
        pthread_join(thread, NULL);
}
