/* SPDX-License-Identifier: MIT */
/* Texture and surface objects of the runtime. */
#include "rt.h"

#define CALL(call) (rt_begin() == cudaSuccess ? rt_end(RT->call) : cudaPeekAtLastError())

/* Kinds of resources have the same numbers on both sides. */
static CUDA_RESOURCE_DESC resource_of(const struct cudaResourceDesc *desc)
{
    CUDA_RESOURCE_DESC result = {.resType = (CUresourcetype)desc->resType};

    switch (desc->resType) {
    case cudaResourceTypeArray:
        result.res.array.hArray = (CUarray)desc->res.array.array;
        break;
    case cudaResourceTypeMipmappedArray:
        result.res.mipmap.hMipmappedArray = (CUmipmappedArray)desc->res.mipmap.mipmap;
        break;
    case cudaResourceTypeLinear:
        result.res.linear.devPtr = (CUdeviceptr)desc->res.linear.devPtr;
        result.res.linear.sizeInBytes = desc->res.linear.sizeInBytes;
        break;
    default:
        result.res.pitch2D.devPtr = (CUdeviceptr)desc->res.pitch2D.devPtr;
        result.res.pitch2D.width = desc->res.pitch2D.width;
        result.res.pitch2D.height = desc->res.pitch2D.height;
        result.res.pitch2D.pitchInBytes = desc->res.pitch2D.pitchInBytes;
        break;
    }
    return result;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const struct cudaResourceDesc *desc,
                                    const struct cudaTextureDesc *texture,
                                    const struct cudaResourceViewDesc *view)
{
    CUDA_TEXTURE_DESC how = {0};
    CUDA_RESOURCE_DESC what;

    if (!out || !desc || !texture)
        return rt_note(cudaErrorInvalidValue);
    if (view)
        return rt_note(cudaErrorNotSupported);
    what = resource_of(desc);
    for (int i = 0; i < 3; i++)
        how.addressMode[i] = (CUaddress_mode)texture->addressMode[i];
    how.filterMode = (CUfilter_mode)texture->filterMode;
    how.flags = (texture->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
                (texture->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0);
    return CALL(cuTexObjectCreate(out, &what, &how, NULL));
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object)
{
    return CALL(cuTexObjectDestroy(object));
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const struct cudaResourceDesc *desc)
{
    CUDA_RESOURCE_DESC what;

    if (!out || !desc)
        return rt_note(cudaErrorInvalidValue);
    if (desc->resType != cudaResourceTypeArray)
        return rt_note(cudaErrorInvalidValue);
    what = resource_of(desc);
    return CALL(cuSurfObjectCreate(out, &what));
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object)
{
    return CALL(cuSurfObjectDestroy(object));
}
