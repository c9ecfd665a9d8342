/* SPDX-License-Identifier: MIT */
/* Frees what was freed, what never was, and the inside of a block. */
#include "victim.h"

static NOINLINE void free_twice(CUdeviceptr block)
{
    MUST(cuMemFree(block));
    say("the second free returned %d", (int)cuMemFree(block));
}

static NOINLINE void free_nonsense(void)
{
    int local;

    say("a wild free returned %d", (int)cuMemFree((CUdeviceptr)0x123456));
    say("a host free of the stack returned %d", (int)cuMemFreeHost(&local));
}

static NOINLINE void free_the_middle(CUdeviceptr block)
{
    say("a free of the middle returned %d", (int)cuMemFree(block + 512));
}

int main(void)
{
    CUdeviceptr first, second;

    use_device(0);
    MUST(cuMemAlloc(&first, 4096));
    MUST(cuMemAlloc(&second, 8192));
    free_twice(first);
    free_nonsense();
    free_the_middle(second);
    MUST(cuMemFree(second));
    say("expect leaked_bytes=0 leaked_blocks=0 allocs=2 frees=2 failed=0");
    say("report INVALID FREES  4 calls$");
    say("report  cuMemFree, device 0: 0x123456 refused \\(error 1\\)$");
    say("report  free_twice  ");
    say("report  free_nonsense  ");
    say("report  free_the_middle  ");
    say("json len(events('invalid-free')) == 4");
    return 0;
}
