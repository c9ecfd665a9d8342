/* SPDX-License-Identifier: MIT */
/* Bodies of family QUERY, and of cuInit. */
#include "hook/bodies/entries.h" /* first */
#include "base/lock.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/process/session.h"
#include "core/limits/limit.h"
#include "core/account/idle.h"
#include "hook/bodies/pooled.h"

#include "hook/start.h"

/* A thread that gives memory back meanwhile needs some microseconds, or has lost the processor. */
#define SETTLE_TURNS 200
#define SETTLE_ASKS  8

CW_EXPORT CUresult cuInit(unsigned int Flags)
{
    CUresult rc;

    cw_start_prepare();
    rc = CW_REAL(cuInit)(Flags);

    if (rc != CUDA_SUCCESS)
        cw_start_refused((int)rc);
    else if (cw_start_arm_at_driver())
        cw_session_set_init_error(0); /* of an earlier try */
    return rc;
}

/* ---- memory use ---- */

/* The driver's answer for the current context's device, as the program sees it. */
static void view_current(size_t *free, size_t *total)
{
    struct cw_memory_view view;
    uint8_t device;

    if (cw_context_current(&device) == 0)
        return;
    /* A program sees what the driver says, unless the user has asked for another view of it. */
    if (cw_limit_is_on())
        *free = (size_t)cw_device_free_of(device, *free, *total);
    cw_limit_view(device, *free, *total, &view);
    *free = view.free_bytes;
    *total = view.total_bytes;
}

/* Asks again if another thread has released memory meanwhile, a bounded number of times. */
static CUresult ask_settled(size_t *free, size_t *total)
{
    unsigned turns = 0;
    uint64_t motion;
    CUresult rc;

    for (unsigned i = 0; i < SETTLE_ASKS; i++) {
        while (!cw_idle_is_settled(motion = cw_idle_motion()) && turns < SETTLE_TURNS)
            cw_lock_relax(&turns);
        rc = CW_REAL(cuMemGetInfo_v2)(free, total);
        if (rc != CUDA_SUCCESS)
            return rc;
        cw_context_check_all(); /* nothing of one that is gone lies idle */
        cw_device_sampled(*free, *total, cw_call_api_text(CW_HOOK_cuMemGetInfo_v2));
        view_current(free, total);
        if (cw_idle_is_settled(motion))
            break;
    }
    return CUDA_SUCCESS;
}

/* The program may ask for only one of the two. */
static CUresult memory_info(size_t *free, size_t *total)
{
    size_t free_bytes = 0, total_bytes = 0;
    CUresult rc;

    cw_thread.depth = 1;
    rc = ask_settled(&free_bytes, &total_bytes);
    cw_call_leave();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (free != NULL)
        *free = free_bytes;
    if (total != NULL)
        *total = total_bytes;
    return rc;
}

CW_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CUresult rc;

    if (!cw_session_is_armed() || cw_thread.depth != 0)
        return CW_REAL(cuMemGetInfo_v2)(free, total);
    /* The driver decides whether one pointer, or both, may be missing. */
    rc = free != NULL && total != NULL ? CUDA_SUCCESS : CW_REAL(cuMemGetInfo_v2)(free, total);
    if (rc == CUDA_SUCCESS)
        rc = memory_info(free, total);
    cw_call_note(CW_HOOK_cuMemGetInfo_v2, rc, CW_CALLER);
    return rc;
}

/* 32-bit sizes: they wrap on today's devices, as the driver's own answers do. */
CW_EXPORT CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    CUresult rc = CW_REAL(cuMemGetInfo)(free, total);
    size_t free_bytes = 0, total_bytes = 0;

    if (rc != CUDA_SUCCESS || !cw_session_is_armed() || cw_thread.depth != 0 ||
        memory_info(&free_bytes, &total_bytes) != CUDA_SUCCESS)
        return rc;
    if (free != NULL)
        *free = (unsigned int)free_bytes;
    if (total != NULL)
        *total = (unsigned int)total_bytes;
    return rc;
}

static uint64_t total_of(CUdevice dev, uint64_t total)
{
    if (!cw_limit_is_on() || !cw_session_is_armed() || cw_thread.depth != 0 || dev < 0 ||
        dev >= CW_MAX_DEVICES)
        return total;
    cw_thread.depth = 1;
    total = cw_limit_total((uint8_t)dev, total);
    cw_call_leave();
    return total;
}

