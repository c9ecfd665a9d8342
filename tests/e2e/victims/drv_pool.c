/* SPDX-License-Identifier: MIT */
/* Stream-ordered memory from a pool of its own, which is the device's for a while and is destroyed;
 * one block stays. */
#include "victim.h"

#include <unistd.h>

unsigned long long cusim_calls(const char *symbol) __attribute__((weak));

static CUstream stream;

static NOINLINE CUdeviceptr take_from_pool(CUmemoryPool pool, size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAllocFromPoolAsync(&block, bytes, pool, stream));
    return block;
}

static NOINLINE CUdeviceptr take_and_keep(CUmemoryPool pool)
{
    return take_from_pool(pool, 3 << 20);
}

static NOINLINE CUmemoryPool make_pool(int device)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemoryPool pool;

    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
}

/* What the device's own pool keeps is in use there until it is told to give it back. */
static void trim_the_devices_own(void)
{
    cuuint64_t all = UINT64_MAX;
    CUmemoryPool pool;
    CUdeviceptr block;

    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    MUST(cuMemAllocAsync(&block, 64 << 20, stream));
    MUST(cuMemFreeAsync(block, stream));
    usleep(2000); /* so that the use of memory is looked at again */
    MUST(cuCtxSynchronize());
    MUST(cuMemPoolTrimTo(pool, 0));
    say("json pressure().get('spare', 0) == 0");
    if (cusim_calls) /* on a real device contexts, and other processes, use more */
        say("json r['devices'][0]['driver_used'] < 64 << 20");
}

static NOINLINE CUdeviceptr take_from_current(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, bytes, stream));
    return block;
}

static void make_the_devices_own(CUmemoryPool pool, int by_location)
{
#if CUDA_VERSION >= 13000
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};

    if (by_location && cusim_calls) { /* drivers of CUDA 12 have no such function */
        MUST(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
        return;
    }
#endif
    (void)by_location;
    MUST(cuDeviceSetMemPool(0, pool));
}

/* Another pool is the device's, and the driver's peaks are set back: the answers are the driver's,
 * and the account's peaks stay. */
static void replace_the_devices_own(CUmemoryPool pool, int by_location)
{
    cuuint64_t bytes = 0;
    CUmemoryPool own;
    CUdeviceptr block;

    MUST(cuDeviceGetMemPool(&own, 0));
    make_the_devices_own(pool, by_location);
    block = take_from_current(80 << 20);
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
    MUST(bytes == 80 << 20 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuStreamSynchronize(stream));
    bytes = 0;
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &bytes));
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &bytes));
    MUST(bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    MUST(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &bytes));
    make_the_devices_own(own, by_location);
    say("json {s['device'] for s in sites('take_from_current')} == {0}");
    say("json r['devices'][0]['peak_bytes'] == %d", 80 << 20);
}

int main(void)
{
    CUmemoryPool pool;
    CUdeviceptr kept, freed;

    use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    trim_the_devices_own();
    pool = make_pool(0);
    replace_the_devices_own(pool, 0);
    replace_the_devices_own(pool, 1);
    freed = take_from_pool(pool, 1 << 20);
    kept = take_and_keep(pool);
    MUST(cuMemFreeAsync(freed, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolTrimTo(pool, 0));
    MUST(cuMemPoolDestroy(pool)); /* the block outlives it */
    MUST(cuMemsetD8(kept, 1, 3 << 20));
    say("expect leaked_bytes=%d leaked_blocks=1 leak_sites=1 allocs=5 frees=4", 3 << 20);
    say("json live('take_and_keep') == (1, %d) and site('take_and_keep')['kind'] == 'async'",
        3 << 20);
    say("json site('take_and_keep')['api'] == 'cuMemAllocFromPoolAsync'");
    say("json live('make_pool') == (0, 0) and site('make_pool')['kind'] == 'pool'");
    return 0;
}
