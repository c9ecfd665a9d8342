/* SPDX-License-Identifier: MIT */
/* The runtime functions that take stream 0 for something: copies, fills, waits, launches.
 *
 * Compiled as it is for the legacy stream, and through rt_work_ptds.c for per-thread streams, where
 * the header appends _ptds or _ptsz to the names.
 */
#include "rt.h"

#include <string.h>

#define CALL(call) (rt_begin() == cudaSuccess ? rt_end(RT->call) : cudaPeekAtLastError())

cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream)
{
    if (!out)
        return rt_note(cudaErrorInvalidValue);
    *out = NULL;
    return size ? CALL(cuMemAllocAsync((CUdeviceptr *)out, size, stream)) : rt_begin();
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    return CALL(cuMemAllocFromPoolAsync((CUdeviceptr *)out, size, (CUmemoryPool)pool, stream));
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    return pointer ? CALL(cuMemFreeAsync((CUdeviceptr)pointer, stream)) : rt_begin();
}

/* ---- copies ---- */

cudaError_t cudaMemcpy(void *to, const void *from, size_t count, enum cudaMemcpyKind kind)
{
    CUdeviceptr target = (CUdeviceptr)to, source = (CUdeviceptr)from;

    switch (kind) {
    case cudaMemcpyHostToDevice:
        return CALL(cuMemcpyHtoD_v2(target, from, count));
    case cudaMemcpyDeviceToHost:
        return CALL(cuMemcpyDtoH_v2(to, source, count));
    case cudaMemcpyDeviceToDevice:
        return CALL(cuMemcpyDtoD_v2(target, source, count));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return CALL(cuMemcpy(target, source, count));
    default:
        return rt_note(cudaErrorInvalidMemcpyDirection);
    }
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    CUdeviceptr target = (CUdeviceptr)to, source = (CUdeviceptr)from;

    switch (kind) {
    case cudaMemcpyHostToDevice:
        return CALL(cuMemcpyHtoDAsync_v2(target, from, count, stream));
    case cudaMemcpyDeviceToHost:
        return CALL(cuMemcpyDtoHAsync_v2(to, source, count, stream));
    case cudaMemcpyDeviceToDevice:
        return CALL(cuMemcpyDtoDAsync_v2(target, source, count, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return CALL(cuMemcpyAsync(target, source, count, stream));
    default:
        return rt_note(cudaErrorInvalidMemcpyDirection);
    }
}

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM /* these two have no second flavour */
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t count)
{
    (void)to_device, (void)from_device;
    return CALL(cuMemcpyPeer((CUdeviceptr)to, NULL, (CUdeviceptr)from, NULL, count));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t count, cudaStream_t stream)
{
    (void)to_device, (void)from_device;
    return CALL(cuMemcpyPeerAsync((CUdeviceptr)to, NULL, (CUdeviceptr)from, NULL, count, stream));
}
#endif

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 region = rt_plane(to, to_pitch, from, from_pitch, width, height);

    rt_set_types(&region, kind);
    return CALL(cuMemcpy3D_v2(&region));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    CUDA_MEMCPY3D_v2 region = rt_plane(to, to_pitch, from, from_pitch, width, height);

    rt_set_types(&region, kind);
    return CALL(cuMemcpy3DAsync_v2(&region, stream));
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 region = rt_plane(NULL, 0, from, pitch, width, height);

    region.dstArray = (CUarray)to;
    region.dstXInBytes = x;
    region.dstY = y;
    rt_set_types(&region, kind);
    return CALL(cuMemcpy3D_v2(&region));
}

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 region = rt_plane(to, pitch, NULL, 0, width, height);

    region.srcArray = (CUarray)from;
    region.srcXInBytes = x;
    region.srcY = y;
    rt_set_types(&region, kind);
    return CALL(cuMemcpy3D_v2(&region));
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D_v2 region;
    cudaError_t status = rt_begin();

    if (status != cudaSuccess)
        return status;
    region = rt_region(params);
    return rt_end(RT->cuMemcpy3D_v2(&region));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *params, cudaStream_t stream)
{
    CUDA_MEMCPY3D_v2 region;
    cudaError_t status = rt_begin();

    if (status != cudaSuccess)
        return status;
    region = rt_region(params);
    return rt_end(RT->cuMemcpy3DAsync_v2(&region, stream));
}

