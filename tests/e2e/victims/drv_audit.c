/* SPDX-License-Identifier: MIT */
/* Takes and frees memory of every kind that CUPTI tells of; the word says how it ends:
 * drv_audit return|quick|now|fork. */
#include "victim.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the simulated driver, which alone takes such an image. */
unsigned long long cusim_calls(const char *symbol) __attribute__((weak));

static void work(CUcontext context)
{
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 64, .Height = 10, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUdeviceptr block, managed, async;
    CUmemoryPool pool;
    CUcontext other;
    CUmodule module;
    CUarray array;
    void *pinned;
    size_t pitch;

    MUST(cuMemAlloc(&block, 1u << 20)); /* the first record of all */
    for (int i = 0; i < 20; i++) {
        MUST(cuMemFree(block));
        MUST(cuMemAlloc(&block, 1u << 20)); /* of the pool: the driver sees one */
    }
    MUST(cuMemFree(block));
    MUST(cuMemAllocPitch(&block, &pitch, 1000, 30, 4));
    MUST(cuMemAllocManaged(&managed, 70000, CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemFree(managed));
    MUST(cuMemHostAlloc(&pinned, 6000, 0));
    MUST(cuMemFreeHost(pinned));
    MUST(cuArrayCreate(&array, &shape));
    MUST(cuArrayDestroy(array));
    MUST(cuMemAllocAsync(&async, 9001, NULL));
    MUST(cuMemFreeAsync(async, NULL));
    MUST(cuCtxSynchronize());
    MUST(cuMemPoolCreate(&pool, &props));
    MUST(cuMemPoolDestroy(pool));
    if (cusim_calls)
        MUST(cuModuleLoadData(&module,
                              "cusim-module\nglobal lookup_table 8192\nglobal state 100\n"));
    /* What goes with a context is freed by nobody. */
    other = create_context(0);
    MUST(cuMemAlloc(&block, 5000));
    MUST(cuMemAlloc(&block, 3u << 20));
    MUST(cuMemFree(block));
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(context));
}

int main(int argc, char **argv)
{
    const char *end = argc > 1 ? argv[1] : "return";

    work(use_device(0));
    if (strcmp(end, "quick") == 0)
        quick_exit(3);
    if (strcmp(end, "now") == 0)
        _exit(4);
    if (strcmp(end, "fork") == 0) {
        int status;
        pid_t child = fork();

        if (child == 0)
            return 5;
        if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5)
            return 98;
    }
    return 0;
}
