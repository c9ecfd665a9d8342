/* SPDX-License-Identifier: MIT */
/* A context is destroyed with live blocks in it: they are leaks of a class of their own. */
#include "victim.h"

static NOINLINE void leak_into_context(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
}

static NOINLINE void leak_pinned_into_context(void)
{
    void *block;

    MUST(cuMemAllocHost(&block, 3000));
}

int main(void)
{
    CUcontext context;
    CUdeviceptr freed;

    MUST(cuInit(0));
#if CUDA_VERSION >= 13000
    MUST(cuCtxCreate(&context, NULL, 0, 0)); /* the newest ABI; the other victims use the oldest */
#else
    MUST(cuCtxCreate(&context, 0, 0));
#endif
    leak_into_context(10000);
    leak_pinned_into_context();
    MUST(cuMemAlloc(&freed, 100));
    MUST(cuMemFree(freed));
    MUST(cuCtxDestroy(context));
    say("expect leaked_bytes=13000 leaked_blocks=2 leak_sites=2 allocs=3 frees=1 failed=0");
    say("report in 1 block  context-destroyed  cuMemAlloc, device 0");
    say("report  leak_into_context  ");
    say("json site('leak_into_context')['class'] == 'context-destroyed'");
    say("json site('leak_into_context')['reclaimed'] == {'count': 1, 'bytes': 10000}");
    say("json live('leak_into_context') == (0, 0) and kind('pinned') == (0, 0)");
    return 0;
}
