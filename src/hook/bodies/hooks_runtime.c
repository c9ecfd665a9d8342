/* SPDX-License-Identifier: MIT */
/*
 * Functions of the CUDA runtime: they name the API for the report and call the runtime that the
 * caller's own module would have bound to; the driver layer below accounts for the memory.
 *
 * The version by which a module is bound says which runtime that is (runtime_versions.h); where
 * runtimes have none, the return address has to, and that of a tail call is another module's. Since
 * the names exist here, a weak reference to one of them is never null; without any runtime such a
 * call returns cudaErrorInitializationError.
 */
/* Declares the per-thread variants beside the legacy ones instead of renaming one to the other. */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda_runtime_api.h>

#include "base/compiler.h"
#include "hook/bodies/runtime.h"

#define CALLER __builtin_return_address(0)

/* The per-thread variants of stream-ordered functions have no declaration of their own. */
__typeof__(cudaMallocAsync) cudaMallocAsync_ptsz;
__typeof__(cudaMallocFromPoolAsync) cudaMallocFromPoolAsync_ptsz;
__typeof__(cudaFreeAsync) cudaFreeAsync_ptsz;
__typeof__(cudaGraphLaunch) cudaGraphLaunch_ptsz;

/* One body for each shape. Shapes differ in what they account for if no driver call was seen. */
#define ENTER(symbol) ((__typeof__(&symbol))cw_runtime_enter(&call, CW_RUNTIME_##symbol, CALLER))

#define NAMES(symbol, params, args)                                                                \
    CW_EXPORT cudaError_t symbol params                                                            \
    {                                                                                              \
        struct cw_runtime_call call;                                                               \
        cudaError_t rc = ENTER(symbol) args;                                                       \
                                                                                                   \
        cw_runtime_leave(&call);                                                                   \
        return rc;                                                                                 \
    }

#define ALLOCATES(symbol, kind, ptr, bytes, params, args)                                          \
    CW_EXPORT cudaError_t symbol params                                                            \
    {                                                                                              \
        struct cw_runtime_call call;                                                               \
        cudaError_t rc = ENTER(symbol) args;                                                       \
                                                                                                   \
        if (rc == cudaSuccess)                                                                     \
            cw_runtime_allocated(&call, kind, ptr, bytes);                                         \
        cw_runtime_leave(&call);                                                                   \
        return rc;                                                                                 \
    }

#define FREES(symbol, ptr, params, args)                                                           \
    CW_EXPORT cudaError_t symbol params                                                            \
    {                                                                                              \
        struct cw_runtime_call call;                                                               \
        __typeof__(&symbol) real = ENTER(symbol);                                                  \
        cudaError_t rc;                                                                            \
                                                                                                   \
        cw_runtime_free_begin(&call, ptr);                                                         \
        rc = real args;                                                                            \
        cw_runtime_free_end(&call, (int)rc);                                                       \
        cw_runtime_leave(&call);                                                                   \
        return rc;                                                                                 \
    }

/* ---- memory with an address ---- */

ALLOCATES(cudaMalloc, CW_KIND_DEVICE, *devPtr, size, (void **devPtr, size_t size), (devPtr, size))
ALLOCATES(cudaMallocPitch, CW_KIND_PITCHED, *devPtr, *pitch *height,
          (void **devPtr, size_t *pitch, size_t width, size_t height),
          (devPtr, pitch, width, height))
ALLOCATES(cudaMalloc3D, CW_KIND_PITCHED, pitchedDevPtr->ptr,
          pitchedDevPtr->pitch *extent.height *extent.depth,
          (struct cudaPitchedPtr * pitchedDevPtr, struct cudaExtent extent),
          (pitchedDevPtr, extent))
ALLOCATES(cudaMallocManaged, CW_KIND_MANAGED, *devPtr, size,
          (void **devPtr, size_t size, unsigned int flags), (devPtr, size, flags))
ALLOCATES(cudaMallocHost, CW_KIND_PINNED, *ptr, size, (void **ptr, size_t size), (ptr, size))
ALLOCATES(cudaHostAlloc, CW_KIND_PINNED, *pHost, size,
          (void **pHost, size_t size, unsigned int flags), (pHost, size, flags))
