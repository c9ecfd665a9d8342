/* SPDX-License-Identifier: MIT */
/* Has the simulated driver write down what was called until the program's last destructor; what is
 * called later is in its own report at the end. */
#include "victim.h"

void cusim_write_report(const char *path);

static void __attribute__((destructor(101))) last(void)
{
    cusim_write_report("before.sim");
}

int main(void)
{
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemAlloc(&block, 100));
    MUST(cuCtxSynchronize());
    return 0;
}
