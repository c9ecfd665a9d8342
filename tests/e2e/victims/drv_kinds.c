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

static NOINLINE void take_device(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 4097));
    took(__func__, "device", 4097);
    if (!keeps)
        MUST(cuMemFree(block));
}

static NOINLINE void take_pitched(void)
{
    CUdeviceptr block;
    size_t pitch;

    MUST(cuMemAllocPitch(&block, &pitch, 1000, 30, 4));
    took(__func__, "pitched", pitch * 30);
    if (!keeps)
        MUST(cuMemFree(block));
}

static NOINLINE void take_managed(void)
{
    CUdeviceptr block;

    MUST(cuMemAllocManaged(&block, 70000, CU_MEM_ATTACH_GLOBAL));
    took(__func__, "managed", 70000);
    if (!keeps)
        MUST(cuMemFree(block));
}

static NOINLINE void take_pinned(void)
{
    void *block;

    MUST(cuMemHostAlloc(&block, 6000, CU_MEMHOSTALLOC_PORTABLE));
    took(__func__, "pinned", 6000);
    if (!keeps)
        MUST(cuMemFreeHost(block));
}

static NOINLINE void take_registered(void)
{
    static char block[8192] __attribute__((aligned(4096)));

    MUST(cuMemHostRegister(block, sizeof(block), 0));
    took(__func__, "registered", sizeof(block));
    if (!keeps)
        MUST(cuMemHostUnregister(block));
}

static NOINLINE void take_array(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 64, .Height = 10, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUarray array;

    MUST(cuArrayCreate(&array, &shape));
    took(__func__, "array", 64 * 10 * 16);
    if (!keeps)
        MUST(cuArrayDestroy(array));
}

static NOINLINE void take_mipmap(void)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUmipmappedArray array;

    MUST(cuMipmappedArrayCreate(&array, &shape, 3));
    took(__func__, "mipmap", 64 * 64 + 32 * 32 + 16 * 16);
    if (!keeps)
        MUST(cuMipmappedArrayDestroy(array));
}

static NOINLINE void take_async(void)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, 9001, NULL));
    took(__func__, "async", 9001);
    if (!keeps)
        MUST(cuMemFreeAsync(block, NULL));
}

static NOINLINE void take_virtual(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    size_t granularity;

    MUST(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemCreate(&handle, granularity, &prop, 0));
    took(__func__, "vmm", granularity);
    if (!keeps)
        MUST(cuMemRelease(handle));
}

int main(int argc, char **argv)
{
    keeps = argc > 1 && strcmp(argv[1], "keep") == 0;
    use_device(0);
    take_device();
    take_pitched();
    take_managed();
    take_pinned();
    take_registered();
    take_array();
    take_mipmap();
    take_async();
    take_virtual();
    MUST(cuCtxSynchronize());
    if (keeps)
        say("expect leaked_blocks=9 leak_sites=9 allocs=9 frees=0 failed=0");
    else
        say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=9 frees=9 failed=0");
    return 0;
}
