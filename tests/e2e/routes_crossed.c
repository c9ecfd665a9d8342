/* SPDX-License-Identifier: MIT */
/* Blocks change hands between a program and a plugin that is loaded with RTLD_DEEPBIND, whose calls
 * are not seen: what one takes the other frees. routes_crossed PLUGIN, which has take() and give().
 */
#include "victim.h"

#include <dlfcn.h>

enum { BYTES = 1000000, LESS = 999940, ROUNDS = 10 }; /* in blocks of 512 bytes they are the same */

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    CUresult (*take)(CUdeviceptr *, size_t);
    CUresult (*give)(CUdeviceptr);
    CUdeviceptr block;

    if (plugin == NULL)
        return 99;
    take = (CUresult(*)(CUdeviceptr *, size_t))dlsym(plugin, "take");
    give = (CUresult(*)(CUdeviceptr))dlsym(plugin, "give");
    use_device(0);
    for (int i = 0; i < ROUNDS; i++) {
        MUST(take(&block, BYTES));
        MUST(cuMemFree(block));
        say("again %d", (int)cuMemFree(block));
    }
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemAlloc(&block, BYTES));
        MUST(give(block));
        say("again %d", (int)give(block));
    }
    for (int i = 0; i < ROUNDS; i++) { /* the address of the last of them is in use again */
        MUST(cuMemAlloc(&block, BYTES));
        MUST(cuMemsetD8(block, 1, BYTES));
        MUST(cuMemFree(block));
    }
    for (int i = 0; i < ROUNDS; i++) { /* a smaller one at the address of what the plugin freed */
        MUST(cuMemAlloc(&block, BYTES));
        MUST(give(block));
        MUST(take(&block, LESS));
        MUST(cuMemFree(block));
        MUST(cuMemAlloc(&block, BYTES));
        MUST(cuMemsetD8(block, 1, BYTES));
        MUST(cuMemFree(block));
    }
    return 0;
}
