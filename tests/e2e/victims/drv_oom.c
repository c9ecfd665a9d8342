/* SPDX-License-Identifier: MIT */
/* Asks for more than the device has, by several calls, and goes on with what it has. */
#include "victim.h"

static NOINLINE void ask_for_too_much(void)
{
    CUdeviceptr block;
    void *pinned;

    say("cuMemAlloc returned %d", (int)cuMemAlloc(&block, (size_t)1 << 40));
    say("cuMemAllocAsync returned %d", (int)cuMemAllocAsync(&block, (size_t)1 << 40, NULL));
    MUST(cuMemAlloc(&block, 4096));
    say("cuMemAlloc of nothing returned %d", (int)cuMemAlloc(&block, 0));
    say("cuMemHostAlloc to nowhere returned %d", (int)cuMemHostAlloc(NULL, 4096, 0));
    MUST(cuMemHostAlloc(&pinned, 4096, 0));
    MUST(cuMemFreeHost(pinned));
}

int main(void)
{
    use_device(0);
    ask_for_too_much();
    say("expect leaked_bytes=4096 leaked_blocks=1 allocs=2 frees=1 failed=4");
    say("report OUT OF MEMORY  2 calls$");
    say("report  cuMemAlloc, device 0: 1\\.0 TiB refused");
    say("report  ask_for_too_much  ");
    say("json [e['bytes'] for e in events('oom')] == [1 << 40, 1 << 40]");
    say("json sum(s['oom'] for s in r['sites']) == 2");
    return 0;
}
