/* SPDX-License-Identifier: MIT */
/* Forks while freed blocks may be cached and work is on its way. The child has no driver, and what
 * it does must not reach the parent's memory; the parent goes on as if nothing had been. */
#include "victim.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 4096

static CUstream stream;

static NOINLINE CUdeviceptr take_filled(unsigned value)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuMemsetD32Async(block, value, BYTES / 4, stream));
    return block;
}

static void must_hold(CUdeviceptr block, unsigned value)
{
    unsigned words[BYTES / 4];

    MUST(cuMemcpyDtoHAsync(words, block, BYTES, stream));
    MUST(cuStreamSynchronize(stream));
    for (int i = 0; i < BYTES / 4; i++)
        if (words[i] != value) {
            say("word %d is %#x, expected %#x", i, words[i], value);
            exit(1);
        }
}

static int be_child(CUdeviceptr kept, CUdeviceptr freed)
{
    CUdeviceptr block = 0;
    void *pinned = NULL;

    say("child: %d %d %d %d %d", (int)cuMemAlloc(&block, BYTES), (int)cuMemFree(kept),
        (int)cuMemFree(freed), (int)cuMemAllocHost(&pinned, BYTES), (int)cuCtxSynchronize());
    return 7;
}

int main(void)
{
    CUdeviceptr kept, freed;
    int status;
    pid_t child;

    use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 1; round <= 20; round++) {
        freed = take_filled(round);
        kept = take_filled(round + 100);
        MUST(cuMemFree(freed));
        child = fork();
        if (child == 0)
            exit(be_child(kept, freed));
        freed = take_filled(round + 200);
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
            say("the child ended with status %d", status);
        must_hold(kept, round + 100);
        must_hold(freed, round + 200);
        MUST(cuMemFree(freed));
        MUST(cuMemFree(kept));
        MUST_FAIL(cuMemFree(kept), CUDA_ERROR_INVALID_VALUE);
    }
    say("expect allocs=60 frees=60 leaked_blocks=0 leaked_bytes=0");
    return 0;
}
