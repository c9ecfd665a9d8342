/* SPDX-License-Identifier: MIT */
/* Blocks that end with their context are freed after it: the driver refuses, and so it is told. Who
 * had the address before, and freed it in time, has nothing to do with it. */
#include "victim.h"

static NOINLINE CUdeviceptr allocate_before(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 4000));
    return block;
}

static NOINLINE CUdeviceptr allocate(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 4000));
    return block;
}

static NOINLINE void free_in_time(CUdeviceptr block)
{
    MUST(cuMemFree(block));
}

static NOINLINE void free_what_is_gone(CUdeviceptr block)
{
    say("cuMemFree returned %d", (int)cuMemFree(block));
}

static NOINLINE void free_twice(CUdeviceptr block)
{
    say("cuMemFree of what was freed before returned %d", (int)cuMemFree(block));
}

int main(void)
{
    CUdeviceptr block, other;

    use_device(0);
    other = allocate();
    block = allocate_before();
    free_in_time(block);
    block = allocate(); /* as a rule at the same address */
    free_in_time(other);
    MUST(cuDevicePrimaryCtxReset(0));
    use_device(0);
    free_what_is_gone(block);
    free_twice(other);
    say("expect leaked_bytes=4000 leaked_blocks=1 leak_sites=1 allocs=3 frees=2 failed=0");
    say("report INVALID FREES  2 calls$");
    say("report  free of a block after its context had ended: cuMemFree, device 0: 0x");
    say("report  double free: cuMemFree, device 0: 0x");
    say("report  free_what_is_gone  ");
    say("report    allocated by cuMemAlloc at$");
    say("report  allocate  ");
    say("json [e['misuse'] for e in events('invalid-free')] == ['context-ended', 'double-free']");
    say("json 'first_freed' not in events('invalid-free')[0]");
    say("json 'allocate' in stacks[events('invalid-free')[0]['allocated']['stack']]");
    say("json 'free_in_time' in stacks[events('invalid-free')[1]['first_freed']['stack']]");
    say("json not any(s['live']['count'] for s in r['sites'])");
    return 0;
}
