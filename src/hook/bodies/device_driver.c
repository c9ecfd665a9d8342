/* SPDX-License-Identifier: MIT */
/*
 * api/device_ops.h over the driver. A primary context is retained and released as the program
 * would, so that the account sees it begin and end. No state.
 */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/device_driver.h"

#include "core/process/guard.h"
#include "hook/bodies/buffer_driver.h"
#include "hook/bodies/call.h"
#include "hook/resolve/hook_table.h"

/* Without a current context the driver refuses to say (CUDA Driver API, Context Management). */
static int is_current_there(uint8_t device)
{
    CUdevice current = -1;

    return CW_REAL(cuCtxGetDevice)(&current) == CUDA_SUCCESS && current == (CUdevice)device;
}

static CUresult release(uint8_t device)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuDevicePrimaryCtxRelease_v2((CUdevice)device));
    return rc;
}

/* One that is active goes on being the program's own: it ends when the program says so. One that
 * nobody has stays until the process ends, or resets the device: the block's memory is there. */
static int enter(uint8_t device, struct cw_device_stay *out)
{
    CUcontext context = NULL;
    unsigned flags = 0;
    int is_active = 0;
    CUresult rc;

    *out = (struct cw_device_stay){.device = device};
    if (is_current_there(device))
        return 0;
    rc = CW_REAL(cuDevicePrimaryCtxGetState)((CUdevice)device, &flags, &is_active);
    if (rc == CUDA_SUCCESS)
        CW_AS_PROGRAM(rc, cuDevicePrimaryCtxRetain(&context, (CUdevice)device));
    if (rc != CUDA_SUCCESS)
        return (int)rc;
    rc = CW_REAL(cuCtxPushCurrent_v2)(context);
    if (rc != CUDA_SUCCESS) {
        release(device);
        return (int)rc;
    }
    out->is_pushed = 1;
    out->is_borrowed = (uint8_t)is_active;
    return 0;
}

static void leave(const struct cw_device_stay *stay)
{
    CUcontext popped;

    if (!stay->is_pushed)
        return;
    CW_REAL(cuCtxPopCurrent_v2)(&popped);
    if (stay->is_borrowed)
        release(stay->device);
}

static CW_HOT uint64_t serve(uint8_t device, uint64_t bytes, uint64_t now_ns, void *caller)
{
    unsigned accounted = cw_thread.accounted;
    struct cw_call call;
    uint64_t address;

    if (CW_UNLIKELY(cw_guard_any() != 0 || cw_thread.api != 0) ||
        CW_UNLIKELY(!cw_call_enter_hot(&call, CW_HOOK_cuMemAlloc_v2, caller)))
        return 0;
    address = cw_pool_serve(device, bytes, now_ns, call.api);
    cw_call_leave();
    cw_thread.accounted = accounted;
    return address;
}

const struct cw_device_ops cw_device_driver = {.enter = enter, .leave = leave, .serve = serve};
