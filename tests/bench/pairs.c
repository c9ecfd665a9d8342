/* SPDX-License-Identifier: MIT */
/*
 * The workloads over a driver: the one that costs nothing (null_driver.c, with -DNULL_DRIVER) or a
 * real one, with whatever is preloaded in front of it.
 *
 *   pairs [kind=device|pinned|pitched|async0|asyncmax] NAME=VALUE...
 *
 * The other words are those of workload.h. Blocks are device memory by default; async is the
 * driver's own pool, which gives back what is idle at each synchronisation (0) or nothing (max).
 * Declares what it calls itself, so that it is built where there are no headers of CUDA.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
int cuMemAlloc_v2(uint64_t *dptr, size_t bytes);
int cuMemAllocPitch_v2(uint64_t *dptr, size_t *pitch, size_t width, size_t height,
                       unsigned element);
int cuMemFree_v2(uint64_t dptr);
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
int cuMemFreeHost(void *address);
int cuMemAllocAsync(uint64_t *dptr, size_t bytes, void *stream);
int cuMemFreeAsync(uint64_t dptr, void *stream);
int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
int cuMemsetD8Async(uint64_t dptr, unsigned char value, size_t count, void *stream);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);

#define ROWS              4
#define STREAM_ONLY       1 /* CU_STREAM_NON_BLOCKING */
#define RELEASE_THRESHOLD 4 /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */

static enum { DEVICE, PINNED, PITCHED, ASYNC_0, ASYNC_MAX } kind;
static const char *const kinds[] = {"device", "pinned", "pitched", "async0", "asyncmax"};
static void *context;

static void must(int result, const char *call)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: error %d of the driver\n", call, result);
    exit(2);
}

static inline uint64_t take_block(size_t bytes, void *stream)
{
    uint64_t address = 0;
    size_t pitch;

    switch (kind) {
    case DEVICE:
        cuMemAlloc_v2(&address, bytes);
        break;
    case PINNED:
        cuMemHostAlloc((void **)&address, bytes, 0);
        break;
    case PITCHED:
        cuMemAllocPitch_v2(&address, &pitch, bytes / ROWS, ROWS, 4);
        break;
    case ASYNC_0:
    case ASYNC_MAX:
        cuMemAllocAsync(&address, bytes, stream);
        break;
    }
    return address;
}

static inline void give_block(uint64_t address, size_t bytes, void *stream)
{
    (void)bytes;
    if (kind == PINNED)
        cuMemFreeHost((void *)(uintptr_t)address);
    else if (kind >= ASYNC_0)
        cuMemFreeAsync(address, stream);
    else
        cuMemFree_v2(address);
}

static inline void touch_block(uint64_t address, size_t bytes, void *stream)
{
    must(cuMemsetD8Async(address, 1, bytes, stream), "cuMemsetD8Async");
}

static inline void wait_stream(void *stream)
{
    must(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static inline void synchronize(void)
{
    cuCtxSynchronize();
}

static void begin_thread(void)
{
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void open_streams(void **streams, long count)
{
    for (long i = 0; i < count; i++)
        must(cuStreamCreate(&streams[i], STREAM_ONLY), "cuStreamCreate");
}

/* Of pinned memory nobody knows how much there is. */
static uint64_t free_memory(void)
{
    size_t free_bytes, total;

    must(cuMemGetInfo_v2(&free_bytes, &total), "cuMemGetInfo");
    return kind == PINNED ? UINT64_MAX : free_bytes;
}

#ifdef NULL_DRIVER
uint64_t null_upstream(void);
#else
static uint64_t null_upstream(void)
{
    return UINT64_MAX;
}
#endif

#include "workload.h"

static int read_kind(const char *name)
{
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i]) == 0) {
            kind = i;
            return 0;
        }
    fprintf(stderr, "no kind %s\n", name);
    return 2;
}

static void open_device(void)
{
    uint64_t threshold = kind == ASYNC_MAX ? UINT64_MAX : 0;
    void *pool;
    int device;

    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    if (kind < ASYNC_0)
        return;
    must(cuDeviceGetDefaultMemPool(&pool, device), "cuDeviceGetDefaultMemPool");
    must(cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &threshold), "cuMemPoolSetAttribute");
}

int main(int argc, char **argv)
{
    argc--;
    argv++;
    if (argc > 0 && strncmp(argv[0], "kind=", 5) == 0) {
        if (read_kind(argv[0] + 5) != 0)
            return 2;
        argc--;
        argv++;
    }
    open_device();
    return run_workload(argc, argv);
}
