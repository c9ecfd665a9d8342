/* SPDX-License-Identifier: MIT */
/*
 * Bodies of family OBSERVE, which do more than those of hook/bodies/observe.h alone, or less:
 * copies that are watched, synchronisations, and calls that are not made again.
 */
#include "hook/bodies/entries.h" /* first */
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/process/deadline.h"
#include "core/pending/batch.h"
#include "core/request/fallback.h"
#include "core/pool/pool.h"
#include "core/account/regrowth.h"
#include "core/account/idle.h"
#include "hook/bodies/observe.h"

/* ---- What is copied from one block to another: core/account/regrowth.h ---- */

static inline int is_watched(CUresult rc)
{
    return rc == CUDA_SUCCESS && cw_regrowth_is_on() && cw_thread.depth == 0 &&
           cw_session_is_armed();
}

static void copied_each(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        cw_regrowth_copied(to[i], from[i], bytes[i]);
}

/* It took long enough for a look at the clock. */
static void worked(CUresult rc)
{
    if (rc == CUDA_SUCCESS && cw_session_is_armed())
        cw_deadline_look(cw_session_now());
}

static void copied_now(CUresult rc, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    worked(rc);
    if (is_watched(rc))
        cw_regrowth_copied(to, from, bytes);
}

/* Copies between addresses, one or many. Lists of them are read only after the driver has read
 * them. */
#define COPIED(symbol, to, from, bytes)                                                            \
    CW_OBSERVED_THEN(symbol, if (is_watched(rc)) cw_regrowth_copied(to, from, bytes))
#define COPIED_EACH(symbol, to, from, bytes, count)                                                \
    CW_OBSERVED_THEN(symbol, if (is_watched(rc)) copied_each(to, from, bytes, count))

/* Rows, and planes of rows, as the first argument describes them: where the first one begins, 0 if
 * that is no address of a device. */
#define BEGIN_2D(end)                                                                              \
    (a1->end##MemoryType == CU_MEMORYTYPE_DEVICE || a1->end##MemoryType == CU_MEMORYTYPE_UNIFIED   \
         ? (uint64_t)a1->end##Device + (uint64_t)a1->end##Y * a1->end##Pitch + a1->end##XInBytes   \
         : 0)
