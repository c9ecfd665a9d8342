/* SPDX-License-Identifier: MIT */
/* cudaDeviceReset with live blocks; a free after it is refused, and named. */
#include "victim_rt.h"

static NOINLINE void *lost_in_reset(size_t bytes)
{
    void *block;

    MUST(cudaMalloc(&block, bytes));
    return block;
}

static NOINLINE void free_after_reset(void *block)
{
    MUST_FAIL(cudaFree(block), cudaErrorInvalidValue);
    if (cudaGetLastError() != cudaErrorInvalidValue || cudaGetLastError() != cudaSuccess)
        exit(98);
}

static NOINLINE void leak_after_reset(void)
{
    lost_in_reset(3000);
}

int main(void)
{
    void *block = lost_in_reset(4000);

    MUST(cudaDeviceReset());
    leak_after_reset();
    free_after_reset((char *)block + (1 << 20));
    say("expect leaked_bytes=7000 leaked_blocks=2 allocs=2 frees=0 failed=0");
    say("report INVALID FREES  1 call$");
    say("report  (cudaFree|cuMemFree), device 0: 0x[0-9a-f]+ refused, CUDA_ERROR_INVALID_VALUE "
        ".1.$");
    say("report  free_after_reset  ");
    say("json [s['class'] for s in sites('lost_in_reset') if s['reclaimed']['count']]"
        " == ['context-destroyed']");
    say("json site('leak_after_reset')['class'] == 'lost' and len(events('invalid-free')) == 1");
    return 0;
}
