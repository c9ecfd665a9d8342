/* SPDX-License-Identifier: MIT */
/* Failing calls: every code and the error state afterwards must be those of a run without the
 * library. "sticky" goes on after a kernel has broken the context. */
#include "gpu.h"

#include <string.h>

static void state(const char *what, int code)
{
    int peeked = cudaPeekAtLastError(), last = cudaGetLastError(), then = cudaGetLastError();

    say("%s: %d; peek %d, last %d, then %d", what, code, peeked, last, then);
}

SITE void ask_too_much(void)
{
    void *block = (void *)0x77;

    state("too much", cudaMalloc(&block, (size_t)1 << 50));
    say("the pointer is %p", block);
    say("json site('ask_too_much')['failed'] == 1 and len(events('oom')) == 1");
}

SITE void free_nonsense(void)
{
    int on_stack;

    state("free of a wild pointer", cudaFree((void *)0x12340));
    state("free of a stack variable", cudaFree(&on_stack));
}

SITE void free_twice(void)
{
    void *block;

    MUST(cudaMalloc(&block, 1000));
    MUST(cudaFree(block));
    state("second free", cudaFree(block));
    say("json live('free_twice') == (0, 0)");
}

static int soft(void)
{
    size_t unused, total;

    ask_too_much();
    free_nonsense();
    free_twice();
    state("nothing of nothing", cudaMalloc(NULL, 100));
    MUST(cudaMemGetInfo(&unused, &total));
    MUST(cudaDeviceSynchronize());
    say("expect leaked_bytes=0 leaked_blocks=0 frees=1");
    say("report INVALID FREES");
    say("json len(events('invalid-free')) >= 1 and not events('fatal')");
    return 0;
}

static __global__ void write_nowhere(volatile unsigned *nowhere)
{
    *nowhere = 1;
}

SITE int sticky(void)
{
    void *held, *block = NULL;

    MUST(cudaMalloc(&held, 1 << 20));
    write_nowhere<<<1, 1>>>((unsigned *)(uintptr_t)0xdead0000);
    state("launch", cudaGetLastError());
    state("synchronise", cudaDeviceSynchronize());
    state("cudaMalloc", cudaMalloc(&block, 1 << 20));
    state("cudaMallocHost", cudaMallocHost(&block, 1 << 20));
    state("cudaMallocAsync", cudaMallocAsync(&block, 1 << 20, 0));
    state("cudaFree", cudaFree(held));
    say("json len(events('fatal')) >= 1");
    say("expect allocs=1 frees=1 leaked_blocks=0"); /* the block is gone with its context */
    return 17;
}

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "sticky") == 0 ? sticky() : soft();
}
