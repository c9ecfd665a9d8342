/* SPDX-License-Identifier: MIT */
/* Leaks, and ends when it may not write a file of more than 100 bytes any more. */
#include "victim.h"

#include <sys/resource.h>

int main(void)
{
    struct rlimit little = {100, 100};
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemAlloc(&block, 1234));
    say("leaked 1234 bytes");
    return setrlimit(RLIMIT_FSIZE, &little) == 0 ? 6 : 97;
}