ALLOCATES(cudaHostRegister, CW_KIND_REGISTERED, ptr, size,
          (void *ptr, size_t size, unsigned int flags), (ptr, size, flags))
FREES(cudaFree, devPtr, (void *devPtr), (devPtr))
FREES(cudaFreeHost, ptr, (void *ptr), (ptr))
FREES(cudaHostUnregister, ptr, (void *ptr), (ptr))

/* ---- stream-ordered memory and pools ---- */

ALLOCATES(cudaMallocAsync, CW_KIND_ASYNC, *devPtr, size,
          (void **devPtr, size_t size, cudaStream_t hStream), (devPtr, size, hStream))
ALLOCATES(cudaMallocAsync_ptsz, CW_KIND_ASYNC, *devPtr, size,
          (void **devPtr, size_t size, cudaStream_t hStream), (devPtr, size, hStream))
ALLOCATES(cudaMallocFromPoolAsync, CW_KIND_ASYNC, *ptr, size,
          (void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
          (ptr, size, memPool, stream))
ALLOCATES(cudaMallocFromPoolAsync_ptsz, CW_KIND_ASYNC, *ptr, size,
          (void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
          (ptr, size, memPool, stream))
FREES(cudaFreeAsync, devPtr, (void *devPtr, cudaStream_t hStream), (devPtr, hStream))
FREES(cudaFreeAsync_ptsz, devPtr, (void *devPtr, cudaStream_t hStream), (devPtr, hStream))
NAMES(cudaMemPoolCreate, (cudaMemPool_t * memPool, const struct cudaMemPoolProps *poolProps),
      (memPool, poolProps))
NAMES(cudaMemPoolDestroy, (cudaMemPool_t memPool), (memPool))

/* ---- arrays ---- */

NAMES(cudaMallocArray,
      (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
       unsigned int flags),
      (array, desc, width, height, flags))
NAMES(cudaMalloc3DArray,
      (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
       unsigned int flags),
      (array, desc, extent, flags))
NAMES(cudaFreeArray, (cudaArray_t array), (array))
NAMES(cudaMallocMipmappedArray,
      (cudaMipmappedArray_t * mipmappedArray, const struct cudaChannelFormatDesc *desc,
       struct cudaExtent extent, unsigned int numLevels, unsigned int flags),
      (mipmappedArray, desc, extent, numLevels, flags))
NAMES(cudaFreeMipmappedArray, (cudaMipmappedArray_t mipmappedArray), (mipmappedArray))

/* ---- other processes and APIs ---- */

NAMES(cudaIpcOpenMemHandle, (void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags),
      (devPtr, handle, flags))
NAMES(cudaIpcCloseMemHandle, (void *devPtr), (devPtr))
NAMES(cudaImportExternalMemory,
      (cudaExternalMemory_t * extMem_out, const struct cudaExternalMemoryHandleDesc *memHandleDesc),
      (extMem_out, memHandleDesc))
NAMES(cudaExternalMemoryGetMappedBuffer,
      (void **devPtr, cudaExternalMemory_t extMem,
       const struct cudaExternalMemoryBufferDesc *bufferDesc),
      (devPtr, extMem, bufferDesc))
NAMES(cudaExternalMemoryGetMappedMipmappedArray,
      (cudaMipmappedArray_t * mipmap, cudaExternalMemory_t extMem,
       const struct cudaExternalMemoryMipmappedArrayDesc *mipmapDesc),
      (mipmap, extMem, mipmapDesc))
NAMES(cudaDestroyExternalMemory, (cudaExternalMemory_t extMem), (extMem))
NAMES(cudaGraphicsMapResources, (int count, cudaGraphicsResource_t *resources, cudaStream_t stream),
      (count, resources, stream))

/* ---- graphs and the device ---- */

NAMES(cudaGraphAddMemAllocNode,
      (cudaGraphNode_t * pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
       size_t numDependencies, struct cudaMemAllocNodeParams *nodeParams),
      (pGraphNode, graph, pDependencies, numDependencies, nodeParams))
NAMES(cudaGraphLaunch, (cudaGraphExec_t graphExec, cudaStream_t stream), (graphExec, stream))
NAMES(cudaGraphLaunch_ptsz, (cudaGraphExec_t graphExec, cudaStream_t stream), (graphExec, stream))
NAMES(cudaDeviceReset, (void), ())
