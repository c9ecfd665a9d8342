/* SPDX-License-Identifier: MIT */
/*
 * A CUDA runtime that costs nothing, for the one contestant that stands on the runtime: just the
 * functions that cub::CachingDeviceAllocator calls. One device, always idle. Linked statically, so
 * that not even the indirect call of a shared library is counted against it.
 */
#include <cuda_runtime_api.h>

#include "null_addresses.h"

uint64_t null_upstream(void);

/* For the workloads: how many allocations this thread made here. */
uint64_t null_upstream(void)
{
    return addresses_taken;
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    *address = (void *)address_take(bytes);
    return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *address)
{
    address_give((uint64_t)address);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    static uintptr_t last_event;

    (void)flags;
    *event = (cudaEvent_t)__atomic_add_fetch(&last_event, 1, __ATOMIC_RELAXED);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)event;
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
