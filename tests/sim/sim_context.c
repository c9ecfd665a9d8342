/* SPDX-License-Identifier: MIT */
/* Contexts: their birth and death, each thread's stack of them, primary contexts, peers, limits.
 *
 * A context is named by its address and its id together: a destroyed one's address comes back with
 * the next create, so a thread's stack remembers both. Guarded by sim.lock.
 */
#include "sim_graphics.h"
#include "sim_lazy.h"
#include "sim_observe.h"

#include <string.h>

static bool is_usable(struct sim_context *ctx)
{
    return sim_object_is(ctx, SIM_CONTEXT) && !ctx->is_dead;
}

struct sim_context *sim_context_current(void)
{
    struct sim_thread *self = sim_thread();
    struct sim_context *ctx;

    if (self->depth == 0)
        return NULL;
    ctx = self->stack[self->depth - 1].ctx;
    if (!ctx || !is_usable(ctx) || ctx->head.id != self->stack[self->depth - 1].id)
        return NULL;
    return ctx;
}

static CUresult push(struct sim_context *ctx)
{
    struct sim_thread *self = sim_thread();

    if (self->depth == SIM_STACK)
        return CUDA_ERROR_INVALID_CONTEXT;
    self->stack[self->depth].ctx = ctx;
    self->stack[self->depth].id = ctx ? ctx->head.id : 0;
    self->depth++;
    return CUDA_SUCCESS;
}

