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
    /* The survivor is context 1 of device 0, all others there were context 2, one after the other.
     */
    say("json {s['context'] for s in sites('in_the_survivor')} == {1}");
    say("json {s.get('context') for s in sites('leak_in_round')} == {2%s}",
        devices > 1 ? ", None" : "");
    say("json [(c['context'], c['made'], c['live']['bytes'], c['reclaimed']['bytes'])"
        " for c in r['devices'][0]['contexts']] == [(1, 1, 777, 0), (2, %d, 0, %d)]",
        devices > 1 ? 10 : 20, (devices > 1 ? 10 : 20) * 4096);
    say("report device 0, context 1: 777 B live in 1 block, 2 allocs, 1 free$");
    say("report cuMemAlloc(_v2)?, device 0, context 2");
    say("no report INVALID FREES");
    return 0;
}
