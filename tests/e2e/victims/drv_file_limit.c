/* SPDX-License-Identifier: MIT */
/* Leaks, and ends when it may not write a file of more than 100 bytes any more; or of as many as
 * the first argument says, and gets out of memory then; before that, as many pairs of an allocation
 * and a free as the second says. */
#include "victim.h"

#include <sys/resource.h>

int main(int argc, char **argv)
{
    rlim_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    struct rlimit little = {most, most};
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemAlloc(&block, 1234));
    say("leaked 1234 bytes");
    if (setrlimit(RLIMIT_FSIZE, &little) != 0)
        return 97;
    for (unsigned long pairs = argc > 2 ? strtoul(argv[2], NULL, 10) : 0; pairs > 0; pairs--) {
        MUST(cuMemAlloc(&block, 4096));
        MUST(cuMemFree(block));
    }
    if (argc > 1)
        MUST_FAIL(cuMemAlloc(&block, (size_t)1 << 45), CUDA_ERROR_OUT_OF_MEMORY);
    return 6;
}
