/* SPDX-License-Identifier: MIT */
/* Leaks from the bottom of a recursion that is deeper than the stacks that are kept. */
#include "victim.h"

static NOINLINE int leak_at_the_bottom(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 2048));
    return 1;
}

static NOINLINE int descend(int levels) /* NOLINT(misc-no-recursion) */
{
    return levels == 0 ? leak_at_the_bottom() : descend(levels - 1) + 1;
}

int main(void)
{
    use_device(0);
    say("depth %d", descend(50));
    say("expect leaked_bytes=2048 leaked_blocks=1 leak_sites=1");
    return 0;
}
