/* SPDX-License-Identifier: MIT */
/* Bodies of families ALLOC and FREE: arrays and mipmapped arrays. */
#include "hook/bodies/call.h"

static uint64_t texel_size(CUarray_format format, unsigned channels)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2ull * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4ull * channels;
    default: /* 8-bit formats; block-compressed ones are counted as such, an upper bound */
        return channels ? channels : 1;
    }
}

static uint64_t at_least_one(uint64_t n)
{
    return n ? n : 1;
}

static uint64_t size_3d(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (d == NULL)
        return 0;
#ifdef CUDA_ARRAY3D_DEFERRED_MAPPING
    /* Memory comes later, from virtual memory handles that are counted themselves. */
    if (d->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        return 0;
#endif
    if (d->Flags & CUDA_ARRAY3D_SPARSE)
        return 0;
    return d->Width * at_least_one(d->Height) * at_least_one(d->Depth) *
           texel_size(d->Format, d->NumChannels);
}

static unsigned max_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    uint64_t largest = d->Width | d->Height | 1;

    if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        largest |= d->Depth;
    return 64 - (unsigned)__builtin_clzll(largest);
}

static uint64_t size_mipmapped(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
    CUDA_ARRAY3D_DESCRIPTOR level;
    uint64_t sum = 0;

    if (d == NULL)
        return 0;
    level = *d;
    /* The driver clamps to 1 + floor(log2(largest dimension)) (cuda.h, cuMipmappedArrayCreate). */
    if (levels > max_levels(d))
        levels = max_levels(d);
    for (unsigned i = 0; i < levels; i++) {
        sum += size_3d(&level);
        level.Width = at_least_one(level.Width / 2);
        level.Height = level.Height ? at_least_one(level.Height / 2) : 0;
        /* The depth of layered arrays and cubemaps counts layers, which do not shrink. */
        if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
            level.Depth = level.Depth ? at_least_one(level.Depth / 2) : 0;
    }
    return sum;
}

static uint64_t handle_of(CUresult rc, const void *p)
{
    return rc == CUDA_SUCCESS && p != NULL ? (uint64_t)(uintptr_t) * (void *const *)p : 0;
}

/* The two ABIs of a descriptor differ in the width of their sizes only. */
CW_EXPORT CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    struct cw_request request = {.space = CW_SPACE_ARRAY, .kind = CW_KIND_ARRAY};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuArrayCreate_v2, CW_CALLER))
        return CW_REAL(cuArrayCreate_v2)(pHandle, pAllocateArray);
    if (pAllocateArray != NULL)
        request.bytes = pAllocateArray->Width * at_least_one(pAllocateArray->Height) *
                        texel_size(pAllocateArray->Format, pAllocateArray->NumChannels);
    do
        rc = cw_call_may_here(&call, request.bytes)
                 ? CW_REAL(cuArrayCreate_v2)(pHandle, pAllocateArray)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = handle_of(rc, pHandle);
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
    struct cw_request request = {.space = CW_SPACE_ARRAY, .kind = CW_KIND_ARRAY};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuArrayCreate, CW_CALLER))
        return CW_REAL(cuArrayCreate)(pHandle, pAllocateArray);
    if (pAllocateArray != NULL)
        request.bytes = (uint64_t)pAllocateArray->Width * at_least_one(pAllocateArray->Height) *
                        texel_size(pAllocateArray->Format, pAllocateArray->NumChannels);
    do
        rc = cw_call_may_here(&call, request.bytes)
                 ? CW_REAL(cuArrayCreate)(pHandle, pAllocateArray)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = handle_of(rc, pHandle);
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult cuArray3DCreate_v2(CUarray *pHandle,
                                      const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct cw_request request = {
        .space = CW_SPACE_ARRAY, .kind = CW_KIND_ARRAY, .bytes = size_3d(pAllocateArray)};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuArray3DCreate_v2, CW_CALLER))
        return CW_REAL(cuArray3DCreate_v2)(pHandle, pAllocateArray);
    do
        rc = cw_call_may_here(&call, request.bytes)
                 ? CW_REAL(cuArray3DCreate_v2)(pHandle, pAllocateArray)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = handle_of(rc, pHandle);
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult cuArray3DCreate(CUarray *pHandle,
                                   const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    struct cw_request request = {.space = CW_SPACE_ARRAY, .kind = CW_KIND_ARRAY};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuArray3DCreate, CW_CALLER))
        return CW_REAL(cuArray3DCreate)(pHandle, pAllocateArray);
    if (pAllocateArray != NULL)
        request.bytes = (uint64_t)pAllocateArray->Width * at_least_one(pAllocateArray->Height) *
                        at_least_one(pAllocateArray->Depth) *
                        texel_size(pAllocateArray->Format, pAllocateArray->NumChannels);
    do
        rc = cw_call_may_here(&call, request.bytes)
                 ? CW_REAL(cuArray3DCreate)(pHandle, pAllocateArray)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = handle_of(rc, pHandle);
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                          const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                          unsigned int numMipmapLevels)
{
    struct cw_request request = {.space = CW_SPACE_ARRAY,
                                 .kind = CW_KIND_MIPMAP,
                                 .bytes = size_mipmapped(pMipmappedArrayDesc, numMipmapLevels)};
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMipmappedArrayCreate, CW_CALLER))
        return CW_REAL(cuMipmappedArrayCreate)(pHandle, pMipmappedArrayDesc, numMipmapLevels);
    do
        rc = cw_call_may_here(&call, request.bytes)
                 ? CW_REAL(cuMipmappedArrayCreate)(pHandle, pMipmappedArrayDesc, numMipmapLevels)
                 : CUDA_ERROR_OUT_OF_MEMORY;
    while (cw_call_again(&call, rc));
    request.key = handle_of(rc, pHandle);
    cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CW_EXPORT CUresult cuArrayDestroy(CUarray hArray)
{
    struct cw_request_free freed;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuArrayDestroy, CW_CALLER))
        return CW_REAL(cuArrayDestroy)(hArray);
    cw_request_free_begin(CW_SPACE_ARRAY, (uint64_t)(uintptr_t)hArray, &freed);
    rc = CW_REAL(cuArrayDestroy)(hArray);
    cw_call_freed(&call, rc, &freed);
    return rc;
}

CW_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    struct cw_request_free freed;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuMipmappedArrayDestroy, CW_CALLER))
        return CW_REAL(cuMipmappedArrayDestroy)(hMipmappedArray);
    cw_request_free_begin(CW_SPACE_ARRAY, (uint64_t)(uintptr_t)hMipmappedArray, &freed);
    rc = CW_REAL(cuMipmappedArrayDestroy)(hMipmappedArray);
    cw_call_freed(&call, rc, &freed);
    return rc;
}
