/* SPDX-License-Identifier: MIT */
/* Streams: what follows what.
 *
 * A stream is the last operation in it, its tail. Work appended depends on the tail; in addition
 * the legacy stream and the blocking streams of a context wait for each other, and work of a
 * capturing stream goes to its graph instead. A thread's own streams end with it. Guarded by
 * sim.lock.
 */
#include "sim_lazy.h"

#include <stdlib.h>
#include <string.h>

#define VALID_FLAGS CU_STREAM_NON_BLOCKING

static bool is_blocking(const struct sim_stream *stream)
{
    return !stream->is_legacy && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static void set_tail(struct sim_stream *stream, struct sim_op *op)
{
    sim_op_unref(stream->tail);
    stream->tail = op ? sim_op_ref(op) : NULL;
}

struct sim_stream *sim_stream_create(struct sim_context *ctx, unsigned flags, int priority)
{
    struct sim_stream *stream = sim_object_create(SIM_STREAM);

    if (!stream)
        return NULL;
    stream->ctx = ctx;
    stream->flags = flags;
    stream->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    stream->next = ctx->streams;
    ctx->streams = stream;
    set_tail(stream, ctx->barrier);
    return stream;
}

CUresult sim_stream_open(CUstream *out, struct sim_context *ctx, unsigned flags, int priority)
{
    struct sim_stream *stream;

    if (!sim_device_charge(ctx->device, sim.config.stream_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream = sim_stream_create(ctx, flags, priority);
    if (!stream) {
        sim_device_discharge(ctx->device, sim.config.stream_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->charged = sim.config.stream_bytes;
    *out = (CUstream)stream;
    return CUDA_SUCCESS;
}

/* The work of a busy stream outlives it, and still counts as work of the context. */
static void orphan(struct sim_stream *stream)
{
    struct sim_context *ctx = stream->ctx;
    struct sim_op *join;

    if (sim_op_is_done(stream->tail))
        return;
    join = sim_op_create(ctx, NULL);
    sim_op_depend(join, stream->tail);
    sim_op_depend(join, ctx->orphan);
    sim_op_unref(ctx->orphan);
    ctx->orphan = sim_op_ref(join);
    sim_op_submit(join);
}

void sim_stream_destroy(struct sim_stream *stream)
{
    struct sim_stream **at = &stream->ctx->streams;

    sim_capture_leave(stream);
    orphan(stream);
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    set_tail(stream, NULL);
    sim_device_discharge(stream->ctx->device, stream->charged);
    free(stream->deps);
    sim_object_destroy(stream);
}

/* ---- the streams of a thread ---- */

static pthread_key_t thread_key; /* value: the thread's id, once it has a stream */

static void destroy_streams(void *object, void *thread)
{
    struct sim_stream *stream = ((struct sim_context *)object)->streams, *next;

    for (; stream; stream = next) {
        next = stream->next;
        if (stream->is_per_thread && stream->thread == (uintptr_t)thread)
            sim_stream_destroy(stream);
    }
}

static void thread_ends(void *thread)
{
    pthread_mutex_lock(&sim.lock);
    if (!sim.is_down && !sim.is_forked && sim.config.ends_own)
        sim_object_visit(SIM_CONTEXT, destroy_streams, thread);
    pthread_mutex_unlock(&sim.lock);
}

__attribute__((constructor)) static void watch_threads(void)
{
    pthread_key_create(&thread_key, thread_ends);
}

__attribute__((destructor)) static void unwatch_threads(void)
{
    pthread_key_delete(thread_key);
}

static struct sim_stream *per_thread_stream(struct sim_context *ctx)
{
    uint64_t thread = sim_thread()->id;
    struct sim_stream *stream = ctx->streams;

    while (stream && !(stream->is_per_thread && stream->thread == thread))
        stream = stream->next;
    if (!stream && (stream = sim_stream_create(ctx, 0, 0))) {
        stream->is_per_thread = true;
        stream->thread = thread;
        pthread_setspecific(thread_key, (void *)(uintptr_t)thread);
    }
    return stream;
}

CUresult sim_stream_find(struct sim_stream **out, CUstream handle)
{
    struct sim_context *ctx = sim_context_current();
    struct sim_stream *stream = (struct sim_stream *)handle;

    if (!handle)
        handle = sim_thread()->is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle == CU_STREAM_LEGACY)
        stream = ctx ? ctx->legacy : NULL;
    else if (handle == CU_STREAM_PER_THREAD)
        stream = ctx ? per_thread_stream(ctx) : NULL;
    else if (!sim_object_is(stream, SIM_STREAM))
        stream = NULL;
    if (!stream)
        return ctx ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
    *out = stream;
    return stream->ctx->sticky;
}

CUresult sim_stream_check(struct sim_stream **out, CUstream handle)
{
    CUresult status = sim_stream_find(out, handle);

    if (status == CUDA_SUCCESS && (*out)->is_legacy && sim_capture_blocks_legacy((*out)->ctx)) {
        sim_misuse("capture", "%s used the legacy stream while a stream is captured",
                   sim_thread()->row->symbol);
        sim_capture_invalidate_context((*out)->ctx);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return status;
}

void sim_stream_order(struct sim_stream *stream, struct sim_op *op)
{
    struct sim_context *ctx = stream->ctx;

    sim_op_depend(op, stream->tail);
    if (stream->is_legacy) {
        sim_op_depend(op, ctx->orphan);
        for (struct sim_stream *other = ctx->streams; other; other = other->next)
            if (is_blocking(other))
                sim_op_depend(op, other->tail);
    } else if (is_blocking(stream)) {
        sim_op_depend(op, ctx->legacy->tail);
    }
    set_tail(stream, op);
}

struct sim_op *sim_stream_append(struct sim_stream *stream, const struct sim_work *work)
{
    struct sim_op *op = sim_op_create(stream->ctx, work);

    op->stream = stream;
    sim_stream_order(stream, op);
    sim_op_ref(op);
    sim_op_submit(op);
    return op;
}

CUresult sim_stream_submit(struct sim_stream *stream, const struct sim_work *work)
{
    CUresult status;

    /* Captured work is checked when it runs: the memory of a graph does not exist yet. */
    if (stream->capture)
        return sim_capture_add(stream, work);
    status = sim_work_check(work);
    if (status != CUDA_SUCCESS) {
        free(work->owned);
        return status;
    }
    sim_op_unref(sim_stream_append(stream, work));
    return stream->ctx->sticky;
}

static CUresult refuse_capturing(struct sim_stream *stream)
{
    stream->capture->is_invalid = true;
    sim_misuse("capture", "%s waits for a stream that is captured", sim_thread()->row->symbol);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sim_stream_run(struct sim_stream *stream, const struct sim_work *work)
{
    struct sim_op *op;
    CUresult status = sim_work_check(work);

    if (status == CUDA_SUCCESS && stream->capture)
        status = refuse_capturing(stream);
    if (status != CUDA_SUCCESS) {
        free(work->owned);
        return status;
    }
    op = sim_op_create(stream->ctx, work);
    op->stream = stream;
    op->is_awaited = true;
    sim_stream_order(stream, op);
    sim_op_ref(op);
    sim_op_submit(op);
    sim_op_wait(op);
    sim_op_unref(op);
    return sim.is_down ? CUDA_ERROR_DEINITIALIZED : stream->ctx->sticky;
}

/* ---- entry points ---- */

CUresult sim_cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    if (!out || (flags & ~(unsigned)VALID_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_stream_open(out, sim_context_current(), flags, priority);
}

CUresult sim_cuStreamCreate(CUstream *out, unsigned int flags)
{
    return sim_cuStreamCreateWithPriority(out, flags, 0);
}

CUresult sim_cuStreamDestroy_v2(CUstream handle)
{
    struct sim_stream *stream = (struct sim_stream *)handle;

    if (!sim_object_is(stream, SIM_STREAM) || stream->is_legacy || stream->is_per_thread) {
        sim_misuse("stale_handle", "cuStreamDestroy of what is no stream of the application");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_stream_destroy(stream);
    return CUDA_SUCCESS;
}

static CUresult find_idle_capture(struct sim_stream **out, CUstream handle)
{
    CUresult status = sim_stream_check(out, handle);

    if (status == CUDA_SUCCESS && (*out)->capture)
        status = refuse_capturing(*out);
    return status;
}

CUresult sim_cuStreamSynchronize(CUstream handle)
{
    struct sim_work nothing = {.task = SIM_NOTHING};
    struct sim_stream *stream;
    CUresult status = find_idle_capture(&stream, handle);

    if (status == CUDA_SUCCESS)
        status = sim_stream_run(stream, &nothing);
    if (status == CUDA_SUCCESS)
        sim_pool_trim_all(stream->ctx->device);
    return status;
}

CUresult sim_cuStreamQuery(CUstream handle)
{
    struct sim_stream *stream;
    CUresult status = find_idle_capture(&stream, handle);
    bool is_done;

    if (status != CUDA_SUCCESS)
        return status;
    sim_engine_nudge(stream->tail);
    is_done = sim_op_is_done(stream->tail);
    if (stream->is_legacy)
        for (struct sim_stream *other = stream->ctx->streams; other; other = other->next)
            is_done = is_done && (!is_blocking(other) || sim_op_is_done(other->tail));
    return is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult sim_cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags)
{
    struct sim_event *event = (struct sim_event *)event_handle;
    struct sim_work nothing = {.task = SIM_NOTHING};
    struct sim_stream *stream;
    struct sim_op *op;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!sim_object_is(event, SIM_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture || event->capture)
        return sim_capture_wait(stream, event, flags);
    if (sim_op_is_done(event->op))
        return CUDA_SUCCESS;
    op = sim_op_create(stream->ctx, &nothing);
    sim_op_depend(op, event->op);
    sim_stream_order(stream, op);
    sim_op_submit(op);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamAddCallback(CUstream handle, CUstreamCallback function, void *argument,
                                 unsigned int flags)
{
    struct sim_work work = {.task = SIM_DO_CALLBACK};
    struct sim_stream *stream;
    CUresult status = find_idle_capture(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!function || flags)
        return CUDA_ERROR_INVALID_VALUE;
    work.callback.function = function;
    work.callback.stream = handle;
    work.callback.argument = argument;
    return sim_stream_submit(stream, &work);
}

CUresult sim_cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument)
{
    struct sim_work work = {.task = SIM_DO_HOST};
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    work.host.function = function;
    work.host.argument = argument;
    return sim_stream_submit(stream, &work);
}

static CUresult submit_memop(CUstream handle, const struct sim_memop *memop)
{
    struct sim_work work = {.task = SIM_DO_MEMOP, .memop = *memop};
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!sim_range_is_live(memop->address, memop->is_wide ? 8 : 4, "memory operation"))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_stream_submit(stream, &work);
}

CUresult sim_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                     unsigned int flags)
{
    struct sim_memop memop = {.address = address, .value = value, .flags = flags};

    return submit_memop(stream, &memop);
}

CUresult sim_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned int flags)
{
    struct sim_memop memop = {address, value, flags, .is_wide = true};

    return submit_memop(stream, &memop);
}

CUresult sim_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                    unsigned int flags)
{
    struct sim_memop memop = {address, value, flags, .is_wait = true};

    return submit_memop(stream, &memop);
}

CUresult sim_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                    unsigned int flags)
{
    struct sim_memop memop = {address, value, flags, .is_wide = true, .is_wait = true};

    return submit_memop(stream, &memop);
}

static CUresult submit_param(CUstream stream, const CUstreamBatchMemOpParams *param)
{
    switch (param->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return sim_cuStreamWaitValue32_v2(stream, param->waitValue.address, param->waitValue.value,
                                          param->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return sim_cuStreamWriteValue32_v2(stream, param->writeValue.address,
                                           param->writeValue.value, param->writeValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return sim_cuStreamWaitValue64_v2(stream, param->waitValue.address,
                                          param->waitValue.value64, param->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return sim_cuStreamWriteValue64_v2(stream, param->writeValue.address,
                                           param->writeValue.value64, param->writeValue.flags);
    default:
        return CUDA_SUCCESS; /* flushes and barriers: every write is at once visible here */
    }
}

CUresult sim_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                   CUstreamBatchMemOpParams *params, unsigned int flags)
{
    CUresult status = CUDA_SUCCESS;

    (void)flags;
    for (unsigned i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = submit_param(stream, &params[i]);
    return status;
}

CUresult sim_cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status == CUDA_SUCCESS && !flags)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *flags = stream->flags;
    return status;
}

CUresult sim_cuStreamGetPriority(CUstream handle, int *priority)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status == CUDA_SUCCESS && !priority)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *priority = stream->priority;
    return status;
}

CUresult sim_cuStreamGetId(CUstream handle, unsigned long long *id)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status == CUDA_SUCCESS && !id)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *id = stream->head.id;
    return status;
}

CUresult sim_cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status == CUDA_SUCCESS && !ctx)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *ctx = (CUcontext)stream->ctx;
    return status;
}

CUresult sim_cuStreamGetCtx_v2(CUstream handle, CUcontext *ctx, CUgreenCtx *green)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!ctx || !green)
        return CUDA_ERROR_INVALID_VALUE;
    *green = (CUgreenCtx)stream->ctx->green;
    *ctx = (CUcontext)stream->ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status == CUDA_SUCCESS && !device)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *device = stream->ctx->device;
    return status;
}

CUresult sim_cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t length,
                                    unsigned int flags)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    (void)length, (void)flags;
    if (status == CUDA_SUCCESS && !sim_block_live(address))
        status = CUDA_ERROR_INVALID_VALUE;
    return status;
}

CUresult sim_cuStreamCopyAttributes(CUstream to, CUstream from)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, to);

    return status == CUDA_SUCCESS ? sim_stream_find(&stream, from) : status;
}

CUresult sim_cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute,
                                  CUstreamAttrValue *value)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                                  const CUstreamAttrValue *value)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status == CUDA_SUCCESS && value && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        stream->priority = value->priority;
    return status;
}
