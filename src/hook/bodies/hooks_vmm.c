/* SPDX-License-Identifier: MIT */
/* Bodies of family VMM: virtual memory handles, mappings, reservations. */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/observe.h"

#include "api/prefetches.h"
#include "core/device/vmm.h"
#include "core/process/guard.h"

static void place(const CUmemLocation *location, struct cw_request *request)
{
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
        location->id < CW_MAX_DEVICES) {
        request->device = (uint8_t)location->id;
        return;
    }
    request->device = CW_DEVICE_HOST;
    request->kind = CW_KIND_VMM_HOST;
}

CW_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                               const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct cw_request request = {.space = CW_SPACE_HANDLE, .kind = CW_KIND_VMM, .bytes = size};
    struct cw_call call;
    uint32_t block;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemCreate, CW_CALLER))
        return CW_REAL(cuMemCreate)(handle, size, prop, flags);
    if (prop != NULL)
        place(&prop->location, &request);
    do
        rc = cw_call_may(&call, request.device, size)
                 ? CW_REAL(cuMemCreate)(handle, size, prop, flags)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again_on(&call, rc, request.device));
    request.key = rc == CUDA_SUCCESS ? *handle : 0;
    block = cw_call_allocated(&call, rc, CW_SCOPE_DEVICE, &request);
    if (rc == CUDA_SUCCESS)
        cw_vmm_insert(*handle, block);
    return rc;
}

/* 0 with headers that do not say what the properties are. */
static uint64_t multicast_bytes(const CUmulticastObjectProp *prop)
{
#if CUDA_VERSION >= 12010
    return prop != NULL ? prop->size : 0;
#else
    (void)prop;
    return 0;
#endif
}

CW_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle,
                                     const CUmulticastObjectProp *prop)
{
    struct cw_request request = {
        .space = CW_SPACE_HANDLE, .kind = CW_KIND_MULTICAST, .bytes = multicast_bytes(prop)};
    struct cw_call call;
    uint32_t block;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMulticastCreate, CW_CALLER))
        return CW_REAL(cuMulticastCreate)(mcHandle, prop);
    do
        rc = CW_REAL(cuMulticastCreate)(mcHandle, prop);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? *mcHandle : 0;
    block = cw_call_allocated(&call, rc, CW_SCOPE_CURRENT, &request);
    if (rc == CUDA_SUCCESS)
        cw_vmm_insert(*mcHandle, block);
    return rc;
}

CW_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                  void *osHandle,
                                                  CUmemAllocationHandleType shHandleType)
{
    struct cw_request request = {.space = CW_SPACE_HANDLE, .kind = CW_KIND_IMPORTED};
    struct cw_call call;
    uint32_t block;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemImportFromShareableHandle, CW_CALLER))
        return CW_REAL(cuMemImportFromShareableHandle)(handle, osHandle, shHandleType);
    do
        rc = CW_REAL(cuMemImportFromShareableHandle)(handle, osHandle, shHandleType);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? *handle : 0;
    block = cw_call_allocated(&call, rc, CW_SCOPE_CURRENT, &request);
    if (rc == CUDA_SUCCESS)
        cw_vmm_insert(*handle, block);
    return rc;
}

CW_EXPORT CUresult cuMemExportToShareableHandle(void *shareableHandle,
                                                CUmemGenericAllocationHandle handle,
                                                CUmemAllocationHandleType handleType,
                                                unsigned long long flags)
{
    CUresult rc = CW_REAL(cuMemExportToShareableHandle)(shareableHandle, handle, handleType, flags);

    if (rc == CUDA_SUCCESS && cw_session_is_armed())
        cw_vmm_export(handle);
    return rc;
}

CW_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUresult rc = CW_REAL(cuMemRetainAllocationHandle)(handle, addr);

    if (rc == CUDA_SUCCESS && cw_session_is_armed())
        cw_vmm_retain(*handle, (uint64_t)(uintptr_t)addr);
    return rc;
}

CW_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct cw_request_free unknown = {.space = CW_SPACE_HANDLE, .key = handle};
    struct cw_vmm_release release;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemRelease, CW_CALLER))
        return CW_REAL(cuMemRelease)(handle);
    cw_vmm_release_begin(handle, &release);
    rc = CW_REAL(cuMemRelease)(handle);
    if (cw_vmm_release_finish(&release, cw_call_free_result(rc) == CW_FREE_DONE) &&
        rc == CUDA_SUCCESS)
        cw_call_leave();
    else
        cw_call_freed(&call, rc, &unknown);
    return rc;
}

CW_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemMap, CW_CALLER))
        return CW_REAL(cuMemMap)(ptr, size, offset, handle, flags);
    do
        rc = CW_REAL(cuMemMap)(ptr, size, offset, handle, flags);
    while (cw_call_again(&call, rc));
    if (rc == CUDA_SUCCESS)
        cw_vmm_map(ptr, size, offset, handle);
    cw_call_leave();
    cw_call_note(CW_HOOK_cuMemMap, rc, CW_CALLER);
    return rc;
}

CW_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct cw_vmm_unmap unmap;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemUnmap, CW_CALLER))
        return CW_REAL(cuMemUnmap)(ptr, size);
    if (cw_guard_is_on(CW_GUARD_PREFETCH))
        cw_api_prefetch_leaving(ptr, size);
    cw_vmm_unmap_begin(ptr, size, &unmap);
    rc = CW_REAL(cuMemUnmap)(ptr, size);
    cw_vmm_unmap_finish(&unmap, cw_call_free_result(rc) == CW_FREE_DONE);
    cw_call_leave();
    return rc;
}

CW_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                       CUdeviceptr addr, unsigned long long flags)
{
    struct cw_request request = {
        .space = CW_SPACE_RESERVATION, .kind = CW_KIND_RESERVATION, .bytes = size};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAddressReserve, CW_CALLER))
        return CW_REAL(cuMemAddressReserve)(ptr, size, alignment, addr, flags);
    do
        rc = CW_REAL(cuMemAddressReserve)(ptr, size, alignment, addr, flags);
    while (cw_call_again(&call, rc));
    request.key = rc == CUDA_SUCCESS ? *ptr : 0;
    cw_call_allocated(&call, rc, CW_SCOPE_CURRENT, &request);
    return rc;
}

/* Addresses without memory: nothing waits for work. */
CW_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    struct cw_request_free freed;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMemAddressFree, CW_CALLER))
        return CW_REAL(cuMemAddressFree)(ptr, size);
    cw_request_free_begin(CW_SPACE_RESERVATION, ptr, &freed);
    rc = CW_REAL(cuMemAddressFree)(ptr, size);
    cw_call_freed(&call, rc, &freed);
    return rc;
}
