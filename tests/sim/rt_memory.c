/* SPDX-License-Identifier: MIT */
/* Allocation and its kin in the stand-in runtime, and what else does not depend on stream 0. */
#include "rt.h"

#include <string.h>

#define CALL(call) (rt_begin() == cudaSuccess ? rt_end(RT->call) : cudaPeekAtLastError())

cudaError_t cudaMalloc(void **out, size_t size)
{
    if (!out)
        return rt_note(cudaErrorInvalidValue);
    *out = NULL;
    if (size == 0) /* the runtime, unlike the driver, allows it */
        return rt_begin();
    return CALL(cuMemAlloc_v2((CUdeviceptr *)out, size));
}

cudaError_t cudaFree(void *pointer)
{
    return pointer ? CALL(cuMemFree_v2((CUdeviceptr)pointer)) : rt_begin();
}

cudaError_t cudaMallocHost(void **out, size_t size)
{
    return cudaHostAlloc(out, size, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int flags)
{
    if (!out)
        return rt_note(cudaErrorInvalidValue);
    *out = NULL;
    if (size == 0)
        return rt_begin();
    return CALL(cuMemHostAlloc(out, size, flags | CU_MEMHOSTALLOC_PORTABLE));
}

cudaError_t cudaFreeHost(void *pointer)
{
    return pointer ? CALL(cuMemFreeHost(pointer)) : rt_begin();
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int flags)
{
    return CALL(cuMemHostRegister_v2(pointer, size, flags));
}

cudaError_t cudaHostUnregister(void *pointer)
{
    return CALL(cuMemHostUnregister(pointer));
}

cudaError_t cudaHostGetDevicePointer(void **out, void *pointer, unsigned int flags)
{
    return CALL(cuMemHostGetDevicePointer_v2((CUdeviceptr *)out, pointer, flags));
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *pointer)
{
    return CALL(cuMemHostGetFlags(flags, pointer));
}

cudaError_t cudaMallocManaged(void **out, size_t size, unsigned int flags)
{
    return CALL(cuMemAllocManaged((CUdeviceptr *)out, size, flags));
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    return CALL(cuMemAllocPitch_v2((CUdeviceptr *)out, pitch, width, height, 4));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    cudaError_t status =
        cudaMallocPitch(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth);

    out->xsize = extent.width;
    out->ysize = extent.height;
    return status;
}

/* ---- arrays ---- */

static CUarray_format format_of(const struct cudaChannelFormatDesc *desc)
{
    if (desc->f == cudaChannelFormatKindFloat)
        return desc->x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    if (desc->f == cudaChannelFormatKindSigned)
        return desc->x == 8    ? CU_AD_FORMAT_SIGNED_INT8
               : desc->x == 16 ? CU_AD_FORMAT_SIGNED_INT16
                               : CU_AD_FORMAT_SIGNED_INT32;
    return desc->x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
           : desc->x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                           : CU_AD_FORMAT_UNSIGNED_INT32;
}

static CUDA_ARRAY3D_DESCRIPTOR_v2 array_desc(const struct cudaChannelFormatDesc *desc,
                                             struct cudaExtent extent, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 result = {
        .Width = extent.width,
        .Height = extent.height,
        .Depth = extent.depth,
        .Format = format_of(desc),
        .NumChannels = desc->w   ? 4
                       : desc->y ? 2
                                 : 1,
        .Flags = flags,
    };

    return result;
}

cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc,
                            size_t width, size_t height, unsigned int flags)
{
    CUDA_ARRAY_DESCRIPTOR_v2 flat = {.Width = width, .Height = height};

    if (!out || !desc)
        return rt_note(cudaErrorInvalidValue);
    if (flags)
        return cudaMalloc3DArray(out, desc, (struct cudaExtent){width, height, 0}, flags);
    flat.Format = format_of(desc);
    flat.NumChannels = desc->w ? 4 : desc->y ? 2 : 1;
    return CALL(cuArrayCreate_v2((CUarray *)out, &flat));
}

cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc,
                              struct cudaExtent extent, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 full;

    if (!out || !desc)
        return rt_note(cudaErrorInvalidValue);
    full = array_desc(desc, extent, flags);
    return CALL(cuArray3DCreate_v2((CUarray *)out, &full));
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    return array ? CALL(cuArrayDestroy((CUarray)array)) : rt_begin();
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out,
                                     const struct cudaChannelFormatDesc *desc,
                                     struct cudaExtent extent, unsigned int levels,
                                     unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 full;

    if (!out || !desc)
        return rt_note(cudaErrorInvalidValue);
    full = array_desc(desc, extent, flags);
    return CALL(cuMipmappedArrayCreate((CUmipmappedArray *)out, &full, levels));
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_const_t array,
                                       unsigned int level)
{
    return CALL(cuMipmappedArrayGetLevel((CUarray *)out, (CUmipmappedArray)array, level));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
    return array ? CALL(cuMipmappedArrayDestroy((CUmipmappedArray)array)) : rt_begin();
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind f)
{
    struct cudaChannelFormatDesc desc = {x, y, z, w, f};

    return desc;
}

