/* SPDX-License-Identifier: MIT */
/* Allocates before main and frees after it: constructors, atexit handlers, destructors. */
#include "victim.h"

static CUdeviceptr by_constructor, by_handler, by_destructor;

static void __attribute__((constructor)) early(void)
{
    use_device(0);
    MUST(cuMemAlloc(&by_constructor, 1000));
    MUST(cuMemAlloc(&by_handler, 2000));
    MUST(cuMemAlloc(&by_destructor, 3000));
}

static void handler(void)
{
    MUST(cuMemFree(by_handler));
}

static NOINLINE void leak_late(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 4000));
}

static void __attribute__((destructor)) late(void)
{
    MUST(cuMemFree(by_destructor));
    leak_late();
}

int main(void)
{
    atexit(handler);
    MUST(cuMemFree(by_constructor));
    say("expect leaked_bytes=4000 leaked_blocks=1 leak_sites=1 allocs=4 frees=3 failed=0");
    say("report  leak_late  ");
    return 8;
}
