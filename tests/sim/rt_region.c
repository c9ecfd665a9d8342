/* SPDX-License-Identifier: MIT */
/* From the runtime's descriptions of a copy to the driver's. */
#include "rt.h"

void rt_set_types(CUDA_MEMCPY3D_v2 *region, enum cudaMemcpyKind kind)
{
    static const struct {
        CUmemorytype from, to;
    } types[] = {
        [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
        [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
        [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED},
    };

    region->srcMemoryType = region->srcArray ? CU_MEMORYTYPE_ARRAY : types[kind].from;
    region->dstMemoryType = region->dstArray ? CU_MEMORYTYPE_ARRAY : types[kind].to;
}

CUDA_MEMCPY3D_v2 rt_plane(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                          size_t width, size_t height)
{
    CUDA_MEMCPY3D_v2 region = {
        .srcHost = from,
        .srcDevice = (CUdeviceptr)from,
        .srcPitch = from_pitch,
        .dstHost = to,
        .dstDevice = (CUdeviceptr)to,
        .dstPitch = to_pitch,
        .WidthInBytes = width,
        .Height = height,
        .Depth = 1,
    };

    return region;
}

static size_t element_of(cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 desc;

    if (!array || RT->cuArray3DGetDescriptor_v2(&desc, (CUarray)array) != CUDA_SUCCESS)
        return 1;
    switch (desc.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return desc.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * desc.NumChannels;
    default:
        return 4 * desc.NumChannels;
    }
}

CUDA_MEMCPY3D_v2 rt_region(const struct cudaMemcpy3DParms *params)
{
    size_t unit = element_of(params->srcArray ? params->srcArray : params->dstArray);
    CUDA_MEMCPY3D_v2 region =
        rt_plane(params->dstPtr.ptr, params->dstPtr.pitch, params->srcPtr.ptr, params->srcPtr.pitch,
                 params->extent.width * unit, params->extent.height);

    region.srcHeight = params->srcPtr.ysize;
    region.dstHeight = params->dstPtr.ysize;
    region.srcArray = (CUarray)params->srcArray;
    region.dstArray = (CUarray)params->dstArray;
    region.srcXInBytes = params->srcPos.x * (params->srcArray ? unit : 1);
    region.srcY = params->srcPos.y;
    region.srcZ = params->srcPos.z;
    region.dstXInBytes = params->dstPos.x * (params->dstArray ? unit : 1);
    region.dstY = params->dstPos.y;
    region.dstZ = params->dstPos.z;
    region.Depth = params->extent.depth;
    rt_set_types(&region, params->kind);
    return region;
}
