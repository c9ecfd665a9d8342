/* SPDX-License-Identifier: MIT */
/* Bodies of families ALLOC and FREE: memory with an address, and arrays. */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/pooled.h"

#include "core/device/context.h"
#include "core/device/driver_pool.h"
#include "core/request/fallback.h"
#include "core/process/gate.h"
#include "core/limits/limit.h"
#include "core/account/site.h"
#include "core/account/tracker.h"

/* Device and context of a stream that may belong to another context than the current one. */
static void set_stream_device(CUstream stream, struct cw_request *request)
{
    CUcontext context = NULL;
    uint8_t device;

    cw_context_current(&device);
    request->device = device;
    if ((uintptr_t)stream <= (uintptr_t)CW_STREAM_PER_THREAD || cw_gate_is_capturing())
        return;
    if (CW_REAL(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS &&
        cw_context_of((uint64_t)(uintptr_t)context, &device) != 0)
        request->device = device;
}

static uint64_t address_of(CUresult rc, const CUdeviceptr *dptr)
{
    return rc == CUDA_SUCCESS && dptr != NULL ? (uint64_t)*dptr : 0;
}

static uint64_t host_address_of(CUresult rc, void *const *pp)
{
    return rc == CUDA_SUCCESS && pp != NULL ? (uint64_t)(uintptr_t)*pp : 0;
}

/* ---- device memory ---- */

CW_HOT CW_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct cw_call call;

    if (CW_UNLIKELY(!cw_call_enter_hot(&call, CW_HOOK_cuMemAlloc_v2, CW_CALLER)))
        return CW_REAL(cuMemAlloc_v2)(dptr, bytesize);
    return cw_pooled_alloc(&call, CW_POOL_DEVICE, dptr, bytesize);
}

/* The 32-bit ABI of CUDA 2: its pointers hold the low 4 GiB. */
CW_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    struct cw_request request = {.kind = CW_KIND_DEVICE, .bytes = bytesize};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAlloc, CW_CALLER))
        return CW_REAL(cuMemAlloc)(dptr, bytesize);
    do
        rc = cw_call_may_here(&call, bytesize) ? CW_REAL(cuMemAlloc)(dptr, bytesize)
                                               : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS && dptr != NULL ? *dptr : 0;
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                      size_t Height, unsigned int ElementSizeBytes)
{
    struct cw_call call;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAllocPitch_v2, CW_CALLER))
        return CW_REAL(cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    return cw_pooled_alloc_pitch(&call, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
}

CW_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch,
                                   unsigned int WidthInBytes, unsigned int Height,
                                   unsigned int ElementSizeBytes)
{
    struct cw_request request = {.kind = CW_KIND_PITCHED};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAllocPitch, CW_CALLER))
        return CW_REAL(cuMemAllocPitch)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    do
        rc = cw_call_may_here(&call, (uint64_t)WidthInBytes * Height)
                 ? CW_REAL(cuMemAllocPitch)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS && dptr != NULL ? *dptr : 0;
    request.bytes =
        (size_t)(rc == CUDA_SUCCESS && pPitch != NULL ? *pPitch : WidthInBytes) * Height;
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

/* If the driver refuses for another reason, it must say so itself. */
static int may_be_managed(struct cw_call *call, const CUdeviceptr *dptr, size_t bytes,
                          unsigned int flags)
{
    return dptr == NULL ||
           (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
            flags != CU_MEM_ATTACH_SINGLE) ||
           cw_call_may_here(call, bytes);
}

CW_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct cw_request request = {.kind = CW_KIND_MANAGED, .bytes = bytesize};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAllocManaged, CW_CALLER))
        return CW_REAL(cuMemAllocManaged)(dptr, bytesize, flags);
    do
        rc = may_be_managed(&call, dptr, bytesize, flags)
                 ? CW_REAL(cuMemAllocManaged)(dptr, bytesize, flags)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = address_of(rc, dptr);
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

/* To the driver, a block that only the pool still keeps is not freed. */
static int is_freed_before(uint64_t key)
{
    return CW_UNLIKELY(cw_fallback_has_left()) && cw_fallback_is_left(key);
}

static CUresult free_device(uint64_t key)
{
    return is_freed_before(key) ? CUDA_ERROR_INVALID_VALUE : CW_REAL(cuMemFree_v2)(key);
}

CW_HOT CW_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    struct cw_call call;

    if (CW_UNLIKELY(!cw_call_enter_hot(&call, CW_HOOK_cuMemFree_v2, CW_CALLER)))
        return CW_REAL(cuMemFree_v2)(dptr);
    return cw_pooled_free(&call, CW_FREES_DEVICE, dptr, free_device);
}

