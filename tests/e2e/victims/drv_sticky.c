/* SPDX-License-Identifier: MIT */
/* A kernel breaks the context (the test scripts error 700): from then on every call returns it, and
 * the blocks are gone with the context. */
#include "victim.h"

static NOINLINE void notice(void)
{
    say("cuCtxSynchronize returned %d", (int)cuCtxSynchronize());
}

int main(void)
{
    CUdeviceptr block, other;

    use_device(0);
    MUST(cuMemAlloc(&block, 4096));
    MUST(cuMemAlloc(&other, 8192));
    notice();
    say("cuMemAlloc returned %d", (int)cuMemAlloc(&other, 1));
    say("cuMemFree returned %d", (int)cuMemFree(block));
    say("cuMemcpyDtoH returned %d", (int)cuMemcpyDtoH(&block, block, 8));
    say("report FATAL ERRORS  1 context unusable from then on$");
    say("report  CUDA_ERROR_ILLEGAL_ADDRESS .700. from cuCtxSynchronize, device 0$");
    say("json [e['code'] for e in events('fatal')] == [700]");
    say("no report INVALID FREES");
    return 0;
}
