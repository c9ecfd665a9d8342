/* SPDX-License-Identifier: MIT */
/* Bodies of families SHARE and POOL: memory shared with other processes and APIs, memory pools. */
#include "hook/bodies/entries.h" /* first */
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "hook/bodies/observe.h"
#include "hook/bodies/pooled.h"

#include "core/process/gate.h"
#include "core/account/site.h"
#include "core/account/tracker.h"

/* The block that holds this address was given to others: it must never get a second owner. */
static void mark_exported(CUresult rc, uint64_t address)
{
    if (rc == CUDA_SUCCESS && cw_session_is_armed())
        cw_pooled_export(address);
}

/* ---- IPC ---- */

CW_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct cw_call call = {.caller = CW_CALLER};
    CUresult rc;

    if (cw_pooled_is_idle(dptr))
        return CUDA_ERROR_INVALID_VALUE;
    do
        rc = CW_REAL(cuIpcGetMemHandle)(pHandle, dptr);
    while (cw_call_observe(&call, CW_HOOK_cuIpcGetMemHandle, rc));
    mark_exported(rc, dptr);
    return rc;
}

static uint64_t imported_size(CUdeviceptr dptr)
{
    unsigned passed = cw_gate_enter_beside(CW_GATE_ALL);
    size_t size = 0;

    if (passed == 0)
        return 0;
    if (CW_REAL(cuMemGetAddressRange_v2)(NULL, &size, dptr) != CUDA_SUCCESS)
        size = 0;
    cw_gate_leave_beside(passed);
    return size;
}

/* The block of an opened handle, or 0. */
static uint32_t find_open(CUdeviceptr dptr)
{
    uint32_t block = cw_tracker_find(CW_SPACE_ADDRESS, dptr);

    return block != 0 && cw_site_own(cw_site_at(cw_tracker_at(block)->site))->kind == CW_KIND_IPC
               ? block
               : 0;
}

/* A handle that is open already gives the same pointer and counts one more open. */
static int count_open(CUdeviceptr dptr)
{
    uint32_t block = find_open(dptr);

    if (block != 0)
        cw_tracker_at(block)->refs++;
    return block != 0;
}

/* Takes one open off, unless it is the last. */
static int is_open_again(uint32_t block)
{
    _Atomic uint32_t *refs = &cw_tracker_at(block)->refs;
    uint32_t opens = atomic_load(refs);

    while (opens > 1)
        if (atomic_compare_exchange_weak(refs, &opens, opens - 1))
            return 1;
    return 0;
}

typedef CUresult (*ipc_open_fn)(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags);

static CUresult ipc_open(enum cw_hook hook, CUdeviceptr *pdptr, CUipcMemHandle handle,
                         unsigned int flags, void *caller)
{
    struct cw_request request = {.kind = CW_KIND_IPC};
    ipc_open_fn real = (ipc_open_fn)cw_real_of(hook);
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, hook, caller))
        return real(pdptr, handle, flags);
    do
        rc = real(pdptr, handle, flags);
    while (cw_call_again(&call, rc));
    if (rc == CUDA_SUCCESS && count_open(*pdptr)) {
        cw_call_leave();
        return rc;
    }
    if (rc == CUDA_SUCCESS) {
        request.key = *pdptr;
        request.bytes = imported_size(*pdptr);
    }
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                         unsigned int Flags)
{
    return ipc_open(CW_HOOK_cuIpcOpenMemHandle_v2, pdptr, handle, Flags, CW_CALLER);
}

CW_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return ipc_open(CW_HOOK_cuIpcOpenMemHandle, pdptr, handle, Flags, CW_CALLER);
}

/* It may wait for the context's work. */
static CUresult close_memory(CUdeviceptr dptr, uint32_t block)
{
    struct cw_pool_context *pool_context = cw_pooled_enter_driver(block);
    CUresult rc = CW_REAL(cuIpcCloseMemHandle)(dptr);

    cw_pooled_leave_driver(pool_context, rc);
    return rc;
}

CW_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct cw_request_free freed;
    struct cw_call call;
    uint32_t block;
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    if (!cw_call_enter(&call, CW_HOOK_cuIpcCloseMemHandle, CW_CALLER))
        return CW_REAL(cuIpcCloseMemHandle)(dptr);
    block = find_open(dptr);
    if (block != 0 && is_open_again(block)) {
        rc = close_memory(dptr, block);
        if (rc != CUDA_SUCCESS)
            cw_tracker_at(block)->refs++;
        cw_call_leave();
        return rc;
    }
    if (cw_pooled_free_begin(&call, CW_FREES_IMPORTED, dptr, &freed, &rc))
        return rc;
    rc = close_memory(dptr, freed.block);
    cw_call_freed(&call, rc, &freed);
    return rc;
}

CW_EXPORT CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                                 CUmemRangeHandleType handleType,
                                                 unsigned long long flags)
{
    CUresult rc =
        cw_pooled_is_idle(dptr)
            ? CUDA_ERROR_INVALID_VALUE
            : CW_REAL(cuMemGetHandleForAddressRange)(handle, dptr, size, handleType, flags);

    mark_exported(rc, dptr);
    return rc;
}

/* SYNC_MEMOPS sticks to the memory. */
CW_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                         CUdeviceptr ptr)
{
    CUresult rc = cw_pooled_is_idle(ptr) ? CUDA_ERROR_INVALID_VALUE
                                         : CW_REAL(cuPointerSetAttribute)(value, attribute, ptr);

    mark_exported(rc, ptr);
    return rc;
}

/* ---- external memory ---- */

