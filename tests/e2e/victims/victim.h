/* SPDX-License-Identifier: MIT */
/*
 * What the victims that call the driver share.
 *
 * A victim says on standard output what its report must say (init.sh, check_victim):
 *   expect KEY=VALUE...   the SUMMARY line
 *   report REGEX          a line of the text report; "no report REGEX": none
 *   json EXPRESSION       holds of the JSON report (claims.py)
 */
#ifndef VICTIM_H
#define VICTIM_H

#include <cuda.h>

#include "say.h"

static inline CUcontext use_device(int ordinal)
{
    CUcontext context;
    CUdevice device;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, ordinal));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    return context;
}

/* Virtual memory management: physical memory of the first device. */
static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

#if CUDA_VERSION >= 13000
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
#endif

/* A context that is not the primary one; by the oldest name, which every driver has. */
static inline CUcontext create_context(CUdevice device)
{
    CUcontext context;

    MUST(cuCtxCreate_v2(&context, 0, device));
    return context;
}

#endif