cudaError_t cudaMemset(void *pointer, int value, size_t count)
{
    return CALL(cuMemsetD8_v2((CUdeviceptr)pointer, (unsigned char)value, count));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t count, cudaStream_t stream)
{
    return CALL(cuMemsetD8Async((CUdeviceptr)pointer, (unsigned char)value, count, stream));
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
    return CALL(cuMemsetD2D8_v2((CUdeviceptr)pointer, pitch, (unsigned char)value, width, height));
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    return CALL(cuMemsetD2D8Async((CUdeviceptr)pointer, pitch, (unsigned char)value, width, height,
                                  stream));
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent)
{
    return cudaMemset2D(pitched.ptr, pitched.pitch, value, extent.width,
                        extent.height * extent.depth);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
                              cudaStream_t stream)
{
    return cudaMemset2DAsync(pitched.ptr, pitched.pitch, value, extent.width,
                             extent.height * extent.depth, stream);
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t count, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};

    return CALL(cuMemPrefetchAsync_v2((CUdeviceptr)pointer, count, where, flags, stream));
}

/* ---- streams and events ---- */

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return CALL(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return CALL(cuStreamQuery(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return CALL(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void *argument, unsigned int flags)
{
    return CALL(cuStreamAddCallback(stream, (CUstreamCallback)(void *)callback, argument, flags));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    return CALL(cuLaunchHostFunc(stream, function, argument));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    return CALL(cuStreamGetFlags(stream, flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    return CALL(cuStreamGetPriority(stream, priority));
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    return CALL(cuStreamGetId(stream, id));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return CALL(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *deps,
                                          const cudaGraphEdgeData *edges, size_t ndeps,
                                          enum cudaStreamCaptureMode mode)
{
    return CALL(cuStreamBeginCaptureToGraph(stream, graph, deps, (const CUgraphEdgeData *)edges,
                                            ndeps, (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *deps,
                                                const cudaGraphEdgeData *edges, size_t ndeps,
                                                unsigned int flags)
{
    return CALL(cuStreamUpdateCaptureDependencies_v2(stream, deps, (const CUgraphEdgeData *)edges,
                                                     ndeps, flags));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    return CALL(cuStreamEndCapture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    return CALL(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
                                     size_t *ndeps)
{
    return CALL(cuStreamGetCaptureInfo_v3(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id,
                                          graph, deps, (const CUgraphEdgeData **)edges, ndeps));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return CALL(cuEventRecord(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return CALL(cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return CALL(cuGraphLaunch(exec, stream));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    return CALL(cuGraphUpload(exec, stream));
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream)
{
    CUfunction found = rt_function(function);

    if (!found)
        return rt_note(cudaErrorInvalidDeviceFunction);
    return CALL(cuLaunchKernel(found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                               (unsigned)shared, stream, arguments, NULL));
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared, cudaStream_t stream)
{
    CUfunction found = rt_function(function);

    if (!found)
        return rt_note(cudaErrorInvalidDeviceFunction);
    return CALL(cuLaunchCooperativeKernel(found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                          (unsigned)shared, stream, arguments));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments)
{
    CUfunction found = rt_function(function);
    CUlaunchConfig same;

    if (!config)
        return rt_note(cudaErrorInvalidValue);
    if (!found)
        return rt_note(cudaErrorInvalidDeviceFunction);
    same = (CUlaunchConfig){
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = (CUlaunchAttribute *)config->attrs,
        .numAttrs = config->numAttrs,
    };
    return CALL(cuLaunchKernelEx(&same, found, arguments, NULL));
}

/* ---- the driver's functions ---- */

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned int version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    cudaError_t loaded = rt_load();

    if (loaded != cudaSuccess)
        return rt_note(loaded);
    if (!symbol || !out)
        return rt_note(cudaErrorInvalidValue);
    *out = NULL;
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    if (flags == 0)
        flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
#endif
    RT->cuGetProcAddress_v2(symbol, out, (int)version, flags, &status);
    if (result)
        *result = (enum cudaDriverEntryPointQueryResult)status;
    if (*out || result)
        return cudaSuccess;
    return rt_note(cudaErrorSymbolNotFound);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    return cudaGetDriverEntryPointByVersion(symbol, out, CUDART_VERSION, flags, result);
}
