/* SPDX-License-Identifier: MIT */
/* Frees all that it took and ends with a status of its own. */
#include "victim.h"

int main(void)
{
    CUdeviceptr blocks[10];
    void *pinned;

    use_device(0);
    for (int i = 0; i < 10; i++)
        MUST(cuMemAlloc(&blocks[i], 1000 * (size_t)(i + 1)));
    MUST(cuMemAllocHost(&pinned, 5000));
    for (int i = 9; i >= 0; i--)
        MUST(cuMemFree(blocks[i]));
    MUST(cuMemFreeHost(pinned));
    say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 peak_bytes=60000 allocs=11 frees=11"
        " failed=0");
    say("report LEAKS  none$");
    return 3;
}
