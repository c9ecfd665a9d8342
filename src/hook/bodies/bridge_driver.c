/* SPDX-License-Identifier: MIT */
/*
 * api/bridge_ops.h over the driver. What lies at an address is asked as the program would, which
 * does not see the blocks that the pool keeps; copies are the driver's alone. No state.
 */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/bridge_driver.h"

#include "hook/bodies/buffer_driver.h"
#include "hook/resolve/hook_table.h"

static CUresult ask(CUdeviceptr address, struct cw_bridge_memory *out)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    CUcontext context = NULL;
    unsigned type = 0;
    int device = -1;
    void *data[] = {&context, &type, &device};
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult rc = cuPointerGetAttributes(3, which, data, address);

    if (rc == CUDA_SUCCESS && type == 0)
        rc = CUDA_ERROR_NOT_FOUND;
    if (rc == CUDA_SUCCESS && type != CU_MEMORYTYPE_HOST)
        rc = cuMemGetAddressRange_v2(&base, &bytes, address);
    if (rc == CUDA_SUCCESS)
        *out = (struct cw_bridge_memory){.context = (uint64_t)(uintptr_t)context,
                                         .base = base,
                                         .bytes = bytes,
                                         .device = device,
                                         .is_host = type == CU_MEMORYTYPE_HOST};
    return rc;
}

static int look(uint64_t address, struct cw_bridge_memory *out)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, ask(address, out));
    return (int)rc;
}

/* Access stays on: the program may have come to need it. */
static int reach(uint8_t device, uint8_t peer, uint64_t peer_context)
{
    int can = 0;
    CUresult rc = CW_REAL(cuDeviceCanAccessPeer)(&can, (CUdevice)device, (CUdevice)peer);

    if (rc == CUDA_SUCCESS && !can)
        rc = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (rc != CUDA_SUCCESS)
        return (int)rc;
    CW_AS_PROGRAM(rc, cuCtxEnablePeerAccess((CUcontext)(uintptr_t)peer_context, 0));
    return rc == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? 0 : (int)rc;
}

/* Default streams are the current context's. */
static int stream_context(void *stream, uint64_t *out_context)
{
    CUcontext context = NULL;
    CUresult rc = (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD
                      ? CW_REAL(cuCtxGetCurrent)(&context)
                      : CW_REAL(cuStreamGetCtx)((CUstream)stream, &context);

    if (rc == CUDA_SUCCESS)
        *out_context = (uint64_t)(uintptr_t)context;
    return (int)rc;
}

static int upload(uint64_t to, const void *from, uint64_t bytes, void *stream)
{
    return (int)CW_REAL(cuMemcpyHtoDAsync_v2)(to, from, bytes, (CUstream)stream);
}

static int copy(uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    return (int)CW_REAL(cuMemcpyDtoDAsync_v2)(to, from, bytes, (CUstream)stream);
}

static int copy_peer(uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                     uint64_t bytes, void *stream)
{
    return (int)CW_REAL(cuMemcpyPeerAsync)(to, (CUcontext)(uintptr_t)to_context, from,
                                           (CUcontext)(uintptr_t)from_context, bytes,
                                           (CUstream)stream);
}

const struct cw_bridge_ops cw_bridge_over_driver = {.look = look,
                                                    .reach = reach,
                                                    .stream_context = stream_context,
                                                    .upload = upload,
                                                    .copy = copy,
                                                    .copy_peer = copy_peer};
