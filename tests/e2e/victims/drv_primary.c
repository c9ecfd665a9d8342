/* SPDX-License-Identifier: MIT */
/* The primary context, retained twice: its blocks live on with the first release and go with the
 * last one; a new primary context starts from nothing. */
#include "victim.h"

static NOINLINE CUdeviceptr before_the_end(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 20000));
    return block;
}

static NOINLINE void in_the_next_one(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 30000));
}

int main(void)
{
    CUcontext context;
    CUdeviceptr freed;

    use_device(0);
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    before_the_end();
    freed = before_the_end();
    MUST(cuDevicePrimaryCtxRelease(0));
    MUST(cuMemFree(freed)); /* still there */
    MUST(cuDevicePrimaryCtxRelease(0));
    use_device(0);
    in_the_next_one();
    say("expect leaked_bytes=50000 leaked_blocks=2 leak_sites=2 allocs=3 frees=1 failed=0");
    say("json [s.get('class') for s in sites('before_the_end')].count('context-destroyed') == 1");
    say("json site('in_the_next_one')['class'] == 'lost'");
    say("no report INVALID FREES");
    return 0;
}