static void set_defaults(struct sim_context *ctx, int device, unsigned flags)
{
    ctx->device = device;
    ctx->flags = flags;
    ctx->api = 3020;
    ctx->refs = 1;
    ctx->shared = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    ctx->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

static CUresult give_life(struct sim_context *ctx)
{
    if (!sim_device_charge(ctx->device, sim.config.context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    ctx->legacy = sim_stream_create(ctx, 0, 0);
    ctx->legacy->is_legacy = true;
    return CUDA_SUCCESS;
}

/* The handle of a device's primary context never becomes another context's. */
static struct sim_context *take_slot(struct sim_context *slot)
{
    if (!slot)
        return sim_object_create(SIM_CONTEXT);
    memset(slot, 0, sizeof *slot);
    slot->head.type = SIM_CONTEXT;
    slot->head.is_alive = true;
    slot->head.id = ++sim.next_id;
    return slot;
}

static void drop_slot(struct sim_context *ctx)
{
    if (ctx == sim.devices[ctx->device].primary_slot)
        ctx->head.is_alive = false;
    else
        sim_object_destroy(ctx);
}

static CUresult create(struct sim_context **out, struct sim_context *slot, int device,
                       unsigned flags)
{
    struct sim_context *ctx = take_slot(slot);
    CUresult status;

    if (!ctx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    set_defaults(ctx, device, flags);
    status = give_life(ctx);
    if (status != CUDA_SUCCESS) {
        drop_slot(ctx);
        return status;
    }
    sim_observe(&(struct cusim_event){.is_context = 1, .device = device, .context = ctx->head.id});
    *out = ctx;
    return CUDA_SUCCESS;
}

CUresult sim_context_create(struct sim_context **out, int device, unsigned flags)
{
    return create(out, NULL, device, flags);
}

static void free_block(struct sim_block *block, void *argument)
{
    const struct sim_context *ctx = argument;

    if (block->ctx != ctx || block->ctx_id != ctx->head.id)
        return;
    if (block->arena)
        sim_block_destroy(block);
    else if (block->kind == SIM_MEM_REGISTERED) {
        sim_block_count(block, -1);
        sim_block_remove(block);
    }
}

static void free_event(void *object, void *argument)
{
    struct sim_event *event = object;

    if (event->ctx == argument)
        sim_event_destroy(event);
}

static void free_array(void *object, void *argument)
{
    struct sim_array *array = object;

    if (array->ctx == argument)
        sim_object_destroy(array);
}

/* Everything that does not outlive its context. Physical memory and pools do. */
static void take_life(struct sim_context *ctx)
{
    sim_capture_invalidate_context(ctx);
    sim_context_wait(ctx);
    sim_module_forget(ctx);
    sim_graphics_forget(ctx);
    sim_block_visit(free_block, ctx);
    sim_object_visit(SIM_ARRAY, free_array, ctx);
    sim_object_visit(SIM_MIPMAP, free_array, ctx);
    sim_object_visit(SIM_EVENT, free_event, ctx);
    while (ctx->streams)
        sim_stream_destroy(ctx->streams);
    sim_op_unref(ctx->orphan);
    sim_op_unref(ctx->barrier);
    ctx->orphan = ctx->barrier = NULL;
    sim_device_discharge(ctx->device, sim.config.context_bytes);
    sim_observe(&(struct cusim_event){
        .is_context = 1, .is_free = 1, .device = ctx->device, .context = ctx->head.id});
}

static void forget_on_stack(const struct sim_context *ctx)
{
    struct sim_thread *self = sim_thread();

    if (self->depth > 0 && self->stack[self->depth - 1].ctx == ctx &&
        self->stack[self->depth - 1].id == ctx->head.id)
        self->depth--;
}

void sim_context_destroy(struct sim_context *ctx)
{
    ctx->is_dead = true;
    take_life(ctx);
    ctx->is_dead = false;
    drop_slot(ctx);
}

struct sim_op *sim_context_join(struct sim_context *ctx)
{
    struct sim_op *join = sim_op_create(ctx, NULL);

    for (struct sim_stream *stream = ctx->streams; stream; stream = stream->next)
        sim_op_depend(join, stream->tail);
    sim_op_depend(join, ctx->orphan);
    sim_op_ref(join);
    sim_op_submit(join);
    return join;
}

void sim_context_wait(struct sim_context *ctx)
{
    struct sim_op *join;

    if (ctx->live_ops == 0)
        return;
    join = sim_context_join(ctx);
    sim_op_wait(join);
    sim_op_unref(join);
}

CUresult sim_context_synchronize(struct sim_context *ctx)
{
    CUresult status;

    if (ctx->ncaptures > 0) {
        sim_misuse("capture", "%s of a context with a capturing stream", sim_thread()->row->symbol);
        sim_capture_invalidate_context(ctx);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    sim_context_wait(ctx);
    sim_pool_trim_all(ctx->device);
    if (sim.is_down)
        return CUDA_ERROR_DEINITIALIZED;
    status = ctx->sticky;
    if (sim.config.is_lazy)
        sim_lazy_pause(); /* what others submit meanwhile has not been waited for */
    return status;
}

/* ---- entry points: life ---- */

CUresult sim_cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
    struct sim_context *ctx;
    CUresult status;

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    status = sim_context_create(&ctx, device, flags);
    if (status == CUDA_SUCCESS)
        status = push(ctx);
    if (status == CUDA_SUCCESS)
        *out = (CUcontext)ctx;
    return status;
}

CUresult sim_cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int n, unsigned int flags,
                            CUdevice device)
{
    (void)params, (void)n;
    return sim_cuCtxCreate_v2(out, flags, device);
}

CUresult sim_cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags,
                            CUdevice device)
{
    (void)params;
    return sim_cuCtxCreate_v2(out, flags, device);
}

CUresult sim_cuCtxDestroy_v2(CUcontext handle)
{
    struct sim_context *ctx = (struct sim_context *)handle;

    if (!is_usable(ctx) || ctx->is_primary || ctx->green)
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_context_destroy(ctx);
    forget_on_stack(ctx);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxAttach(CUcontext *out, unsigned int flags)
{
    struct sim_context *ctx = sim_context_current();

    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    ctx->refs++;
    *out = (CUcontext)ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxDetach(CUcontext handle)
{
    struct sim_context *ctx = (struct sim_context *)handle;

    if (!is_usable(ctx) || ctx->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    return --ctx->refs > 0 ? CUDA_SUCCESS : sim_cuCtxDestroy_v2(handle);
}

/* ---- entry points: a thread's stack ---- */

CUresult sim_cuCtxPushCurrent_v2(CUcontext handle)
{
    struct sim_context *ctx = (struct sim_context *)handle;

    return is_usable(ctx) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *out)
{
    struct sim_thread *self = sim_thread();

    if (self->depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    self->depth--;
    if (out)
        *out = (CUcontext)self->stack[self->depth].ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext handle)
{
    struct sim_context *ctx = (struct sim_context *)handle;
    struct sim_thread *self = sim_thread();

    if (ctx && !is_usable(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (self->depth > 0)
        self->depth--;
    return ctx ? push(ctx) : CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCurrent(CUcontext *out)
{
    struct sim_thread *self = sim_thread();

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = self->depth > 0 ? (CUcontext)self->stack[self->depth - 1].ctx : NULL;
    return CUDA_SUCCESS;
}

static struct sim_context *find(CUcontext handle)
{
    struct sim_context *ctx = (struct sim_context *)handle;

    if (!ctx)
        return sim_context_current();
    return is_usable(ctx) ? ctx : NULL;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
    struct sim_context *ctx = find(handle);

    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = ctx->device;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    return sim_cuCtxGetDevice_v2(device, NULL);
}

CUresult sim_cuCtxSynchronize_v2(CUcontext handle)
{
    struct sim_context *ctx = find(handle);

    return ctx ? sim_context_synchronize(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxSynchronize(void)
{
    return sim_context_synchronize(sim_context_current());
}

CUresult sim_cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    struct sim_context *ctx = find(handle);

    if (!ctx)
        return handle ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = ctx->head.id;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
    struct sim_context *ctx = find(handle);

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = ctx->api;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetFlags(unsigned int *flags)
{
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = sim_context_current()->flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetFlags(unsigned int flags)
{
    sim_context_current()->flags = flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetLimit(size_t *value, CUlimit limit)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = sim_context_current()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetLimit(CUlimit limit, size_t value)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    sim_context_current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCacheConfig(CUfunc_cache *config)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = sim_context_current()->cache;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCacheConfig(CUfunc_cache config)
{
    sim_context_current()->cache = config;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = sim_context_current()->shared;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    sim_context_current()->shared = config;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxResetPersistingL2Cache(void)
{
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type)
{
    (void)param, (void)type;
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult sim_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    struct sim_context *ctx = sim_context_current(), *other = (struct sim_context *)peer;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_usable(other) || other->device == ctx->device)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!sim.config.has_peers)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (ctx->peers & 1ull << other->device)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    ctx->peers |= 1ull << other->device;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peer)
{
    struct sim_context *ctx = sim_context_current(), *other = (struct sim_context *)peer;

    if (!is_usable(other))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!(ctx->peers & 1ull << other->device))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    ctx->peers &= ~(1ull << other->device);
    return CUDA_SUCCESS;
}

/* ---- entry points: primary contexts ---- */

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary) {
        CUresult status =
            create(&device->primary, device->primary_slot, ordinal, device->primary_flags);

        if (status != CUDA_SUCCESS)
            return status;
        device->primary->is_primary = true;
        device->primary_slot = device->primary;
    }
    device->primary_refs++;
    *out = (CUcontext)device->primary;
    return CUDA_SUCCESS;
}

static void end_primary(struct sim_device *device)
{
    struct sim_context *ctx = device->primary;

    device->primary = NULL;
    device->primary_refs = 0;
    sim_context_destroy(ctx);
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary_refs == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (device->primary_refs == 1)
        end_primary(device);
    else
        device->primary_refs--;
    return CUDA_SUCCESS;
}

/* The references die with the resources: the next retain makes a new context. */
CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary)
        end_primary(device);
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags)
        *flags = device->primary ? device->primary->flags : device->primary_flags;
    if (active)
        *active = device->primary != NULL;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    device->primary_flags = flags;
    if (device->primary)
        device->primary->flags = flags;
    return CUDA_SUCCESS;
}
