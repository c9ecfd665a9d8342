/* SPDX-License-Identifier: MIT */
/* Contexts come and go, and the driver gives their handles and addresses out again: what was in a
 * dead one is never taken for what is in its successor. */
#include "victim.h"

static NOINLINE void leak_in_round(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 4096));
}

static NOINLINE CUdeviceptr in_the_survivor(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 777));
    return block;
}

int main(void)
{
    CUcontext survivor, passing;
    CUdeviceptr block;
    int devices;

    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&devices));
    survivor = create_context(0);
    block = in_the_survivor();
    for (int round = 0; round < 20; round++) {
        CUdeviceptr freed;

        passing = create_context(devices > 1 ? round % 2 : 0);
        leak_in_round();
        MUST(cuMemAlloc(&freed, 512));
        MUST(cuMemFree(freed));
        MUST(cuCtxDestroy(passing));
    }
    MUST(cuCtxSetCurrent(survivor));
    MUST(cuMemFree(block));
    in_the_survivor();
    say("expect leaked_bytes=%d leaked_blocks=21 allocs=42 frees=21 failed=0", 20 * 4096 + 777);
    say("json sum(s['reclaimed']['count'] for s in sites('leak_in_round')) == 20");
    say("json {s['device'] for s in sites('leak_in_round')} == {0, %d}", devices > 1);
    say("no report INVALID FREES");
    return 0;
}
