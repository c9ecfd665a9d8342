/* SPDX-License-Identifier: MIT */
/* Takes one block with every allocating function of the runtime, each from a function of its own,
 * and keeps them all, or frees them all. */
#include "victim_rt.h"

#include <string.h>

static int keeps, is_static;

/* A static runtime is not seen: there the driver's function is the API. */
static void took(const char *function, const char *api, const char *kind, unsigned long long bytes)
{
    if (keeps)
        say("json live('%s') == (1, %llu)", function, bytes);
    else
        say("json live('%s') == (0, 0)", function);
    say("json site('%s')['kind'] == '%s'", function, kind);
    if (is_static)
        say("json site('%s')['api'][:3] in ('cuM', 'cuA')", function);
    else
        say("json site('%s')['api'] == '%s'", function, api);
}

static NOINLINE void take_plain(void)
{
    void *block;

    MUST(cudaMalloc(&block, 4097));
    took(__func__, "cudaMalloc", "device", 4097);
    if (!keeps)
        MUST(cudaFree(block));
}

static NOINLINE void take_pitched(void)
{
    void *block;
    size_t pitch;

    MUST(cudaMallocPitch(&block, &pitch, 1000, 30));
    took(__func__, "cudaMallocPitch", "pitched", pitch * 30);
    if (!keeps)
        MUST(cudaFree(block));
}

static NOINLINE void take_managed(void)
{
    void *block;

    MUST(cudaMallocManaged(&block, 70000, cudaMemAttachGlobal));
    took(__func__, "cudaMallocManaged", "managed", 70000);
    if (!keeps)
        MUST(cudaFree(block));
}

static NOINLINE void take_pinned(void)
{
    void *block;

    MUST(cudaMallocHost(&block, 6000));
    took(__func__, "cudaMallocHost", "pinned", 6000);
    if (!keeps)
        MUST(cudaFreeHost(block));
}

static NOINLINE void take_portable(void)
{
    void *block;

    MUST(cudaHostAlloc(&block, 7000, cudaHostAllocPortable));
    took(__func__, "cudaHostAlloc", "pinned", 7000);
    if (!keeps)
        MUST(cudaFreeHost(block));
}

static NOINLINE void take_registered(void)
{
    static char block[8192] __attribute__((aligned(4096)));

    MUST(cudaHostRegister(block, sizeof(block), cudaHostRegisterDefault));
    took(__func__, "cudaHostRegister", "registered", sizeof(block));
    if (!keeps)
        MUST(cudaHostUnregister(block));
}

static NOINLINE void take_async(void)
{
    void *block;

    MUST(cudaMallocAsync(&block, 9001, NULL));
    took(__func__, "cudaMallocAsync", "async", 9001);
    if (!keeps)
        MUST(cudaFreeAsync(block, NULL));
}

static const struct cudaChannelFormatDesc texel = {
    .x = 32, .y = 32, .f = cudaChannelFormatKindFloat}; /* 8 bytes */

static NOINLINE void take_3d(void)
{
    struct cudaExtent extent = {.width = 100, .height = 20, .depth = 3};
    struct cudaPitchedPtr block;

    MUST(cudaMalloc3D(&block, extent));
    took(__func__, "cudaMalloc3D", "pitched", block.pitch * 20 * 3);
    if (!keeps)
        MUST(cudaFree(block.ptr));
}

static NOINLINE void take_array(void)
{
    cudaArray_t array;

    MUST(cudaMallocArray(&array, &texel, 64, 10, cudaArrayDefault));
    took(__func__, "cudaMallocArray", "array", 64 * 10 * 8);
    if (!keeps)
        MUST(cudaFreeArray(array));
}

static NOINLINE void take_3d_array(void)
{
    struct cudaExtent extent = {.width = 16, .height = 8, .depth = 4};
    cudaArray_t array;

    MUST(cudaMalloc3DArray(&array, &texel, extent, cudaArrayDefault));
    took(__func__, "cudaMalloc3DArray", "array", 16 * 8 * 4 * 8);
    if (!keeps)
        MUST(cudaFreeArray(array));
}

static NOINLINE void take_mipmap(void)
{
    struct cudaExtent extent = {.width = 32, .height = 32};
    cudaMipmappedArray_t array;

    MUST(cudaMallocMipmappedArray(&array, &texel, extent, 2, 0));
    took(__func__, "cudaMallocMipmappedArray", "mipmap", (32 * 32 + 16 * 16) * 8);
    if (!keeps)
        MUST(cudaFreeMipmappedArray(array));
}

static NOINLINE void take_from_pool(void)
{
    cudaMemPool_t pool;
    void *block;

    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cudaMallocFromPoolAsync(&block, 9002, pool, NULL));
    took(__func__, "cudaMallocFromPoolAsync", "async", 9002);
    if (!keeps)
        MUST(cudaFreeAsync(block, NULL));
}

int main(int argc, char **argv)
{
    is_static = strstr(argv[0], "rts_") != NULL;
    keeps = argc > 1 && strcmp(argv[1], "keep") == 0;
    take_plain();
    take_pitched();
    take_managed();
    take_pinned();
    take_portable();
    take_registered();
    take_async();
    take_3d();
    take_array();
    take_3d_array();
    take_mipmap();
    take_from_pool();
    MUST(cudaDeviceSynchronize());
    if (keeps)
        say("expect leaked_blocks=12 leak_sites=12 allocs=12 frees=0 failed=0");
    else
        say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=12 frees=12 failed=0");
    return 0;
}