static CUresult free_device_v1(uint64_t key)
{
    return CW_REAL(cuMemFree)((CUdeviceptr_v1)key);
}

CW_EXPORT CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
    struct cw_call call;

    if (!cw_call_enter(&call, CW_HOOK_cuMemFree, CW_CALLER))
        return CW_REAL(cuMemFree)(dptr);
    return cw_pooled_free(&call, CW_FREES_DEVICE, dptr, free_device_v1);
}

/* ---- stream-ordered memory ---- */

/* The device's current pool, for calls that name none; NULL: not known. */
static CUmemoryPool pool_of(CUdevice device)
{
    CUmemoryPool pool = NULL;

    if (!cw_gate_enter())
        return NULL;
    if (CW_REAL(cuDeviceGetMemPool)(&pool, device) != CUDA_SUCCESS)
        pool = NULL;
    cw_gate_leave();
    return pool;
}

/* Managed memory goes with the context in which it was taken, and cannot be handed to another
 * process by its pool. `pool` NULL: none is named. */
static enum cw_unserved cannot_stand_in(const struct cw_request *request, CUmemoryPool pool)
{
    uint8_t device;
    uint32_t block, context = cw_context_current(&device);

    if (context == 0 || device != request->device || context != cw_context_primary(device))
        return CW_UNSERVED_CONTEXT;
    if (pool == NULL)
        pool = pool_of(device);
    block = cw_tracker_find(CW_SPACE_POOL, (uint64_t)(uintptr_t)pool);
    if (block != 0 && (atomic_load(&cw_tracker_at(block)->flags) & CW_BLOCK_EXPORTED) != 0)
        return CW_UNSERVED_SHARED;
    return CW_UNSERVED_UNASKED;
}

/* 1: ask the driver once more. 0: *rc is final; managed memory may have made it a success. */
static int async_again(struct cw_call *call, CUresult *rc, struct cw_request *request,
                       CUdeviceptr *dptr, CUmemoryPool pool)
{
    switch (cw_call_step_on(call, *rc, request->device, dptr != NULL)) {
    case CW_LADDER_ASK:
        return 1;
    case CW_LADDER_MANAGED:
        request->unserved = (uint8_t)cannot_stand_in(request, pool);
        if (request->unserved == CW_UNSERVED_UNASKED &&
            cw_fallback_alloc(request->device, request->bytes, request) == 0) {
            *dptr = request->key;
            *rc = CUDA_SUCCESS;
        }
        return 0;
    default:
        return 0;
    }
}

/* In a capture the call makes a node of the graph; memory comes with its launch. */
static void account_async(struct cw_call *call, CUresult rc, struct cw_request *request,
                          int captured)
{
    if ((request->flags & CW_BLOCK_FALLBACK) != 0) {
        cw_call_helped(call);
        cw_call_allocated(call, rc, CW_SCOPE_HOST, request);
        cw_fallback_committed(request->bytes);
        return;
    }
    if (captured && rc == CUDA_SUCCESS) {
        request->kind = CW_KIND_GRAPH;
        request->held = request->bytes;
        cw_graph_node_added(request, cw_site_here(call->api, CW_KIND_GRAPH, request->device));
        cw_call_leave();
        return;
    }
    cw_call_allocated(call, rc, CW_SCOPE_DEVICE, request);
}

typedef CUresult (*alloc_async_fn)(CUdeviceptr *dptr, size_t bytesize, CUstream stream);

static CUresult alloc_async(enum cw_hook hook, enum cw_stream_flavour flavour, CUdeviceptr *dptr,
                            size_t bytesize, CUstream stream, void *caller)
{
    struct cw_request request = {.kind = CW_KIND_ASYNC, .bytes = bytesize};
    alloc_async_fn real = (alloc_async_fn)cw_real_of(hook);
    struct cw_call call;
    int captured;
    CUresult rc;

    if (!cw_call_enter(&call, hook, caller))
        return real(dptr, bytesize, stream);
    cw_thread.stream = (uintptr_t)stream;
    captured = cw_call_is_capturing(stream, flavour);
    set_stream_device(stream, &request);
    do
        rc = captured || cw_call_may(&call, request.device, bytesize) ? real(dptr, bytesize, stream)
                                                                      : CUDA_ERROR_OUT_OF_MEMORY;
    while (async_again(&call, &rc, &request, dptr, NULL));
    request.key = address_of(rc, dptr);
    account_async(&call, rc, &request, captured);
    return rc;
}

CW_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return alloc_async(CW_HOOK_cuMemAllocAsync, CW_STREAM_LEGACY, dptr, bytesize, hStream,
                       CW_CALLER);
}

