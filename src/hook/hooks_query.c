/* SPDX-License-Identifier: MIT */
/* Bodies of families RESOLVE and QUERY, and of NVML's. */
#include "hook/call.h"

#include "hook/entry.h"
#include "hook/nvml_types.h"
#include "hook/resolve.h"

/* ---- resolution --------------------------------------------------------------------------------
 */

CW_EXPORT CUresult cuInit(unsigned int Flags)
{
    CUresult rc = CW_REAL(cuInit)(Flags);

    if (rc == CUDA_SUCCESS)
        cw_entry_arm();
    return rc;
}

/* The 4-argument form; asked for as "cuGetProcAddress" up to version 11.8. */
CW_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
                                    cuuint64_t flags)
{
    CUresult rc = CW_REAL(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);

    if (rc == CUDA_SUCCESS && pfn != NULL && *pfn != NULL)
        *pfn = cw_resolve_substitute(*pfn, symbol, cudaVersion, flags);
    return rc;
}

CW_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                       cuuint64_t flags,
                                       CUdriverProcAddressQueryResult *symbolStatus)
{
    CUresult rc = CW_REAL(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);

    if (rc == CUDA_SUCCESS && pfn != NULL && *pfn != NULL)
        *pfn = cw_resolve_substitute(*pfn, symbol, cudaVersion, flags);
    return rc;
}

/* ---- memory use --------------------------------------------------------------------------------
 */

CW_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CUresult rc = CW_REAL(cuMemGetInfo_v2)(free, total);

    if (rc == CUDA_SUCCESS && free != NULL && total != NULL && cw_session_is_armed())
        cw_request_sampled(*free, *total);
    else if (rc != CUDA_SUCCESS)
        cw_call_observe(CW_HOOK_cuMemGetInfo_v2, rc);
    return rc;
}

/* 32-bit sizes: they wrap on today's devices and tell us nothing. */
CW_EXPORT CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    return CW_REAL(cuMemGetInfo)(free, total);
}

CW_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    return CW_REAL(cuDeviceTotalMem_v2)(bytes, dev);
}

CW_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    return CW_REAL(cuDeviceTotalMem)(bytes, dev);
}

CW_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    return CW_REAL(cuMemGetAddressRange_v2)(pbase, psize, dptr);
}

CW_EXPORT CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize,
                                        CUdeviceptr_v1 dptr)
{
    return CW_REAL(cuMemGetAddressRange)(pbase, psize, dptr);
}

CW_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    return CW_REAL(cuPointerGetAttribute)(data, attribute, ptr);
}

CW_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes,
                                          CUpointer_attribute *attributes, void **data,
                                          CUdeviceptr ptr)
{
    return CW_REAL(cuPointerGetAttributes)(numAttributes, attributes, data, ptr);
}

/* NVML's answers are the device's own; a limit will change that. */
CW_EXPORT int nvmlDeviceGetMemoryInfo(void *device, void *memory)
{
    return CW_REAL(nvmlDeviceGetMemoryInfo)(device, memory);
}

CW_EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, void *memory)
{
    return CW_REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
}
