/* SPDX-License-Identifier: MIT */
/* core/process/driver_ops.h over the driver's own functions. */
#include "hook/driver/cuda_ops.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "hook/resolve/fatal_code.h"
#include "hook/resolve/hook_table.h"

#define EXACT_NS UINT64_C(100000000)

/* Up to when times are exact; 0: the first is still to come. */
static _Atomic uint64_t exact_until;

void cw_cuda_ops_end_exactly(void)
{
    atomic_store_explicit(&exact_until, UINT64_MAX, memory_order_relaxed);
}

void cw_cuda_ops_forked(void)
{
    atomic_store_explicit(&exact_until, 0, memory_order_relaxed);
}

/* At most `until`, which the coarse clock has passed where it takes over: it may be a tick behind
 * what this one has shown by then. */
static CW_COLD uint64_t exact_now(uint64_t until)
{
    uint64_t now = cw_clock_ns();

    if (until == 0 && atomic_compare_exchange_strong(&exact_until, &until, now + EXACT_NS))
        return now;
    return now < until ? now : until;
}

/* The coarse clock: a read of some nanoseconds, exact to a timer tick (1 to 4 ms), which is what
 * ages and a timeline in a report need. A short run would be over within a tick, so its times are
 * exact, and those of the end. Time never goes back. */
static CW_HOT uint64_t now_ns(void)
{
    uint64_t until = atomic_load_explicit(&exact_until, memory_order_relaxed), now;
    struct timespec coarse;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    now = (uint64_t)coarse.tv_sec * 1000000000u + (uint64_t)coarse.tv_nsec;
    return CW_UNLIKELY(now < until || until == 0) ? exact_now(until) : now;
}

/* The coarse clock would miss a millisecond's work, and wall time would count a preempted
 * thread. */
static uint64_t work_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* It may return the code of an earlier call after it has done its work (cuda.h). */
static int exchange_capture_mode(int mode)
{
    CUstreamCaptureMode now = (CUstreamCaptureMode)mode;
    CUresult rc = CW_REAL(cuThreadExchangeStreamCaptureMode)(&now);

    return rc != CUDA_SUCCESS && (int)now == mode ? -1 : (int)now;
}

static int context_current(uint64_t *out_handle)
{
    CUcontext context = NULL;

    if (CW_REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS)
        return -1;
    *out_handle = (uint64_t)(uintptr_t)context;
    return 0;
}

/* CUDA 12.0; before that the core numbers contexts itself. */
static int has_context_ids(void)
{
    return cw_real_has(CW_HOOK_cuCtxGetId);
}

static CW_HOT int context_identity(uint64_t handle, uint64_t *out_identity)
{
    __typeof__(&cuCtxGetId) get_id = (__typeof__(&cuCtxGetId))atomic_load_explicit(
        &cw_real[CW_HOOK_cuCtxGetId], memory_order_relaxed);
    unsigned long long id = 0;

    if (CW_LIKELY(get_id != NULL)) {
        CUresult rc = get_id((CUcontext)(uintptr_t)handle, &id);

        *out_identity = id; /* one that has failed may not even say that */
        if (CW_LIKELY(rc == CUDA_SUCCESS))
            return 0;
        *out_identity = 0;
        return rc == CUDA_ERROR_INVALID_CONTEXT || rc == CUDA_ERROR_CONTEXT_IS_DESTROYED ? -1 : 0;
    }
    if (handle == 0 && (context_current(&handle) != 0 || handle == 0))
        return -1;
    *out_identity = handle;
    return 0;
}

static int context_facts(uint64_t handle, struct cw_context_facts *out)
{
    CUdevice device = 0;

    if (CW_REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS || device < 0)
        return -1;
    out->id = 0;
    if (has_context_ids() && context_identity(handle, &out->id) != 0)
        out->id = 0;
    out->device = (unsigned)device;
    return 0;
}

/* Headers differ in which of the two names they declare. */
typedef CUresult (*uuid_fn)(CUuuid *uuid, CUdevice dev);

/* The second form gives a MIG instance its own identity, the first that of the whole GPU. */
static void ask_uuid(CUdevice device, uint8_t out[16])
{
    enum cw_hook hook = cw_real_has(CW_HOOK_cuDeviceGetUuid_v2) ? CW_HOOK_cuDeviceGetUuid_v2
                                                                : CW_HOOK_cuDeviceGetUuid;
    CUuuid uuid;

    if (((uuid_fn)cw_real_of(hook))(&uuid, device) == CUDA_SUCCESS)
        memcpy(out, uuid.bytes, 16);
}

