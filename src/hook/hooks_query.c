/* SPDX-License-Identifier: MIT */
/* Bodies of families RESOLVE and QUERY, and of NVML's. */
#include "core/context.h"
#include "core/keep.h"
#include "hook/pooled.h"

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

/* What the pool keeps is free for the program: it gets it back at its next request. */
static void add_idle(size_t *free, size_t total)
{
    uint8_t device;
    uint64_t idle;

    if (!cw_pool_is_on() || cw_context_current(&device) == 0)
        return;
    idle = cw_keep_idle(device);
    *free = *free + idle < total ? *free + idle : total;
}

CW_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CUresult rc = CW_REAL(cuMemGetInfo_v2)(free, total);

    if (rc == CUDA_SUCCESS && free != NULL && total != NULL && cw_session_is_armed() &&
        cw_thread.depth == 0) {
        cw_request_sampled(*free, *total);
        add_idle(free, *total);
    } else if (rc != CUDA_SUCCESS)
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

/* A pooled block is larger than what was asked for: the program is told what it asked for. Of a
 * block that it has freed the driver shall say what it says of memory that is nobody's. */
CW_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct cw_pool_view block;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult rc;

    if (!cw_session_is_armed() || !cw_pool_is_on())
        return CW_REAL(cuMemGetAddressRange_v2)(pbase, psize, dptr);
    rc = CW_REAL(cuMemGetAddressRange_v2)(&base, &bytes, dptr);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (cw_pool_look(base, &block)) {
        if (block.bytes == 0)
            return CW_REAL(cuMemGetAddressRange_v2)(pbase, psize, CW_NOBODYS_ADDRESS);
        bytes = block.bytes;
    }
    if (pbase != NULL)
        *pbase = base;
    if (psize != NULL)
        *psize = bytes;
    return rc;
}

CW_EXPORT CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize,
                                        CUdeviceptr_v1 dptr)
{
    return CW_REAL(cuMemGetAddressRange)(pbase, psize, dptr);
}

/* A block that served before has the identity that the driver gave its memory; for the program it
 * is another allocation. Numbers of our own have the top bit set, which the driver's count never
 * reaches. */
static unsigned long long buffer_id(const struct cw_pool_view *block, unsigned long long drivers)
{
    return block->reuses == 0 ? drivers
                              : 1ull << 63 | (unsigned long long)block->reuses << 32 | block->block;
}

static int find_block(CUdeviceptr ptr, struct cw_pool_view *out)
{
    CUdeviceptr base = 0;

    if (cw_pool_look(ptr, out))
        return 1;
    return CW_REAL(cuMemGetAddressRange_v2)(&base, NULL, ptr) == CUDA_SUCCESS &&
           cw_pool_look(base, out);
}

/* What the driver has answered, in terms of the program's own allocation. */
static void correct_attribute(CUpointer_attribute attribute, void *data, CUdeviceptr ptr)
{
    struct cw_pool_view block;

    if (!cw_pool_is_on())
        return;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        if (find_block(ptr, &block) && block.bytes != 0)
            *(size_t *)data = block.bytes;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        if (find_block(ptr, &block))
            *(unsigned long long *)data = buffer_id(&block, *(unsigned long long *)data);
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* sets SYNC_MEMOPS on the way */
        cw_pooled_export(ptr);
        break;
    default:
        break;
    }
}

/* The address to ask the driver about. Only the start of a freed block is recognised: to find that
 * of another address takes a call, and programs ask about live memory all the time. */
static CUdeviceptr hide_freed(CUdeviceptr ptr)
{
    struct cw_pool_view block;

    if (cw_session_is_armed() && cw_pool_look(ptr, &block) && block.bytes == 0)
        return CW_NOBODYS_ADDRESS;
    return ptr;
}

CW_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult rc;

    ptr = hide_freed(ptr);
    rc = CW_REAL(cuPointerGetAttribute)(data, attribute, ptr);
    if (rc == CUDA_SUCCESS && data != NULL && cw_session_is_armed())
        correct_attribute(attribute, data, ptr);
    return rc;
}

CW_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes,
                                          CUpointer_attribute *attributes, void **data,
                                          CUdeviceptr ptr)
{
    CUresult rc;

    ptr = hide_freed(ptr);
    rc = CW_REAL(cuPointerGetAttributes)(numAttributes, attributes, data, ptr);
    if (rc != CUDA_SUCCESS || !cw_session_is_armed())
        return rc;
    for (unsigned i = 0; i < numAttributes; i++)
        if (data[i] != NULL)
            correct_attribute(attributes[i], data[i], ptr);
    return rc;
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