#define BEGIN_3D(end)                                                                              \
    (BEGIN_2D(end) == 0 ? 0                                                                        \
                        : BEGIN_2D(end) + (uint64_t)a1->end##Z * a1->end##Height * a1->end##Pitch)
#define BYTES_2D          ((uint64_t)a1->WidthInBytes * a1->Height)
#define COPIED_2D(symbol) COPIED(symbol, BEGIN_2D(dst), BEGIN_2D(src), BYTES_2D)
#define COPIED_3D(symbol) COPIED(symbol, BEGIN_3D(dst), BEGIN_3D(src), BYTES_2D * a1->Depth)

CW_OBSERVED_THEN(cuMemcpy, copied_now(rc, a1, a2, a3))
CW_OBSERVED_THEN(cuMemcpy_ptds, copied_now(rc, a1, a2, a3))
COPIED_2D(cuMemcpy2D)
COPIED_2D(cuMemcpy2D_v2)
COPIED_2D(cuMemcpy2D_v2_ptds)
COPIED_2D(cuMemcpy2DAsync)
COPIED_2D(cuMemcpy2DAsync_v2)
COPIED_2D(cuMemcpy2DAsync_v2_ptsz)
COPIED_2D(cuMemcpy2DUnaligned)
COPIED_2D(cuMemcpy2DUnaligned_v2)
COPIED_2D(cuMemcpy2DUnaligned_v2_ptds)
COPIED_3D(cuMemcpy3D)
COPIED_3D(cuMemcpy3D_v2)
COPIED_3D(cuMemcpy3D_v2_ptds)
COPIED_3D(cuMemcpy3DAsync)
COPIED_3D(cuMemcpy3DAsync_v2)
COPIED_3D(cuMemcpy3DAsync_v2_ptsz)
COPIED_3D(cuMemcpy3DPeer)
COPIED_3D(cuMemcpy3DPeer_ptds)
COPIED_3D(cuMemcpy3DPeerAsync)
COPIED_3D(cuMemcpy3DPeerAsync_ptsz)
COPIED(cuMemcpyAsync, a1, a2, a3)
COPIED(cuMemcpyAsync_ptsz, a1, a2, a3)
COPIED_EACH(cuMemcpyBatchAsync, a1, a2, a3, a4)
COPIED_EACH(cuMemcpyBatchAsync_ptsz, a1, a2, a3, a4)
COPIED_EACH(cuMemcpyBatchAsync_v2, a1, a2, a3, a4)
COPIED_EACH(cuMemcpyBatchAsync_v2_ptsz, a1, a2, a3, a4)
COPIED(cuMemcpyDtoD, a1, a2, a3)
COPIED(cuMemcpyDtoD_v2, a1, a2, a3)
COPIED(cuMemcpyDtoD_v2_ptds, a1, a2, a3)
COPIED(cuMemcpyDtoDAsync, a1, a2, a3)
COPIED(cuMemcpyDtoDAsync_v2, a1, a2, a3)
COPIED(cuMemcpyDtoDAsync_v2_ptsz, a1, a2, a3)
COPIED(cuMemcpyPeer, a1, a3, a5)
COPIED(cuMemcpyPeer_ptds, a1, a3, a5)
COPIED(cuMemcpyPeerAsync, a1, a3, a5)
COPIED(cuMemcpyPeerAsync_ptsz, a1, a3, a5)
COPIED(cuMemcpyWithAttributesAsync, a1, a2, a3)
COPIED(cuMemcpyWithAttributesAsync_ptsz, a1, a2, a3)

CW_OBSERVED_THEN(cuMemcpyDtoH, worked(rc))
CW_OBSERVED_THEN(cuMemcpyDtoH_v2, worked(rc))
CW_OBSERVED_THEN(cuMemcpyDtoH_v2_ptds, worked(rc))
CW_OBSERVED_THEN(cuMemcpyHtoD, worked(rc))
CW_OBSERVED_THEN(cuMemcpyHtoD_v2, worked(rc))
CW_OBSERVED_THEN(cuMemcpyHtoD_v2_ptds, worked(rc))

/* ---- Of another device, perhaps ---- */

/* Among the devices that get access, the one with the most to give: all of them need room for page
 * tables. */
static uint8_t on_any_of(const CUmemAccessDesc *desc, size_t count)
{
    uint64_t most = 0;
    uint8_t on = 0;

    for (size_t i = 0; desc != NULL && cw_session_is_armed() && i < count; i++) {
        uint8_t one = desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE
                          ? cw_call_on(desc[i].location.id)
                          : 0;

        if (one != 0 && cw_idle_bytes(one - 1) > most) {
            most = cw_idle_bytes(one - 1);
            on = one;
        }
    }
    return on;
}

CW_OBSERVED_ON(cuKernelGetAttribute, a4)
CW_OBSERVED_ON(cuKernelSetAttribute, a4)
CW_OBSERVED_ON(cuKernelSetCacheConfig, a3)
CW_OBSERVED_ON(cuLogicalEndpointAddDevice, a2)
CW_OBSERVED_ON(cuLogicalEndpointBindAddr, a2)
CW_OBSERVED_ON(cuLogicalEndpointBindMem, a2)
CW_OBSERVED_ON(cuMulticastAddDevice, a2)
CW_OBSERVED_BODY(cuMemPoolSetAccess, .on = on_any_of(a2, a3), (void)0)
CW_OBSERVED_BODY(cuMemSetAccess, .on = on_any_of(a3, a4), (void)0)

/* ---- Not made again: oom.def says why ---- */

CW_OBSERVED_BODY(cuEventQuery, .is_once = 1, worked(rc))
CW_OBSERVED_BODY(cuEventSynchronize, .is_once = 1, worked(rc))
CW_OBSERVED_ONCE(cuLaunchCooperativeKernelMultiDevice)
CW_OBSERVED_ONCE(cuStreamBatchMemOp)
CW_OBSERVED_ONCE(cuStreamBatchMemOp_ptsz)
CW_OBSERVED_ONCE(cuStreamBatchMemOp_v2)
CW_OBSERVED_ONCE(cuStreamBatchMemOp_v2_ptsz)
CW_OBSERVED_BODY(cuStreamQuery, .is_once = 1, worked(rc))
CW_OBSERVED_BODY(cuStreamQuery_ptsz, .is_once = 1, worked(rc))
CW_OBSERVED_BODY(cuStreamSynchronize, .is_once = 1, worked(rc))
CW_OBSERVED_BODY(cuStreamSynchronize_ptsz, .is_once = 1, worked(rc))

/* ---- The program's own waits: the moment to look at the device ---- */

static uint64_t before_sync(void)
{
    if (!cw_session_is_armed() || cw_thread.depth != 0)
        return 0;
    return CW_UNLIKELY(cw_fallback_has_left()) ? cw_batch_sync_begin() : cw_pool_sync_begin();
}

/* The context that was waited for with this handle, 0 if it was not all of one: a green context is
 * only a part of its primary one. */
static uint32_t whole_context(uint64_t handle)
{
    uint8_t device;

    return cw_context_of_own_handle(handle, &device);
}

static CUresult synchronized(enum cw_hook hook, CUresult rc, uint64_t handle, uint64_t ticket,
                             void *caller)
{
    if (rc != CUDA_SUCCESS) {
        cw_call_note(hook, rc, caller);
    } else if (cw_session_is_armed() && cw_thread.depth == 0) {
        cw_thread.depth = 1;
        if (cw_thread.api == 0)
            cw_thread.caller = caller;
        cw_device_sample(cw_call_api_text(hook));
        cw_pool_sync_end(whole_context(handle), ticket);
        if (CW_UNLIKELY(cw_fallback_has_left()))
            cw_fallback_synced(whole_context(handle), ticket);
        cw_call_leave();
    }
    return rc;
}

CW_EXPORT CUresult cuCtxSynchronize(void)
{
    uint64_t ticket = before_sync(), handle = 0;
    CUresult rc = CW_REAL(cuCtxSynchronize)();

    if (cw_session_is_armed() && cw_session.ops->context_current(&handle) != 0)
        handle = 0;
    return synchronized(CW_HOOK_cuCtxSynchronize, rc, handle, ticket, CW_CALLER);
}

CW_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
    uint64_t ticket = before_sync();
    CUresult rc = CW_REAL(cuCtxSynchronize_v2)(ctx);

    return synchronized(CW_HOOK_cuCtxSynchronize_v2, rc, (uint64_t)(uintptr_t)ctx, ticket,
                        CW_CALLER);
}
