/* SPDX-License-Identifier: MIT */
/*
 * A driver that costs nothing: libcuda.so.1 for benchmarks of what stands in front of it.
 *
 * One device of 80 GiB, always empty and always idle: every event has passed, every wait is over.
 * One context, always current. Addresses are those of null_addresses.h.
 */
#include <stdatomic.h>
#include <string.h>

#include "null_addresses.h"

#ifndef EXPORT /* judge_driver.c puts its own functions in place of some of these */
#define EXPORT __attribute__((visibility("default")))
#endif
#define DEVICE_BYTES ((size_t)80 << 30)
#define PITCH        ((size_t)512)

typedef int CUresult;

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2 };

static int context, default_pool;
static _Atomic uintptr_t last_handle;

/* For the workloads: how many allocations this thread made here. */
EXPORT uint64_t null_upstream(void)
{
    return addresses_taken;
}

/* ---- memory ---- */

static CUresult take(uint64_t *address, size_t bytes)
{
    *address = address_take(bytes);
    if (*address != 0)
        return SUCCESS;
    return bytes == 0 ? INVALID_VALUE : OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAlloc_v2(uint64_t *dptr, size_t bytes)
{
    return take(dptr, bytes);
}

EXPORT CUresult cuMemFree_v2(uint64_t dptr)
{
    address_give(dptr);
    return SUCCESS;
}

EXPORT CUresult cuMemAllocPitch_v2(uint64_t *dptr, size_t *pitch, size_t width, size_t height,
                                   unsigned element)
{
    (void)element;
    *pitch = (width + PITCH - 1) & ~(PITCH - 1);
    return take(dptr, *pitch * height);
}

EXPORT CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return take((uint64_t *)address, bytes);
}

EXPORT CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    return take((uint64_t *)address, bytes);
}

EXPORT CUresult cuMemFreeHost(void *address)
{
    address_give((uint64_t)(uintptr_t)address);
    return SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = DEVICE_BYTES;
    return SUCCESS;
}

/* The driver's own pool costs nothing either. */
EXPORT CUresult cuMemAllocAsync(uint64_t *dptr, size_t bytes, void *stream)
{
    (void)stream;
    return take(dptr, bytes);
}

EXPORT CUresult cuMemFreeAsync(uint64_t dptr, void *stream)
{
    (void)stream;
    address_give(dptr);
    return SUCCESS;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(void **pool, int device)
{
    *pool = &default_pool;
    return device;
}

EXPORT CUresult cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    (void)attribute;
    (void)value;
    return pool != &default_pool;
}

EXPORT CUresult cuMemsetD8Async(uint64_t dptr, unsigned char value, size_t count, void *stream)
{
    (void)dptr;
    (void)value;
    (void)count;
    (void)stream;
    return SUCCESS;
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    (void)to, (void)from, (void)bytes, (void)stream;
    return SUCCESS;
}

/* ---- driver and device ---- */

EXPORT CUresult cuInit(unsigned flags)
{
    return flags != 0;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return SUCCESS;
}

EXPORT CUresult cuDeviceGet(int *device, int ordinal)
{
    *device = 0;
    return ordinal != 0;
}

EXPORT CUresult cuDeviceGetName(char *name, int len, int device)
{
    strncpy(name, "Null", (size_t)len);
    return device;
}

EXPORT CUresult cuDeviceGetUuid(void *uuid, int device)
{
    memset(uuid, 0, 16);
    return device;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = DEVICE_BYTES;
    return device;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(void **ctx, int device)
{
    *ctx = &context;
    return device;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = 1;
    return device;
}

/* ---- context ---- */

EXPORT CUresult cuCtxGetCurrent(void **out)
{
    *out = &context;
    return SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(void *ctx)
{
    return ctx != &context;
}

EXPORT CUresult cuCtxPushCurrent_v2(void *ctx)
{
    return ctx != &context;
}

EXPORT CUresult cuCtxPopCurrent_v2(void **out)
{
    if (out)
        *out = &context;
    return SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(int *device)
{
    *device = 0;
    return SUCCESS;
}

EXPORT CUresult cuCtxGetId(void *ctx, unsigned long long *id)
{
    (void)ctx; /* NULL, the current one, or the only one */
    *id = 1;
    return SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return SUCCESS;
}

EXPORT CUresult cuCtxSynchronize_v2(void *ctx)
{
    return ctx != &context;
}

EXPORT CUresult cuCtxRecordEvent(void *ctx, void *event)
{
    (void)event;
    return ctx != &context;
}

/* ---- streams and events ---- */

EXPORT CUresult cuStreamGetCtx(void *stream, void **out)
{
    (void)stream;
    *out = &context;
    return SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(void *stream, int *status)
{
    (void)stream;
    *status = 0;
    return SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(void *stream)
{
    (void)stream;
    return SUCCESS;
}

/* Handles of streams and events are far from those that mean a default stream. */
static void *new_handle(void)
{
    return (void *)(atomic_fetch_add(&last_handle, 16) + 16);
}

EXPORT CUresult cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = new_handle();
    return SUCCESS;
}

EXPORT CUresult cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = new_handle();
    return SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(void *event)
{
    (void)event;
    return SUCCESS;
}

EXPORT CUresult cuEventRecord(void *event, void *stream)
{
    (void)event;
    (void)stream;
    return SUCCESS;
}

EXPORT CUresult cuEventQuery(void *event)
{
    (void)event;
    return SUCCESS;
}

EXPORT CUresult cuEventSynchronize(void *event)
{
    (void)event;
    return SUCCESS;
}