CW_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return alloc_async(CW_HOOK_cuMemAllocAsync_ptsz, CW_STREAM_THREAD, dptr, bytesize, hStream,
                       CW_CALLER);
}

/* We did not see the creation of a device's default pool: only its memory tells the device. */
static void ask_device(struct cw_request *request)
{
    unsigned type = CU_MEMORYTYPE_DEVICE;
    unsigned passed = request->key != 0 ? cw_gate_enter_beside(CW_GATE_ALL) : 0;
    int ordinal = -1;

    if (passed == 0)
        return;
    if (CW_REAL(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, request->key) ==
            CUDA_SUCCESS &&
        type == CU_MEMORYTYPE_HOST)
        request->device = CW_DEVICE_HOST;
    else if (CW_REAL(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                            request->key) == CUDA_SUCCESS &&
             ordinal >= 0 && ordinal < CW_MAX_DEVICES)
        request->device = (uint8_t)ordinal;
    cw_gate_leave_beside(passed);
}

typedef CUresult (*alloc_from_pool_fn)(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                       CUstream stream);

static CUresult alloc_from_pool(enum cw_hook hook, enum cw_stream_flavour flavour,
                                CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                CUstream stream, void *caller)
{
    struct cw_request request = {.kind = CW_KIND_ASYNC, .bytes = bytesize};
    alloc_from_pool_fn real = (alloc_from_pool_fn)cw_real_of(hook);
    struct cw_call call;
    int captured;
    uint32_t block;
    CUresult rc;

    if (!cw_call_enter(&call, hook, caller))
        return real(dptr, bytesize, pool, stream);
    cw_thread.stream = (uintptr_t)stream;
    captured = cw_call_is_capturing(stream, flavour);
    set_stream_device(stream, &request);
    block = cw_tracker_find(CW_SPACE_POOL, (uint64_t)(uintptr_t)pool);
    if (block != 0)
        request.device = cw_site_device(cw_site_at(cw_tracker_at(block)->site));
    else if (cw_limit_is_on())
        cw_driver_pool_find((uint64_t)(uintptr_t)pool, &request.device);
    do
        rc = captured || cw_call_may(&call, request.device, bytesize)
                 ? real(dptr, bytesize, pool, stream)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (async_again(&call, &rc, &request, dptr, pool));
    request.key = address_of(rc, dptr);
    if (block == 0 && (request.flags & CW_BLOCK_FALLBACK) == 0)
        ask_device(&request);
    account_async(&call, rc, &request, captured);
    return rc;
}

CW_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                           CUstream hStream)
{
    return alloc_from_pool(CW_HOOK_cuMemAllocFromPoolAsync, CW_STREAM_LEGACY, dptr, bytesize, pool,
                           hStream, CW_CALLER);
}

CW_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize,
                                                CUmemoryPool pool, CUstream hStream)
{
    return alloc_from_pool(CW_HOOK_cuMemAllocFromPoolAsync_ptsz, CW_STREAM_THREAD, dptr, bytesize,
                           pool, hStream, CW_CALLER);
}

typedef CUresult (*free_async_fn)(CUdeviceptr dptr, CUstream stream);

/* The driver frees managed memory at once, even if submitted work still uses it
 * (core/request/fallback.h). */
static CUresult free_in_order(free_async_fn real, const struct cw_request_free *freed,
                              CUstream stream)
{
    if (freed->block == 0)
        return is_freed_before(freed->key) ? CUDA_ERROR_INVALID_VALUE : real(freed->key, stream);
    if ((atomic_load(&cw_tracker_at(freed->block)->flags) & CW_BLOCK_FALLBACK) != 0 &&
        cw_fallback_leave(freed->block) == 0)
        return CUDA_SUCCESS;
    return real(freed->key, stream);
}

/* In a capture the call makes a free node: what it frees stays live until a launch. */
static CUresult free_async(enum cw_hook hook, enum cw_stream_flavour flavour, CUdeviceptr dptr,
                           CUstream stream, void *caller)
{
    free_async_fn real = (free_async_fn)cw_real_of(hook);
    struct cw_request_free freed;
    struct cw_call call;
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    if (!cw_call_enter(&call, hook, caller))
        return real(dptr, stream);
    cw_thread.stream = (uintptr_t)stream;
    if (cw_call_is_capturing(stream, flavour)) {
        cw_graph_free_node_added();
        rc = real(dptr, stream);
        cw_call_leave();
        return rc;
    }
    if (cw_pooled_free_begin(&call, CW_FREES_ORDERED, dptr, &freed, &rc))
        return rc;
    rc = free_in_order(real, &freed, stream);
    cw_call_freed(&call, rc, &freed);
    return rc;
}

