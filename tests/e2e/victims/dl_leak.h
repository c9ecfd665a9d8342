/* SPDX-License-Identifier: MIT */
/* A leak in a driver that the victim has loaded by itself: cuInit, the primary context of the first
 * device, one block. */
#ifndef DL_LEAK_H
#define DL_LEAK_H

#include "victim.h"

#include <dlfcn.h>

static NOINLINE void leak(void *driver, size_t bytes)
{
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
    CUresult (*retain)(CUcontext *, CUdevice) =
        (CUresult(*)(CUcontext *, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain");
    CUresult (*set)(CUcontext) = (CUresult(*)(CUcontext))dlsym(driver, "cuCtxSetCurrent");
    CUresult (*alloc)(CUdeviceptr *, size_t) =
        (CUresult(*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2");
    CUcontext context;
    CUdeviceptr block;

    MUST(init(0));
    MUST(retain(&context, 0));
    MUST(set(context));
    MUST(alloc(&block, bytes));
}

#endif
