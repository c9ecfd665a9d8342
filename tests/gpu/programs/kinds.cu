/* SPDX-License-Identifier: MIT */
/* One block from every allocating function of the runtime, each from a function of its own, used by
 * a kernel or a copy; "keep" keeps them all, else all are freed. */
#include "contents.h"

#include <string.h>

static int keeps;
static unsigned blocks;
static unsigned *wrong;

/* kind: or several, between spaces. */
static void took(const char *site, const char *runtime_name, const char *driver_begin,
                 const char *kind, size_t bytes)
{
    blocks++;
    if (keeps)
        say("json live('%s') == (1, %zu)", site, bytes);
    else
        say("json live('%s') == (0, 0)", site);
    say("json site('%s')['kind'] in '%s'.split()", site, kind);
    if (keeps)
        say_api(site, runtime_name, driver_begin);
}

static void use(void *block, size_t bytes)
{
    fill(block, bytes, blocks, 0);
    check(block, bytes, blocks, wrong, 0);
    MUST(cudaDeviceSynchronize());
}

SITE void take_plain(void)
{
    void *block;

    MUST(cudaMalloc(&block, 4097));
    took(__func__, "cudaMalloc", "cuMemAlloc", "device", 4097);
    use(block, 4096);
    if (!keeps)
        MUST(cudaFree(block));
}

SITE void take_pitched(void)
{
    static unsigned rows[30][250], back[30][250];
    void *block;
    size_t pitch;

    MUST(cudaMallocPitch(&block, &pitch, 1000, 30));
    took(__func__, "cudaMallocPitch", "cuMemAllocPitch", "pitched", pitch * 30);
    for (unsigned i = 0; i < 30 * 250; i++)
        rows[i / 250][i % 250] = expected_at(i, 3);
    MUST(cudaMemcpy2D(block, pitch, rows, 1000, 1000, 30, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy2D(back, 1000, block, pitch, 1000, 30, cudaMemcpyDeviceToHost));
    say("pitched rows are %s", memcmp(rows, back, sizeof(rows)) ? "wrong" : "right");
    if (!keeps)
        MUST(cudaFree(block));
}

SITE void take_cuboid(void)
{
    cudaPitchedPtr block;

    MUST(cudaMalloc3D(&block, make_cudaExtent(500, 20, 10)));
    /* No document says by which of the driver's functions the runtime takes it. */
    took(__func__, "cudaMalloc3D", "cuMemAlloc", "pitched device", block.pitch * 20 * 10);
    use(block.ptr, block.pitch * 20 * 10);
    if (!keeps)
        MUST(cudaFree(block.ptr));
}

SITE void take_managed(void)
{
    unsigned *block;
    unsigned bad = 0;

    MUST(cudaMallocManaged(&block, 70000, cudaMemAttachGlobal));
    took(__func__, "cudaMallocManaged", "cuMemAllocManaged", "managed", 70000);
    for (unsigned i = 0; i < 17500; i++)
        block[i] = expected_at(i, 5);
    check(block, 70000, 5, wrong, 0);
    fill(block, 70000, 6, 0);
    MUST(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 17500; i++)
        bad += block[i] != expected_at(i, 6);
    say("managed: %u elements are wrong on the host", bad);
    if (!keeps)
        MUST(cudaFree(block));
}

SITE void take_pinned(void)
{
    void *block, *copy;
    unsigned bad = 0;

    MUST(cudaMallocHost(&block, 6000));
    took(__func__, "cudaMallocHost", "cuMem", "pinned", 6000);
    MUST(cudaHostGetDevicePointer(&copy, block, 0));
    fill(copy, 6000, 8, 0); /* the device writes host memory */
    MUST(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 1500; i++)
        bad += ((unsigned *)block)[i] != expected_at(i, 8);
    say("pinned: %u elements are wrong on the host", bad);
    if (!keeps)
        MUST(cudaFreeHost(block));
}

SITE void take_portable(void)
{
    void *block;

    MUST(cudaHostAlloc(&block, 7000, cudaHostAllocPortable | cudaHostAllocMapped));
    took(__func__, "cudaHostAlloc", "cuMem", "pinned", 7000);
    if (!keeps)
        MUST(cudaFreeHost(block));
}

SITE void take_registered(void)
{
    static char block[8192] __attribute__((aligned(4096)));

    MUST(cudaHostRegister(block, sizeof(block), cudaHostRegisterDefault));
    took(__func__, "cudaHostRegister", "cuMemHostRegister", "registered", sizeof(block));
    if (!keeps)
        MUST(cudaHostUnregister(block));
}

SITE void take_array(void)
{
    static float rows[10][64 * 4], back[10][64 * 4];
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
    cudaArray_t array;

    MUST(cudaMallocArray(&array, &format, 64, 10));
    took(__func__, "cudaMallocArray", "cuArray", "array", 64 * 10 * 16);
    for (unsigned i = 0; i < 10 * 256; i++)
        rows[i / 256][i % 256] = (float)i;
    MUST(cudaMemcpy2DToArray(array, 0, 0, rows, 1024, 1024, 10, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy2DFromArray(back, 1024, array, 0, 0, 1024, 10, cudaMemcpyDeviceToHost));
    say("array rows are %s", memcmp(rows, back, sizeof(rows)) ? "wrong" : "right");
    if (!keeps)
        MUST(cudaFreeArray(array));
}

SITE void take_cube(void)
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;

    MUST(cudaMalloc3DArray(&array, &format, make_cudaExtent(16, 8, 4)));
    took(__func__, "cudaMalloc3DArray", "cuArray", "array", 16 * 8 * 4 * 4);
    if (!keeps)
        MUST(cudaFreeArray(array));
}

SITE void take_mipmap(void)
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
    cudaMipmappedArray_t array;

    MUST(cudaMallocMipmappedArray(&array, &format, make_cudaExtent(64, 64, 0), 3));
    took(__func__, "cudaMallocMipmappedArray", "cuMipmappedArray", "mipmap",
         64 * 64 + 32 * 32 + 16 * 16);
    if (!keeps)
        MUST(cudaFreeMipmappedArray(array));
}