CW_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(CW_HOOK_cuMemFreeAsync, CW_STREAM_LEGACY, dptr, hStream, CW_CALLER);
}

CW_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(CW_HOOK_cuMemFreeAsync_ptsz, CW_STREAM_THREAD, dptr, hStream, CW_CALLER);
}

/* ---- host memory ---- */

/* Only the driver knows about a flag that cuda.h does not have yet. */
static CUresult host_alloc(struct cw_call *call, void **pp, size_t bytesize, unsigned int flags)
{
    struct cw_request request = {.kind = CW_KIND_PINNED, .bytes = bytesize};
    CUresult rc;

    if (flags < CW_POOL_CLASSES - CW_POOL_HOST_FLAGS)
        return cw_pooled_alloc(call, CW_POOL_HOST_FLAGS + flags, pp, bytesize);
    do
        rc = cw_call_may(call, CW_DEVICE_HOST, bytesize)
                 ? CW_REAL(cuMemHostAlloc)(pp, bytesize, flags)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(call, rc));
    request.key = host_address_of(rc, pp);
    cw_call_allocated(call, rc, CW_SCOPE_HOST, &request);
    return rc;
}

CW_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct cw_call call;

    if (!cw_call_enter(&call, CW_HOOK_cuMemHostAlloc, CW_CALLER))
        return CW_REAL(cuMemHostAlloc)(pp, bytesize, Flags);
    return host_alloc(&call, pp, bytesize, Flags);
}

CW_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    struct cw_call call;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAllocHost_v2, CW_CALLER))
        return CW_REAL(cuMemAllocHost_v2)(pp, bytesize);
    return cw_pooled_alloc(&call, CW_POOL_HOST, pp, bytesize);
}

CW_EXPORT CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
    struct cw_request request = {.kind = CW_KIND_PINNED, .bytes = bytesize};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAllocHost, CW_CALLER))
        return CW_REAL(cuMemAllocHost)(pp, bytesize);
    do
        rc = cw_call_may(&call, CW_DEVICE_HOST, bytesize) ? CW_REAL(cuMemAllocHost)(pp, bytesize)
                                                          : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = host_address_of(rc, pp);
    cw_call_allocated(&call, rc, CW_SCOPE_HOST, &request);
    return rc;
}

static CUresult free_host(uint64_t key)
{
    return CW_REAL(cuMemFreeHost)((void *)(uintptr_t)key);
}

CW_EXPORT CUresult cuMemFreeHost(void *p)
{
    struct cw_call call;

    if (!cw_call_enter(&call, CW_HOOK_cuMemFreeHost, CW_CALLER))
        return CW_REAL(cuMemFreeHost)(p);
    return cw_pooled_free(&call, CW_FREES_HOST, (uint64_t)(uintptr_t)p, free_host);
}

typedef CUresult (*host_register_fn)(void *p, size_t bytesize, unsigned int flags);

static CUresult host_register(enum cw_hook hook, void *p, size_t bytesize, unsigned int flags,
                              void *caller)
{
    struct cw_request request = {
        .kind = CW_KIND_REGISTERED, .key = (uint64_t)(uintptr_t)p, .bytes = bytesize};
    host_register_fn real = (host_register_fn)cw_real_of(hook);
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, hook, caller))
        return real(p, bytesize, flags);
    do
        rc = real(p, bytesize, flags);
    while (cw_call_again(&call, rc));
    cw_call_allocated(&call, rc, CW_SCOPE_HOST, &request);
    return rc;
}

CW_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    return host_register(CW_HOOK_cuMemHostRegister_v2, p, bytesize, Flags, CW_CALLER);
}

CW_EXPORT CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return host_register(CW_HOOK_cuMemHostRegister, p, bytesize, Flags, CW_CALLER);
}

CW_EXPORT CUresult cuMemHostUnregister(void *p)
{
    struct cw_request_free freed;
    struct cw_call call;
    struct cw_pool_context *pool_context;
    CUresult rc = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;

    if (!cw_call_enter(&call, CW_HOOK_cuMemHostUnregister, CW_CALLER))
        return CW_REAL(cuMemHostUnregister)(p);
    if (cw_pooled_free_begin(&call, CW_FREES_REGISTERED, (uint64_t)(uintptr_t)p, &freed, &rc))
        return rc;
    do {
        pool_context = cw_pooled_enter_driver(freed.block);
        rc = CW_REAL(cuMemHostUnregister)(p);
        cw_pooled_leave_driver(pool_context, rc);
    } while (cw_call_again(&call, rc));
    cw_call_freed(&call, rc, &freed);
    return rc;
}