CW_EXPORT CUresult cuImportExternalMemory(CUexternalMemory *extMem_out,
                                          const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    struct cw_request request = {.space = CW_SPACE_EXTERNAL,
                                 .kind = CW_KIND_EXTERNAL,
                                 .bytes = memHandleDesc ? memHandleDesc->size : 0};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuImportExternalMemory, CW_CALLER))
        return CW_REAL(cuImportExternalMemory)(extMem_out, memHandleDesc);
    do
        rc = CW_REAL(cuImportExternalMemory)(extMem_out, memHandleDesc);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*extMem_out : 0;
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_FREES(cuDestroyExternalMemory, CW_SPACE_EXTERNAL)

/* The mapping is freed by cuMemFree like any pointer, so it is a block like any other. */
CW_EXPORT CUresult
cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    struct cw_request request = {.kind = CW_KIND_EXTERNAL_MAP,
                                 .bytes = bufferDesc ? bufferDesc->size : 0};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuExternalMemoryGetMappedBuffer, CW_CALLER))
        return CW_REAL(cuExternalMemoryGetMappedBuffer)(devPtr, extMem, bufferDesc);
    do
        rc = CW_REAL(cuExternalMemoryGetMappedBuffer)(devPtr, extMem, bufferDesc);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? *devPtr : 0;
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
    struct cw_request request = {.space = CW_SPACE_ARRAY, .kind = CW_KIND_EXTERNAL_MAP};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuExternalMemoryGetMappedMipmappedArray, CW_CALLER))
        return CW_REAL(cuExternalMemoryGetMappedMipmappedArray)(mipmap, extMem, mipmapDesc);
    do
        rc = CW_REAL(cuExternalMemoryGetMappedMipmappedArray)(mipmap, extMem, mipmapDesc);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*mipmap : 0;
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

/* ---- pools ---- */

CW_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    struct cw_request request = {.space = CW_SPACE_POOL, .kind = CW_KIND_POOL};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemPoolCreate, CW_CALLER))
        return CW_REAL(cuMemPoolCreate)(pool, poolProps);
    do
        rc = CW_REAL(cuMemPoolCreate)(pool, poolProps);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*pool : 0;
    request.device = CW_DEVICE_HOST;
    if (poolProps != NULL && poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        request.device = (uint8_t)poolProps->location.id;
    if (poolProps != NULL && poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        request.flags = CW_BLOCK_EXPORTED; /* its blocks may be */
    if (rc == CUDA_SUCCESS)
        cw_driver_pool_insert(request.device, request.key);
    cw_call_allocated(&call, rc, CW_SCOPE_DEVICE, &request);
    return rc;
}

CW_EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                      CUmemAllocationHandleType handleType,
                                                      unsigned long long flags)
{
    struct cw_request request = {.space = CW_SPACE_POOL, .kind = CW_KIND_POOL};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemPoolImportFromShareableHandle, CW_CALLER))
        return CW_REAL(cuMemPoolImportFromShareableHandle)(pool_out, handle, handleType, flags);
    do
        rc = CW_REAL(cuMemPoolImportFromShareableHandle)(pool_out, handle, handleType, flags);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*pool_out : 0;
    cw_call_allocated(&call, rc, CW_SCOPE_CURRENT, &request);
    return rc;
}

/* Blocks from the pool stay live until they are freed: "the resources are released automatically
 * once there are no more outstanding allocations" (cuda.h, cuMemPoolDestroy). */
CW_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    struct cw_request_free freed;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemPoolDestroy, CW_CALLER))
        return CW_REAL(cuMemPoolDestroy)(pool);
    cw_driver_pool_remove_begin((uint64_t)(uintptr_t)pool);
    cw_request_free_begin(CW_SPACE_POOL, (uint64_t)(uintptr_t)pool, &freed);
    rc = CW_REAL(cuMemPoolDestroy)(pool);
    cw_driver_pool_remove_end();
    cw_call_freed(&call, rc, &freed);
    return rc;
}

CW_OBSERVED_THEN(cuMemPoolExportPointer, mark_exported(rc, a2))

CW_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                          CUmemPoolPtrExportData *shareData)
{
    struct cw_request request = {.kind = CW_KIND_IPC};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemPoolImportPointer, CW_CALLER))
        return CW_REAL(cuMemPoolImportPointer)(ptr_out, pool, shareData);
    do
        rc = CW_REAL(cuMemPoolImportPointer)(ptr_out, pool, shareData);
    while (cw_call_again(&call, rc));
    if (rc == CUDA_SUCCESS) {
        request.key = *ptr_out;
        request.bytes = imported_size(*ptr_out);
    }
    cw_call_allocated(&call, rc, CW_SCOPE_CURRENT, &request);
    return rc;
}

/* What the driver holds unused is another amount now, and nothing else may make us ask. */
static void trimmed(CUresult rc, enum cw_hook hook, CUmemoryPool pool)
{
    uint32_t block;
    uint8_t device;

    if (rc != CUDA_SUCCESS || !cw_session_is_armed() || cw_thread.depth != 0)
        return;
    block = cw_tracker_find(CW_SPACE_POOL, (uint64_t)(uintptr_t)pool);
    if (block != 0)
        device = cw_site_device(cw_site_at(cw_tracker_at(block)->site));
    else if (!cw_driver_pool_find((uint64_t)(uintptr_t)pool, &device))
        return;
    if (device < CW_MAX_DEVICES)
        cw_device_sample_now(device, cw_call_api_text(hook));
}

CW_OBSERVED_BODY(cuMemPoolTrimTo, .is_once = 1, trimmed(rc, CW_HOOK_cuMemPoolTrimTo, a1))
