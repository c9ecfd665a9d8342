/* SPDX-License-Identifier: MIT */
/*
 * A CUDA runtime that costs nothing, for the contestants that stand on the runtime: just the
 * functions that they call. One device of 80 GiB, always empty and always idle. Linked statically
 * where that is possible, so that not even the indirect call of a shared library is counted against
 * a contestant; as libcudart.so for those that come as shared libraries themselves.
 */
#include <cuda_runtime_api.h>
#include <string.h>

#include "null_addresses.h"

#define DEVICE_BYTES ((size_t)80 << 30)

static uintptr_t last_handle;

static size_t device_bytes = DEVICE_BYTES;
static __thread uint64_t bytes_taken;

uint64_t null_upstream(void);
uint64_t null_upstream_bytes(void);
void null_set_device(size_t bytes);

/* For the workloads: how many allocations this thread made here. */
uint64_t null_upstream(void)
{
    return addresses_taken;
}

/* And of how many bytes in all, whether they were freed or not. */
uint64_t null_upstream_bytes(void)
{
    return bytes_taken;
}

/* A device of another size: so much can be taken, for what is freed does not come back. */
void null_set_device(size_t bytes)
{
    device_bytes = bytes;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    *address = bytes <= device_bytes - bytes_taken ? (void *)address_take(bytes) : NULL;
    bytes_taken += *address ? bytes : 0;
    return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *address)
{
    address_give((uint64_t)address);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = device_bytes;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t count, cudaStream_t stream)
{
    (void)address;
    (void)value;
    (void)count;
    (void)stream;
    return cudaSuccess;
}

/* ---- device ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
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

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    memset(properties, 0, sizeof(*properties));
    strcpy(properties->name, "Null");
    properties->totalGlobalMem = device_bytes;
    properties->major = 9;
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static int has_no_such_call(void)
{
    return cudaErrorNotSupported;
}

#if CUDART_VERSION >= 12050
/* Who looks up the driver at its start finds functions, none of which does anything. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    (void)name;
    (void)version;
    (void)flags;
    *function = (void *)has_no_such_call;
    if (status)
        *status = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
#endif

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

/* ---- streams ---- */

static uintptr_t new_handle(void)
{
    return __atomic_add_fetch(&last_handle, 16, __ATOMIC_RELAXED);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = (cudaStream_t)new_handle();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)priority;
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    *id = (uintptr_t)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    (void)stream;
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static __thread enum cudaStreamCaptureMode current;
    enum cudaStreamCaptureMode before = current;

    current = *mode;
    *mode = before;
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = (cudaEvent_t)new_handle();
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

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

/* ---- errors ---- */

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaSuccess ? "cudaSuccess" : "an error";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}