CW_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    CUresult rc = CW_REAL(cuDeviceTotalMem_v2)(bytes, dev);

    if (rc == CUDA_SUCCESS && bytes != NULL)
        *bytes = total_of(dev, *bytes);
    return rc;
}

CW_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    CUresult rc = CW_REAL(cuDeviceTotalMem)(bytes, dev);
    size_t total = 0;

    if (rc == CUDA_SUCCESS && bytes != NULL && cw_limit_is_on() &&
        CW_REAL(cuDeviceTotalMem_v2)(&total, dev) == CUDA_SUCCESS)
        *bytes = (unsigned int)total_of(dev, total);
    return rc;
}

/* A pooled block is larger than what was asked for: the program sees the size that it asked for.
 * About a block that it has freed, it gets the driver's answer for an unallocated address. */
CW_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct cw_pool_view block;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult rc;

    if (!cw_session_is_armed() || !cw_pool_is_on())
        return CW_REAL(cuMemGetAddressRange_v2)(pbase, psize, dptr);
    rc = CW_REAL(cuMemGetAddressRange_v2)(&base, &bytes, dptr);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (cw_pool_look(base, &block)) {
        if (block.bytes == 0)
            return CW_REAL(cuMemGetAddressRange_v2)(pbase, psize, CW_NOBODYS_ADDRESS);
        bytes = block.bytes;
    }
    if (pbase != NULL)
        *pbase = base;
    if (psize != NULL)
        *psize = bytes;
    return rc;
}

CW_EXPORT CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize,
                                        CUdeviceptr_v1 dptr)
{
    return CW_REAL(cuMemGetAddressRange)(pbase, psize, dptr);
}

/* A block that served before has the identity that the driver gave its memory; to the program it is
 * another allocation, and caches of registrations (UCX, libfabric) know it by its address and this
 * number, also once the memory there is another. Numbers of our own have the top bit set, which the
 * driver's count never reaches. */
static unsigned long long buffer_id(const struct cw_pool_view *block, unsigned long long drivers)
{
    return block->id == 0 ? drivers : 1ull << 63 | block->id;
}

static int find_block(CUdeviceptr ptr, struct cw_pool_view *out)
{
    CUdeviceptr base = 0;

    if (cw_pool_look(ptr, out))
        return 1;
    return CW_REAL(cuMemGetAddressRange_v2)(&base, NULL, ptr) == CUDA_SUCCESS &&
           cw_pool_look(base, out);
}

/* The driver's answer, in terms of the program's own allocation. */
static void correct_attribute(CUpointer_attribute attribute, void *data, CUdeviceptr ptr)
{
    struct cw_pool_view block;

    if (!cw_pool_is_on())
        return;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        if (find_block(ptr, &block) && block.bytes != 0)
            *(size_t *)data = block.bytes;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        if (find_block(ptr, &block))
            *(unsigned long long *)data = buffer_id(&block, *(unsigned long long *)data);
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* sets SYNC_MEMOPS on the way */
        cw_pooled_export(ptr);
        break;
    default:
        break;
    }
}

/* The address to ask the driver about. Only the start of a freed block is recognised: to find that
 * of another address takes a call, and programs ask about live memory all the time. */
static CUdeviceptr hide_freed(CUdeviceptr ptr)
{
    struct cw_pool_view block;

    if (cw_session_is_armed() && cw_pool_look(ptr, &block) && block.bytes == 0)
        return CW_NOBODYS_ADDRESS;
    return ptr;
}

CW_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult rc;

    ptr = hide_freed(ptr);
    rc = CW_REAL(cuPointerGetAttribute)(data, attribute, ptr);
    if (rc == CUDA_SUCCESS && data != NULL && cw_session_is_armed())
        correct_attribute(attribute, data, ptr);
    return rc;
}

CW_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes,
                                          CUpointer_attribute *attributes, void **data,
                                          CUdeviceptr ptr)
{
    CUresult rc;

    ptr = hide_freed(ptr);
    rc = CW_REAL(cuPointerGetAttributes)(numAttributes, attributes, data, ptr);
    if (rc != CUDA_SUCCESS || !cw_session_is_armed())
        return rc;
    for (unsigned i = 0; i < numAttributes; i++)
        if (data[i] != NULL)
            correct_attribute(attributes[i], data[i], ptr);
    return rc;
}