/* ---- queries ---- */

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    return CALL(cuMemGetInfo_v2(available, total));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *pointer)
{
    unsigned type = 0, is_managed = 0;
    int device = 0;
    CUdeviceptr on_device = 0;
    void *on_host = NULL;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,
    };
    void *data[] = {&type, &is_managed, &device, &on_device, &on_host};
    cudaError_t status;

    if (!out)
        return rt_note(cudaErrorInvalidValue);
    status = CALL(cuPointerGetAttributes(5, wanted, data, (CUdeviceptr)pointer));
    if (status != cudaSuccess)
        return status;
    memset(out, 0, sizeof *out);
    out->type = is_managed                   ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                : type                       ? cudaMemoryTypeDevice
                                             : cudaMemoryTypeUnregistered;
    out->device = type ? device : -2;
    out->devicePointer = (void *)on_device;
    out->hostPointer = type ? on_host : (void *)pointer;
    return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *pointer, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};

    return CALL(cuMemAdvise_v2((CUdeviceptr)pointer, count, (CUmem_advise)advice, where));
}

/* ---- pools ---- */

cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *props)
{
    return CALL(cuMemPoolCreate((CUmemoryPool *)out, (const CUmemPoolProps *)props));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return CALL(cuMemPoolDestroy((CUmemoryPool)pool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    return CALL(cuMemPoolTrimTo((CUmemoryPool)pool, keep));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return CALL(cuMemPoolGetAttribute((CUmemoryPool)pool, (CUmemPool_attribute)attribute, value));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return CALL(cuMemPoolSetAttribute((CUmemoryPool)pool, (CUmemPool_attribute)attribute, value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *map,
                                 size_t count)
{
    return CALL(cuMemPoolSetAccess((CUmemoryPool)pool, (const CUmemAccessDesc *)map, count));
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location)
{
    return CALL(cuMemPoolGetAccess((CUmemAccess_flags *)flags, (CUmemoryPool)pool,
                                   (CUmemLocation *)location));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device)
{
    return CALL(cuDeviceGetDefaultMemPool((CUmemoryPool *)out, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int device)
{
    return CALL(cuDeviceGetMemPool((CUmemoryPool *)out, device));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return CALL(cuDeviceSetMemPool(device, (CUmemoryPool)pool));
}

/* ---- other processes ---- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *pointer)
{
    return CALL(cuIpcGetMemHandle((CUipcMemHandle *)out, (CUdeviceptr)pointer));
}

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle same;

    memcpy(&same, &handle, sizeof same);
    return CALL(cuIpcOpenMemHandle_v2((CUdeviceptr *)out, same, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    return CALL(cuIpcCloseMemHandle((CUdeviceptr)pointer));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event)
{
    return CALL(cuIpcGetEventHandle((CUipcEventHandle *)out, event));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle same;

    memcpy(&same, &handle, sizeof same);
    return CALL(cuIpcOpenEventHandle(out, same));
}

/* ---- graphics ---- */

cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t *out, unsigned int buffer,
                                         unsigned int flags)
{
    return CALL(cuGraphicsGLRegisterBuffer((CUgraphicsResource *)out, buffer, flags));
}

cudaError_t cudaGraphicsUnregisterResource(cudaGraphicsResource_t resource)
{
    return CALL(cuGraphicsUnregisterResource((CUgraphicsResource)resource));
}

cudaError_t cudaGraphicsResourceGetMappedPointer(void **out, size_t *bytes,
                                                 cudaGraphicsResource_t resource)
{
    return CALL(cuGraphicsResourceGetMappedPointer_v2((CUdeviceptr *)out, bytes,
                                                      (CUgraphicsResource)resource));
}

cudaError_t cudaGraphicsMapResources(int count, cudaGraphicsResource_t *resources,
                                     cudaStream_t stream)
{
    return CALL(cuGraphicsMapResources((unsigned)count, (CUgraphicsResource *)resources, stream));
}

cudaError_t cudaGraphicsUnmapResources(int count, cudaGraphicsResource_t *resources,
                                       cudaStream_t stream)
{
    return CALL(cuGraphicsUnmapResources((unsigned)count, (CUgraphicsResource *)resources, stream));
}

/* ---- streams and events: what is the same for both meanings of stream 0 ---- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags, int priority)
{
    return CALL(cuStreamCreateWithPriority(out, flags, priority));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithPriority(out, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return CALL(cuStreamDestroy_v2(stream));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    return CALL(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
    return CALL(cuEventCreate(out, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return CALL(cuEventDestroy_v2(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return CALL(cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return CALL(cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return CALL(cuEventElapsedTime(milliseconds, start, end));
}

/* ---- graphs ---- */

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned int flags)
{
    return CALL(cuGraphCreate(out, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return CALL(cuGraphDestroy(graph));
}

cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph)
{
    return CALL(cuGraphClone(out, graph));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    return CALL(cuGraphGetNodes(graph, nodes, n));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    return CALL(cuGraphNodeGetType(node, (CUgraphNodeType *)type));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                  const cudaGraphNode_t *deps, size_t ndeps)
{
    return CALL(cuGraphAddEmptyNode(out, graph, deps, ndeps));
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                     const cudaGraphNode_t *deps, size_t ndeps,
                                     struct cudaMemAllocNodeParams *params)
{
    _Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
                   "the runtime's structure is the driver's");
    return CALL(
        cuGraphAddMemAllocNode(out, graph, deps, ndeps, (CUDA_MEM_ALLOC_NODE_PARAMS *)params));
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                    const cudaGraphNode_t *deps, size_t ndeps, void *pointer)
{
    return CALL(cuGraphAddMemFreeNode(out, graph, deps, ndeps, (CUdeviceptr)pointer));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    return CALL(cuGraphInstantiateWithFlags(out, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return CALL(cuGraphExecDestroy(exec));
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value)
{
    return CALL(cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value)
{
    return CALL(cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
    return CALL(cuDeviceGraphMemTrim(device));
}
