/* SPDX-License-Identifier: MIT */
/*
 * A driver that costs nothing: libcuda.so.1 for benchmarks of what stands in front of it.
 *
 * Addresses come from a counter and go back to a stack of the freeing thread; there is no memory
 * behind them. One context on one device, always current.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define STEP   ((uint64_t)1 << 21)
#define SPARES 4096

typedef int CUresult;

static _Atomic uint64_t next_address = (uint64_t)1 << 40;
static __thread uint64_t spare[SPARES];
static __thread unsigned spares;
static int context;

EXPORT CUresult cuMemAlloc_v2(uint64_t *dptr, size_t bytes)
{
    if (bytes == 0)
        return 1;
    *dptr = spares ? spare[--spares] : atomic_fetch_add(&next_address, STEP);
    return 0;
}

EXPORT CUresult cuMemFree_v2(uint64_t dptr)
{
    if (spares < SPARES)
        spare[spares++] = dptr;
    return 0;
}

EXPORT CUresult cuInit(unsigned flags)
{
    return flags != 0;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

EXPORT CUresult cuCtxGetCurrent(void **out)
{
    *out = &context;
    return 0;
}

EXPORT CUresult cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

EXPORT CUresult cuCtxGetId(void *ctx, unsigned long long *id)
{
    *id = ctx == &context;
    return 0;
}

EXPORT CUresult cuDeviceGetName(char *name, int len, int device)
{
    strncpy(name, "Null", (size_t)len);
    return device;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)1 << 40;
    return device;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)1 << 40;
    return 0;
}
