/* SPDX-License-Identifier: MIT */
/* A green context folds into its primary one: a block taken in it is counted once, on its device,
 * and is not a leak of a destroyed context when the green one goes. */
#include "victim.h"

#if CUDA_VERSION >= 12040
static NOINLINE CUdeviceptr take_in_green_context(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
    return block;
}

int main(void)
{
    CUdevResource all;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUcontext primary, context;
    CUdeviceptr freed;
    int last;

    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&last));
    last -= 1;
    primary = use_device(last);
    MUST(cuDeviceGetDevResource(last, &all, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevResourceGenerateDesc(&desc, &all, 1));
    MUST(cuGreenCtxCreate(&green, desc, last, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuCtxFromGreenCtx(&context, green));
    MUST(cuCtxSetCurrent(context));
    freed = take_in_green_context(5000);
    take_in_green_context(6000);
    MUST(cuMemFree(freed));
    MUST(cuCtxSetCurrent(primary));
    MUST(cuGreenCtxDestroy(green));
    say("expect leaked_bytes=6000 leaked_blocks=1 leak_sites=1 allocs=2 frees=1 failed=0");
    say("json {s['device'] for s in sites('take_in_green_context')} == {%d}", last);
    say("json [s['class'] for s in sites('take_in_green_context') if 'class' in s] == ['lost']");
    return 0;
}
#else
int main(void)
{
    return 77;
}
#endif
