/* SPDX-License-Identifier: MIT */
/* A block of a primary context that was reset is freed: the driver refuses, and so it is told. */
#include "victim.h"

static NOINLINE void free_what_is_gone(CUdeviceptr block)
{
    say("cuMemFree returned %d", (int)cuMemFree(block));
}

int main(void)
{
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemAlloc(&block, 4000));
    MUST(cuDevicePrimaryCtxReset(0));
    use_device(0);
    free_what_is_gone(block);
    say("expect leaked_bytes=4000 leaked_blocks=1 leak_sites=1 allocs=1 frees=0 failed=0");
    say("report INVALID FREES  1 call$");
    say("report  free_what_is_gone  ");
    say("json len(events('invalid-free')) == 1 and r['sites'][0]['live']['count'] == 0");
    return 0;
}