/* By their numbers: headers before CUDA 12.2 do not have the names. */
#define ATTRIBUTE_NUMA_CONFIG ((CUdevice_attribute)130)
#define ATTRIBUTE_NUMA_ID     ((CUdevice_attribute)131)
#define NUMA_CONFIG_NODE      1 /* CU_DEVICE_NUMA_CONFIG_NUMA_NODE */

/* Integrated: GB10 and Jetson. A node: Grace Hopper and Grace Blackwell, unless the administrator
 * has their driver keep the memory to itself. */
static void ask_memory(CUdevice device, struct cw_device_facts *out)
{
    int is_integrated = 0, config = 0, node = -1;

    if (CW_REAL(cuDeviceGetAttribute)(&is_integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device) ==
            CUDA_SUCCESS &&
        is_integrated) {
        out->memory = CW_DEVICE_MEMORY_HOST;
    } else if (CW_REAL(cuDeviceGetAttribute)(&config, ATTRIBUTE_NUMA_CONFIG, device) ==
                   CUDA_SUCCESS &&
               config == NUMA_CONFIG_NODE &&
               CW_REAL(cuDeviceGetAttribute)(&node, ATTRIBUTE_NUMA_ID, device) == CUDA_SUCCESS &&
               node >= 0) {
        out->memory = CW_DEVICE_MEMORY_NODE;
        out->node = node;
    }
}

static int ask_attribute(int *out, int attribute, int device)
{
    return (int)CW_REAL(cuDeviceGetAttribute)(out, (CUdevice_attribute)attribute, (CUdevice)device);
}

static int device_facts(unsigned device, struct cw_device_facts *out)
{
    size_t total = 0;

    memset(out, 0, sizeof(*out));
    if (CW_REAL(cuDeviceGetName)(out->name, (int)sizeof(out->name) - 1, (CUdevice)device) !=
            CUDA_SUCCESS ||
        CW_REAL(cuDeviceTotalMem_v2)(&total, (CUdevice)device) != CUDA_SUCCESS)
        return -1;
    out->total = total;
    ask_uuid((CUdevice)device, out->uuid);
    ask_memory((CUdevice)device, out);
    cw_device_properties_ask(ask_attribute, (int)device, &out->properties);
    return 0;
}

static int device_count(unsigned *out_count)
{
    int count = 0;

    if (CW_REAL(cuDeviceGetCount)(&count) != CUDA_SUCCESS || count < 0)
        return -1;
    *out_count = (unsigned)count;
    return 0;
}

/* ---- contexts that need not be current ---- */

/* One query tells whether the context is current and still the same: by its id, which is unique,
 * else by its handle. */
static int is_current(struct cw_context_name context)
{
    uint64_t current = 0;

    if (CW_LIKELY(context.id != 0))
        return context_identity(0, &current) == 0 && current == context.id;
    return context_current(&current) == 0 && current == context.handle;
}

static int is_gone(struct cw_context_name context)
{
    uint64_t identity = 0;

    return context.id != 0 && (context_identity(context.handle, &identity) != 0 ||
                               (identity != 0 && identity != context.id));
}

