/* SPDX-License-Identifier: MIT */
/* Green contexts, to the extent that memory and streams need: each is a context of its own that
 * shares its device with the primary one. Resources are counted, not enforced.
 */
#include "sim.h"

#include <string.h>

#define NPROCESSORS 16

static void describe(CUdevResource *out, CUdevResourceType type, unsigned count)
{
    memset(out, 0, sizeof *out);
    out->type = type;
    out->sm.smCount = count;
}

CUresult sim_cuDeviceGetDevResource(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
    if (!out || type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    describe(out, type, NPROCESSORS);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevResource(CUcontext handle, CUdevResource *out, CUdevResourceType type)
{
    (void)handle;
    return sim_cuDeviceGetDevResource(0, out, type);
}

CUresult sim_cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *out, CUdevResourceType type)
{
    if (!out || type != CU_DEV_RESOURCE_TYPE_SM || !sim_object_is(handle, SIM_GREEN))
        return CUDA_ERROR_INVALID_VALUE;
    *out = ((struct sim_green *)handle)->resource;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
                                         const CUdevResource *input, CUdevResource *remaining,
                                         unsigned int flags, unsigned int count)
{
    unsigned made;

    (void)flags;
    if (!groups || !input || !count)
        return CUDA_ERROR_INVALID_VALUE;
    made = input->sm.smCount / count;
    if (result && made > *groups)
        made = *groups;
    for (unsigned i = 0; result && i < made; i++)
        describe(&result[i], CU_DEV_RESOURCE_TYPE_SM, count);
    if (remaining)
        describe(remaining, CU_DEV_RESOURCE_TYPE_SM, input->sm.smCount - made * count);
    *groups = made;
    return CUDA_SUCCESS;
}

/* The descriptor is a small number that cannot be mistaken for NULL: how many processors. */
CUresult sim_cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources,
                                       unsigned int n)
{
    uintptr_t total = 0;

    if (!out || !resources || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++)
        total += resources[i].sm.smCount;
    *out = (CUdevResourceDesc)(total + 1);
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device,
                              unsigned int flags)
{
    struct sim_green *green;
    CUcontext primary;
    CUresult status;

    if (!out || !desc || !(flags & CU_GREEN_CTX_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    status = sim_cuDevicePrimaryCtxRetain(&primary, device);
    if (status != CUDA_SUCCESS)
        return status;
    green = sim_object_create(SIM_GREEN);
    status = green ? sim_context_create(&green->ctx, device, 0) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        if (green)
            sim_object_destroy(green);
        sim_cuDevicePrimaryCtxRelease_v2(device);
        return status;
    }
    green->ctx->green = green;
    describe(&green->resource, CU_DEV_RESOURCE_TYPE_SM, (unsigned)(uintptr_t)desc - 1);
    *out = (CUgreenCtx)green;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxDestroy(CUgreenCtx handle)
{
    struct sim_green *green = (struct sim_green *)handle;
    int device;

    if (!sim_object_is(green, SIM_GREEN))
        return CUDA_ERROR_INVALID_HANDLE;
    device = green->ctx->device;
    sim_context_destroy(green->ctx);
    sim_object_destroy(green);
    if (sim.devices[device].primary_refs > 0)
        return sim_cuDevicePrimaryCtxRelease_v2(device);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx handle)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_object_is(handle, SIM_GREEN))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUcontext)((struct sim_green *)handle)->ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx handle, unsigned int flags,
                                    int priority)
{
    if (!out || !(flags & CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_object_is(handle, SIM_GREEN))
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_stream_open(out, ((struct sim_green *)handle)->ctx, flags, priority);
}

CUresult sim_cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *out)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status == CUDA_SUCCESS && !out)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *out = (CUgreenCtx)stream->ctx->green;
    return status;
}

CUresult sim_cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event)
{
    if (!sim_object_is(handle, SIM_GREEN))
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_cuCtxRecordEvent((CUcontext)((struct sim_green *)handle)->ctx, event);
}

CUresult sim_cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event)
{
    if (!sim_object_is(handle, SIM_GREEN))
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_cuCtxWaitEvent((CUcontext)((struct sim_green *)handle)->ctx, event);
}

/* ---- odds and ends of the same age ---- */

CUresult sim_cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult sim_cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
