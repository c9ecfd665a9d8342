/* SPDX-License-Identifier: MIT */
/* Frees a stream-ordered block with cuMemFree, and cuMemAlloc's block in stream order. */
#include "victim.h"

static NOINLINE void free_async_block_at_once(void)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, 1000, NULL));
    MUST(cuStreamSynchronize(NULL));
    MUST(cuMemFree(block));
}

static NOINLINE void free_plain_block_in_stream(CUstream stream)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 2000));
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuStreamSynchronize(stream));
}

int main(void)
{
    CUstream stream;

    use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    free_async_block_at_once();
    free_plain_block_in_stream(stream);
    say("cuMemFree of 0 returned %d",
        (int)cuMemFree(0)); /* frees nothing; the driver's own answer */
    say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=2 frees=2 failed=0");
    say("json live('free_async_block_at_once') == (0, 0)");
    say("json live('free_plain_block_in_stream') == (0, 0)");
    say("no report INVALID FREES");
    return 0;
}