CUresult cw_cuda_enter_context(struct cw_context_name context, int *out_pushed)
{
    CUresult rc;

    *out_pushed = 0;
    if (CW_LIKELY(is_current(context)))
        return CUDA_SUCCESS;
    if (is_gone(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    rc = CW_REAL(cuCtxPushCurrent_v2)((CUcontext)(uintptr_t)context.handle);
    *out_pushed = rc == CUDA_SUCCESS;
    return rc;
}

/* A failed pop leaves the program in a context that is not its own. The call may have done its work
 * and returned the error of an earlier one (cuda.h), so it is made again only if it has not. */
void cw_cuda_leave_context(struct cw_context_name context, int pushed)
{
    CUcontext popped;

    if (CW_LIKELY(!pushed) || CW_REAL(cuCtxPopCurrent_v2)(&popped) == CUDA_SUCCESS)
        return;
    if (is_current(context))
        CW_REAL(cuCtxPopCurrent_v2)(&popped);
}

/* The program's own free would be refused where this is: without a context, or in one that has
 * ended. A context that need not be current need not be made so: the event names it. */
static CUresult can_free(struct cw_context_name context)
{
    uint64_t current = 0;
    CUdevice device;
    CUresult rc;

    if (context_current(&current) != 0 || current == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    rc = CW_REAL(cuCtxGetDevice)(&device); /* says if the current one is destroyed */
    if (rc == CUDA_SUCCESS && is_gone(context))
        rc = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return rc;
}

static CW_HOT int context_wait(struct cw_context_name context)
{
    int pushed;
    CUresult rc;

    if (CW_LIKELY(is_current(context)))
        return (int)CW_REAL(cuCtxSynchronize)();
    rc = can_free(context);
    if (rc == CUDA_SUCCESS)
        rc = cw_cuda_enter_context(context, &pushed);
    if (rc != CUDA_SUCCESS)
        return (int)rc;
    rc = CW_REAL(cuCtxSynchronize)();
    cw_cuda_leave_context(context, pushed);
    return (int)rc;
}

static int memory_info(struct cw_context_name context, uint64_t *out_free, uint64_t *out_total)
{
    size_t free_bytes = 0, total_bytes = 0;
    int pushed = 0;
    CUresult rc = context.handle == 0 ? CUDA_SUCCESS : cw_cuda_enter_context(context, &pushed);

    if (rc == CUDA_SUCCESS)
        rc = CW_REAL(cuMemGetInfo_v2)(&free_bytes, &total_bytes);
    cw_cuda_leave_context(context, pushed);
    *out_free = free_bytes;
    *out_total = total_bytes;
    return rc == CUDA_SUCCESS ? 0 : -1;
}

/* CUDA 12.5. */
static int has_context_events(void)
{
    return cw_real_has(CW_HOOK_cuCtxRecordEvent);
}

static int event_create(struct cw_context_name context, uint64_t *out_event)
{
    CUevent event = NULL;
    int pushed;
    CUresult rc;

    if (cw_cuda_enter_context(context, &pushed) != CUDA_SUCCESS)
        return -1;
    rc = CW_REAL(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    cw_cuda_leave_context(context, pushed);
    *out_event = (uint64_t)(uintptr_t)event;
    return rc == CUDA_SUCCESS ? 0 : -1;
}

/* A driver that refuses events of a whole context goes on refusing them; one that is taken down at
 * exit while threads work, or whose context has ended meanwhile, refuses everything. */
static int is_refusal(struct cw_context_name context, CUresult rc)
{
    return !cw_fatal_code_is((int)rc) && rc != CUDA_ERROR_DEINITIALIZED && !is_gone(context);
}

static int event_record(struct cw_context_name context, uint64_t event)
{
    CUresult rc;

    if (is_gone(context))
        return -1;
    rc = CW_REAL(cuCtxRecordEvent)((CUcontext)(uintptr_t)context.handle, (CUevent)(uintptr_t)event);
    if (rc == CUDA_SUCCESS)
        return 0;
    return is_refusal(context, rc) ? 1 : -1;
}

static int event_query(struct cw_context_name context, uint64_t event)
{
    if (is_gone(context)) /* and the event with it */
        return 1;
    switch (CW_REAL(cuEventQuery)((CUevent)(uintptr_t)event)) {
    case CUDA_SUCCESS:
        return 1;
    case CUDA_ERROR_NOT_READY:
        return 0;
    default:
        return -1;
    }
}

static CW_HOT int context_poll(struct cw_context_name context, uint64_t event, int *out_passed)
{
    CUresult rc = CW_LIKELY(is_current(context)) ? CUDA_SUCCESS : can_free(context);

    if (CW_UNLIKELY(rc != CUDA_SUCCESS))
        return (int)rc;
    rc = CW_REAL(cuCtxRecordEvent)((CUcontext)(uintptr_t)context.handle, (CUevent)(uintptr_t)event);
    if (CW_UNLIKELY(cw_fatal_code_is((int)rc)))
        return (int)rc;
    if (CW_UNLIKELY(rc != CUDA_SUCCESS)) {
        *out_passed = is_refusal(context, rc) ? CW_EVENT_REFUSED : CW_EVENT_USELESS;
        return 0;
    }
    *out_passed = CW_EVENT_REFUSED;
    rc = CW_REAL(cuEventQuery)((CUevent)(uintptr_t)event);
    if (CW_UNLIKELY(rc != CUDA_SUCCESS && rc != CUDA_ERROR_NOT_READY))
        return (int)rc;
    *out_passed = rc == CUDA_SUCCESS;
    return 0;
}

static int block_alloc(uint64_t bytes, uint64_t *out_key)
{
    CUdeviceptr dptr = 0;

    if (CW_REAL(cuMemAlloc_v2)(&dptr, bytes) != CUDA_SUCCESS)
        return -1;
    *out_key = dptr;
    return 0;
}

static int block_free(struct cw_context_name context, enum cw_kind kind, uint64_t key)
{
    int pushed;
    CUresult rc;

    if (cw_cuda_enter_context(context, &pushed) != CUDA_SUCCESS)
        return -1;
    rc = kind == CW_KIND_PINNED ? CW_REAL(cuMemFreeHost)((void *)(uintptr_t)key)
                                : CW_REAL(cuMemFree_v2)(key);
    cw_cuda_leave_context(context, pushed);
    return rc == CUDA_SUCCESS ? 0 : -1;
}

/* ---- managed memory in the place of device memory ---- */

/* The form of CUDA 8, which every driver exports: newer headers give the name to the second one. */
typedef CUresult (*advise_fn)(CUdeviceptr dptr, size_t count, CUmem_advise advice, CUdevice device);

static int can_manage(CUdevice device)
{
    static const CUdevice_attribute needed[] = {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
                                                CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS};
    int value = 0;

    for (size_t i = 0; i < CW_ARRAY_LEN(needed); i++)
        if (CW_REAL(cuDeviceGetAttribute)(&value, needed[i], device) != CUDA_SUCCESS || value == 0)
            return 0;
    return 1;
}

static int fallback_alloc(unsigned device, uint64_t bytes, uint64_t *out_key)
{
    advise_fn advise = (advise_fn)cw_real_of(CW_HOOK_cuMemAdvise);
    CUdeviceptr dptr = 0;

    if (!can_manage((CUdevice)device) ||
        CW_REAL(cuMemAllocManaged)(&dptr, bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS)
        return -1;
    if (advise(dptr, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) != CUDA_SUCCESS ||
        advise(dptr, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, (CUdevice)device) != CUDA_SUCCESS) {
        CW_REAL(cuMemFree_v2)(dptr);
        return -1;
    }
    *out_key = dptr;
    return 0;
}

/* ---- the driver's pools of stream-ordered memory ---- */

/* CUDA 11.2, and devices that have them. */
static int driver_pools(unsigned device, uint64_t out_pool[CW_DRIVER_POOLS], unsigned *out_count)
{
    CUmemoryPool first = NULL, now = NULL;

    if (!cw_real_has(CW_HOOK_cuDeviceGetDefaultMemPool) ||
        CW_REAL(cuDeviceGetDefaultMemPool)(&first, (CUdevice)device) != CUDA_SUCCESS)
        return -1;
    if (CW_REAL(cuDeviceGetMemPool)(&now, (CUdevice)device) != CUDA_SUCCESS)
        now = first;
    out_pool[0] = (uint64_t)(uintptr_t)first;
    out_pool[1] = (uint64_t)(uintptr_t)now;
    *out_count = now != first ? 2 : 1;
    return 0;
}

/* CUDA 11.3. */
static int driver_pool_use(uint64_t pool, uint64_t *out_held, uint64_t *out_used)
{
    CUmemoryPool handle = (CUmemoryPool)(uintptr_t)pool;
    cuuint64_t reserved = 0, used = 0;

    if (CW_REAL(cuMemPoolGetAttribute)(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) !=
            CUDA_SUCCESS ||
        CW_REAL(cuMemPoolGetAttribute)(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) !=
            CUDA_SUCCESS)
        return -1;
    *out_held = reserved;
    *out_used = used;
    return 0;
}

static int driver_pool_trim(uint64_t pool)
{
    return CW_REAL(cuMemPoolTrimTo)((CUmemoryPool)(uintptr_t)pool, 0) == CUDA_SUCCESS ? 0 : -1;
}

const struct cw_driver_ops cw_cuda_ops = {
    .now_ns = now_ns,
    .exact_ns = cw_clock_ns,
    .work_ns = work_ns,
    .exchange_capture_mode = exchange_capture_mode,
    .context_current = context_current,
    .has_context_ids = has_context_ids,
    .context_identity = context_identity,
    .context_facts = context_facts,
    .device_facts = device_facts,
    .device_count = device_count,
    .memory_info = memory_info,
    .context_wait = context_wait,
    .has_context_events = has_context_events,
    .event_create = event_create,
    .event_record = event_record,
    .event_query = event_query,
    .context_poll = context_poll,
    .block_alloc = block_alloc,
    .block_free = block_free,
    .fallback_alloc = fallback_alloc,
    .driver_pools = driver_pools,
    .driver_pool_use = driver_pool_use,
    .driver_pool_trim = driver_pool_trim,
};

unsigned cw_cuda_driver_version(void)
{
    int version = 0;

    return CW_REAL(cuDriverGetVersion)(&version) == CUDA_SUCCESS && version > 0 ? (unsigned)version
                                                                                : 0;
}
