/* SPDX-License-Identifier: MIT */
/* Frees what was freed, what never was, the inside of a block, and by the wrong function. */
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

static NOINLINE void free_as_host(CUdeviceptr block)
{
    say("a host free of device memory returned %d", (int)cuMemFreeHost((void *)(uintptr_t)block));
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
    free_as_host(second);
    MUST(cuMemFree(second));
    say("expect leaked_bytes=0 leaked_blocks=0 allocs=2 frees=2 failed=0");
    say("report INVALID FREES  5 calls$");
    say("report  double free: cuMemFree, device 0: 0x");
    say("report  free of a pointer that was never allocated: cuMemFree, device 0: 0x123456 "
        "refused, "
        "CUDA_ERROR_INVALID_VALUE .1.$");
    say("report  free of a pointer inside a block: cuMemFree, ");
    say("report  free by the wrong function: cuMemFreeHost, ");
    say("report    first freed at$");
    say("report    allocated by cuMemAlloc at$");
    say("report  free_twice  ");
    say("report  free_nonsense  ");
    say("report  free_the_middle  ");
    say("json [e['misuse'] for e in events('invalid-free')] == ['double-free', 'foreign', "
        "'foreign', 'inside', 'wrong-function']");
    say("json [e['allocated']['api'] for e in events('invalid-free') if 'allocated' in e] == "
        "['cuMemAlloc'] * 3");
    return 0;
}
