/* SPDX-License-Identifier: MIT */
/* Takes one block of every kind that has memory of its own, each from a function of its own, and
 * keeps them all, or frees them all. */
#include "victim.h"

#include <string.h>

static int keeps;

static void took(const char *function, const char *kind, unsigned long long bytes)
{
    if (keeps) {
        say("json kind('%s') == (1, %llu)", kind, bytes);
        say("json live('%s') == (1, %llu) and site('%s')['kind'] == '%s'", function, bytes,
            function, kind);
        say("report  %s  +", function);
    } else {
        say("json kind('%s') == (0, 0) and r['kinds']['%s']['allocs'] == 1", kind, kind);
    }
}

static const CUDA_ARRAY_DESCRIPTOR flat = {
    .Width = 64, .Height = 10, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
static const CUDA_ARRAY3D_DESCRIPTOR square = {
    .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static char pages[8192] __attribute__((aligned(4096)));
static size_t pitch, unit;

/* What each takes, in a variable `block` of its type. */
#define KINDS(ROW)                                                                                 \
    ROW(device, CUdeviceptr, 4097, cuMemAlloc(&block, 4097), cuMemFree(block))                     \
    ROW(pitched, CUdeviceptr, pitch * 30, cuMemAllocPitch(&block, &pitch, 1000, 30, 4),            \
        cuMemFree(block))                                                                          \
    ROW(managed, CUdeviceptr, 70000, cuMemAllocManaged(&block, 70000, CU_MEM_ATTACH_GLOBAL),       \
        cuMemFree(block))                                                                          \
    ROW(pinned, void *, 6000, cuMemHostAlloc(&block, 6000, CU_MEMHOSTALLOC_PORTABLE),              \
        cuMemFreeHost(block))                                                                      \
    ROW(registered, char *, sizeof(pages), cuMemHostRegister(block = pages, sizeof(pages), 0),     \
        cuMemHostUnregister(block))                                                                \
    ROW(array, CUarray, 64 * 10 * 16, cuArrayCreate(&block, &flat), cuArrayDestroy(block))         \
    ROW(mipmap, CUmipmappedArray, 64 * 64 + 32 * 32 + 16 * 16,                                     \
        cuMipmappedArrayCreate(&block, &square, 3), cuMipmappedArrayDestroy(block))                \
    ROW(async, CUdeviceptr, 9001, cuMemAllocAsync(&block, 9001, NULL),                             \
        cuMemFreeAsync(block, NULL))                                                               \
    ROW(vmm, CUmemGenericAllocationHandle, unit, cuMemCreate(&block, unit, &on_device, 0),         \
        cuMemRelease(block))

#define TAKE(kind, type, bytes, take, give)                                                        \
    static NOINLINE void take_##kind(void)                                                         \
    {                                                                                              \
        type block;                                                                                \
        MUST(take);                                                                                \
        took(__func__, #kind, bytes);                                                              \
        if (!keeps)                                                                                \
            MUST(give);                                                                            \
    }
KINDS(TAKE)

#define CALL(kind, ...) take_##kind();

int main(int argc, char **argv)
{
    keeps = argc > 1 && strcmp(argv[1], "keep") == 0;
    use_device(0);
    MUST(cuMemGetAllocationGranularity(&unit, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    KINDS(CALL)
    MUST(cuCtxSynchronize());
    if (keeps)
        say("expect leaked_blocks=9 leak_sites=9 allocs=9 frees=0 failed=0");
    else
        say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=9 frees=9 failed=0");
    return 0;
}