SITE void take_async(void)
{
    void *block;

    MUST(cudaMallocAsync(&block, 9001, 0));
    took(__func__, "cudaMallocAsync", "cuMemAllocAsync", "async", 9001);
    use(block, 9000);
    if (!keeps)
        MUST(cudaFreeAsync(block, 0));
}

SITE void take_from_pool(void)
{
    cudaMemPoolProps props;
    cudaMemPool_t pool;
    void *block;

    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    MUST(cudaMemPoolCreate(&pool, &props));
    MUST(cudaMallocFromPoolAsync(&block, 12345, pool, 0));
    blocks++;
    say("json [s['live']['bytes'] for s in sites('take_from_pool') if s['kind'] == 'async'"
        " and s['total']['count']] == [%d]",
        keeps ? 12345 : 0);
    use(block, 12344);
    if (keeps)
        return;
    MUST(cudaFreeAsync(block, 0));
    MUST(cudaStreamSynchronize(0));
    MUST(cudaMemPoolDestroy(pool));
}

int main(int argc, char **argv)
{
    unsigned found;

    keeps = argc > 1 && strcmp(argv[1], "keep") == 0;
    MUST(cudaMalloc(&wrong, sizeof(*wrong)));
    start_counter(wrong, 0);
    take_plain();
    take_pitched();
    take_cuboid();
    take_managed();
    take_pinned();
    take_portable();
    take_registered();
    take_array();
    take_cube();
    take_mipmap();
    take_async();
    take_from_pool();
    MUST(cudaMemcpy(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost));
    MUST(cudaFree(wrong));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", found);
    say("expect leaked_blocks=%u leak_sites=%u", keeps ? blocks : 0, keeps ? blocks : 0);
    say("expect allocs=%u frees=%u failed=0", blocks + 1, keeps ? 1 : blocks + 1);
    say("no report INVALID FREES");
    return found != 0;
}
