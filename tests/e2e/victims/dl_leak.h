/* SPDX-License-Identifier: MIT */
/* A leak in a driver that the victim has loaded by itself: cuInit, the primary context of the first
 * device, one block. */
#ifndef DL_LEAK_H
#define DL_LEAK_H

#include "victim.h"

#include <dlfcn.h>

/* The driver's function of this name. */
#define OF_DRIVER(driver, name) ((__typeof__(&name))dlsym(driver, #name))

static NOINLINE void leak(void *driver, size_t bytes)
{
    CUcontext context;
    CUdeviceptr block;

    MUST(OF_DRIVER(driver, cuInit)(0));
    MUST(OF_DRIVER(driver, cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(OF_DRIVER(driver, cuCtxSetCurrent)(context));
    MUST(OF_DRIVER(driver, cuMemAlloc_v2)(&block, bytes));
}

#endif
