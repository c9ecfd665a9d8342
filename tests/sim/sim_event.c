/* SPDX-License-Identifier: MIT */
/* Events: a reference to the operation that was recorded last.
 *
 * An event never recorded counts as done. Recording in a capturing stream makes it a captured
 * event, which only streams may wait for. Guarded by sim.lock.
 */
#include "sim_lazy.h"

#include <stdlib.h>

#define VALID_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static void drop_capture(struct sim_event *event)
{
    free(event->deps);
    event->deps = NULL;
    event->ndeps = 0;
    event->capture = NULL;
}

void sim_event_settle(struct sim_event *event, struct sim_op *op)
{
    drop_capture(event);
    sim_op_unref(event->op);
    event->op = op ? sim_op_ref(op) : NULL;
}

void sim_event_destroy(struct sim_event *event)
{
    sim_event_settle(event, NULL);
    sim_object_destroy(event);
}

static CUresult find(struct sim_event **out, CUevent handle)
{
    struct sim_event *event = (struct sim_event *)handle;

    if (!sim_object_is(event, SIM_EVENT)) {
        sim_misuse("stale_handle", "%s was given what is no event", sim_thread()->row->symbol);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = event;
    return CUDA_SUCCESS;
}

static bool is_captured(struct sim_event *event)
{
    if (event->capture && sim_object_is(event->capture, SIM_CAPTURE) &&
        event->capture->head.id == event->capture_id)
        return true;
    drop_capture(event);
    return false;
}

/* The host may not look at an event that exists only inside a capture. */
static CUresult refuse_captured(struct sim_event *event)
{
    if (!is_captured(event))
        return CUDA_SUCCESS;
    event->capture->is_invalid = true;
    sim_misuse("capture", "%s of a captured event", sim_thread()->row->symbol);
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult sim_cuEventCreate(CUevent *out, unsigned int flags)
{
    struct sim_event *event;

    if (!out || (flags & ~(unsigned)VALID_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    event = sim_object_create(SIM_EVENT);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->ctx = sim_context_current();
    event->flags = flags;
    *out = (CUevent)event;
    return CUDA_SUCCESS;
}

CUresult sim_cuEventDestroy_v2(CUevent handle)
{
    struct sim_event *event;
    CUresult status = find(&event, handle);

    if (status == CUDA_SUCCESS)
        sim_event_destroy(event);
    return status;
}

CUresult sim_cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags)
{
    struct sim_work record = {.task = SIM_DO_RECORD};
    struct sim_stream *stream;
    struct sim_event *event;
    struct sim_op *op;
    CUresult status = sim_stream_check(&stream, stream_handle);

    if (status == CUDA_SUCCESS)
        status = find(&event, handle);
    if (status != CUDA_SUCCESS)
        return status;
    if (event->ctx != stream->ctx && !event->ctx->green && !stream->ctx->green)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
        return sim_capture_record(stream, event, flags);
    op = sim_stream_append(stream, &record);
    sim_event_settle(event, op);
    sim_op_unref(op);
    return CUDA_SUCCESS;
}

CUresult sim_cuEventRecord(CUevent event, CUstream stream)
{
    return sim_cuEventRecordWithFlags(event, stream, 0);
}

CUresult sim_cuEventQuery(CUevent handle)
{
    struct sim_event *event;
    CUresult status = find(&event, handle);

    if (status == CUDA_SUCCESS)
        status = refuse_captured(event);
    if (status != CUDA_SUCCESS)
        return status;
    if (event->ctx->sticky)
        return event->ctx->sticky;
    sim_engine_nudge(event->op);
    return sim_op_is_done(event->op) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult sim_cuEventSynchronize(CUevent handle)
{
    struct sim_event *event;
    CUresult status = find(&event, handle);

    if (status == CUDA_SUCCESS)
        status = refuse_captured(event);
    if (status != CUDA_SUCCESS)
        return status;
    sim_op_wait(event->op);
    if (sim.is_down)
        return CUDA_ERROR_DEINITIALIZED;
    sim_pool_trim_all(event->ctx->device);
    return event->ctx->sticky;
}

CUresult sim_cuEventElapsedTime_v2(float *milliseconds, CUevent start_handle, CUevent end_handle)
{
    struct sim_event *start, *end;
    CUresult status = find(&start, start_handle);

    if (status == CUDA_SUCCESS)
        status = find(&end, end_handle);
    if (status == CUDA_SUCCESS)
        status = refuse_captured(start);
    if (status == CUDA_SUCCESS)
        status = refuse_captured(end);
    if (status != CUDA_SUCCESS)
        return status;
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!start->op || !end->op || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!start->op->is_done || !end->op->is_done)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)(int64_t)(end->op->done_ns - start->op->done_ns) / 1e6);
    return CUDA_SUCCESS;
}

/* ---- events of whole contexts ---- */

static CUresult find_context(struct sim_context **out, CUcontext handle)
{
    struct sim_context *ctx = handle ? (struct sim_context *)handle : sim_context_current();

    if (!sim_object_is(ctx, SIM_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (ctx->ncaptures > 0) {
        sim_misuse("capture", "%s of a context with a capturing stream", sim_thread()->row->symbol);
        sim_capture_invalidate_context(ctx);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    *out = ctx;
    return ctx->sticky;
}

static void join_context(struct sim_op *join, struct sim_context *ctx)
{
    for (struct sim_stream *stream = ctx->streams; stream; stream = stream->next)
        sim_op_depend(join, stream->tail);
    sim_op_depend(join, ctx->orphan);
}

struct join_green {
    struct sim_op *join;
    int device;
};

static void join_green(void *object, void *argument)
{
    struct sim_green *green = object;
    struct join_green *self = argument;

    if (green->ctx->device == self->device)
        join_context(self->join, green->ctx);
}

CUresult sim_cuCtxRecordEvent(CUcontext handle, CUevent event_handle)
{
    struct sim_work record = {.task = SIM_DO_RECORD};
    struct sim_context *ctx;
    struct sim_event *event;
    struct sim_op *op;
    CUresult status = find_context(&ctx, handle);

    if (status == CUDA_SUCCESS && ctx->freeing) {
        sim_op_wait(ctx->freeing);
        status = find_context(&ctx, handle);
    }
    if (status == CUDA_SUCCESS)
        status = find(&event, event_handle);
    if (status != CUDA_SUCCESS)
        return status;
    if (event->ctx != ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    op = sim_op_create(ctx, &record);
    join_context(op, ctx);
    if (ctx->is_primary)
        sim_object_visit(SIM_GREEN, join_green, &(struct join_green){op, ctx->device});
    sim_op_ref(op);
    sim_op_submit(op);
    sim_event_settle(event, op);
    sim_op_unref(op);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxWaitEvent(CUcontext handle, CUevent event_handle)
{
    struct sim_context *ctx;
    struct sim_event *event;
    struct sim_op *barrier;
    CUresult status = find_context(&ctx, handle);

    if (status == CUDA_SUCCESS)
        status = find(&event, event_handle);
    if (status != CUDA_SUCCESS || sim_op_is_done(event->op))
        return status;
    for (struct sim_stream *stream = ctx->streams; stream; stream = stream->next) {
        struct sim_op *op = sim_op_create(ctx, NULL);

        sim_op_depend(op, event->op);
        sim_stream_order(stream, op);
        sim_op_submit(op);
    }
    barrier = sim_op_create(ctx, NULL);
    sim_op_depend(barrier, event->op);
    sim_op_depend(barrier, ctx->barrier);
    sim_op_unref(ctx->barrier);
    ctx->barrier = sim_op_ref(barrier);
    sim_op_submit(barrier);
    return CUDA_SUCCESS;
}
