/* SPDX-License-Identifier: MIT */
/* Allocates, fails and ends in a thread with a stack that is hardly larger than the smallest. */
#include "victim.h"

#include <limits.h>
#include <pthread.h>

static CUcontext context;

static NOINLINE void leak(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 1234));
    MUST_FAIL(cuMemAlloc(&block, (size_t)1 << 40), CUDA_ERROR_OUT_OF_MEMORY);
    MUST_FAIL(cuMemFree(1), CUDA_ERROR_INVALID_VALUE);
}

static void *work(void *argument)
{
    (void)argument;
    MUST(cuCtxSetCurrent(context));
    leak();
    exit(3);
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    context = use_device(0);
    pthread_attr_init(&attributes);
    /* Thread-local variables, ours too, come out of the stack. */
    pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN + 8192);
    say("expect leaked_bytes=1234 leaked_blocks=1 allocs=1 failed=1");
    if (pthread_create(&thread, &attributes, work, NULL) != 0)
        return 97;
    pthread_join(thread, NULL);
    return 98;
}
