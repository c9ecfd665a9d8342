/* SPDX-License-Identifier: MIT */
/* Stream capture: the mode rules, and the recording of work as nodes of a graph.
 *
 * A capture lives from cuStreamBeginCapture to cuStreamEndCapture; streams join it by waiting for
 * an event recorded in it. An illegal call marks it invalid, which the end reports. A context knows
 * how many captures it has, so that everything else costs nothing without one.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static unsigned ncaptures;

struct question {
    const struct sim_thread *self;
    bool is_forbidden, invalidates;
};

static void ask(void *object, void *argument)
{
    struct sim_capture *capture = object;
    struct question *question = argument;
    bool is_own = capture->thread == question->self->id;
    bool concerns = is_own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                           : question->self->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                 capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

    if (!concerns)
        return;
    question->is_forbidden = true;
    if (question->invalidates)
        capture->is_invalid = true;
}

static bool forbids(bool invalidates)
{
    struct question question = {.self = sim_thread(), .invalidates = invalidates};

    if (ncaptures == 0 || question.self->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    sim_object_visit(SIM_CAPTURE, ask, &question);
    return question.is_forbidden;
}

bool sim_capture_forbids(void)
{
    return forbids(false);
}

void sim_capture_invalidate_visible(void)
{
    forbids(true);
}

void sim_capture_invalidate_context(struct sim_context *ctx)
{
    for (struct sim_stream *stream = ctx->streams; stream; stream = stream->next)
        if (stream->capture)
            stream->capture->is_invalid = true;
}

bool sim_capture_blocks_legacy(struct sim_context *ctx)
{
    if (ctx->ncaptures == 0)
        return false;
    for (struct sim_stream *stream = ctx->streams; stream; stream = stream->next)
        if (stream->capture && !(stream->flags & CU_STREAM_NON_BLOCKING))
            return true;
    return false;
}

void sim_capture_set_deps(struct sim_stream *stream, struct sim_node *const *deps, size_t n)
{
    struct sim_node **copy = malloc((n + 1) * sizeof *copy);

    if (!copy)
        abort();
    if (n)
        memcpy(copy, deps, n * sizeof *copy);
    free(stream->deps);
    stream->deps = copy;
    stream->ndeps = n;
}

static void add_deps(struct sim_stream *stream, struct sim_node *const *deps, size_t n)
{
    struct sim_node **all = realloc(stream->deps, (stream->ndeps + n + 1) * sizeof *all);

    if (!all)
        abort();
    stream->deps = all;
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;

        while (j < stream->ndeps && all[j] != deps[i])
            j++;
        if (j == stream->ndeps)
            all[stream->ndeps++] = deps[i];
    }
}

static struct sim_node *append(struct sim_stream *stream, const struct sim_work *work)
{
    struct sim_node *node = sim_graph_add(stream->capture->graph, sim_graph_type_of(work->task),
                                          stream->deps, stream->ndeps);

    if (node) {
        node->work = *work;
        sim_capture_set_deps(stream, &node, 1);
    }
    return node;
}

CUresult sim_capture_add(struct sim_stream *stream, const struct sim_work *work)
{
    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return append(stream, work) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_capture_alloc(CUdeviceptr *out, size_t bytes, int device, struct sim_stream *stream)
{
    struct sim_work work = {.task = SIM_DO_ALLOC};

    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    work.block = sim_graph_block(bytes, device);
    if (!work.block || !append(stream, &work))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = work.block->start;
    return CUDA_SUCCESS;
}

CUresult sim_capture_free(CUdeviceptr address, struct sim_stream *stream)
{
    struct sim_work work = {.task = SIM_DO_FREE, .block = sim_block_find(address)};

    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!work.block || work.block->start != address || work.block->kind != SIM_MEM_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    return append(stream, &work) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, unsigned flags)
{
    struct sim_work work = {.task = SIM_DO_RECORD, .event = event};

    if (stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags & CU_EVENT_RECORD_EXTERNAL)
        return append(stream, &work) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    sim_event_settle(event, NULL);
    event->capture = stream->capture;
    event->capture_id = stream->capture->head.id;
    event->deps = malloc((stream->ndeps + 1) * sizeof *event->deps);
    if (!event->deps)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (stream->ndeps)
        memcpy(event->deps, stream->deps, stream->ndeps * sizeof *event->deps);
    event->ndeps = stream->ndeps;
    return CUDA_SUCCESS;
}

static bool is_in_capture(const struct sim_event *event)
{
    return event->capture && sim_object_is(event->capture, SIM_CAPTURE) &&
           event->capture->head.id == event->capture_id;
}

static CUresult wait_external(struct sim_stream *stream, struct sim_event *event)
{
    struct sim_work work = {.task = SIM_NOTHING};
    struct sim_node *node = append(stream, &work);

    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    node->work.event = event;
    return CUDA_SUCCESS;
}

static CUresult break_capture(struct sim_capture *capture, CUresult status)
{
    capture->is_invalid = true;
    sim_misuse("capture", "%s broke a capture with error %d", sim_thread()->row->symbol, status);
    return status;
}

CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event, unsigned flags)
{
    if (stream->capture && stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && (flags & CU_EVENT_WAIT_EXTERNAL))
        return wait_external(stream, event);
    if (!is_in_capture(event)) {
        if (!stream->capture)
            return CUDA_SUCCESS; /* the capture of the event has ended */
        return break_capture(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (event->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->is_legacy)
        return break_capture(event->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (stream->capture && stream->capture != event->capture) {
        stream->capture->is_invalid = true;
        return break_capture(event->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    stream->capture = event->capture;
    add_deps(stream, event->deps, event->ndeps);
    return CUDA_SUCCESS;
}

/* ---- entry points ---- */

static CUresult begin(CUstream handle, struct sim_graph *graph, CUstreamCaptureMode mode,
                      struct sim_stream **out)
{
    struct sim_stream *stream;
    struct sim_capture *capture;
    CUresult status = sim_stream_find(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    capture = sim_object_create(SIM_CAPTURE);
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->owns_graph = !graph;
    capture->graph = graph ? graph : sim_graph_create();
    capture->origin = stream;
    capture->ctx = stream->ctx;
    capture->mode = mode;
    capture->thread = sim_thread()->id;
    stream->capture = capture;
    stream->ndeps = 0;
    stream->ctx->ncaptures++;
    ncaptures++;
    *out = stream;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    struct sim_stream *stream;

    return begin(handle, NULL, mode, &stream);
}

CUresult sim_cuStreamBeginCapture(CUstream handle)
{
    return sim_cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
                                         const CUgraphNode *deps, const CUgraphEdgeData *edges,
                                         size_t ndeps, CUstreamCaptureMode mode)
{
    struct sim_graph *graph = (struct sim_graph *)graph_handle;
    struct sim_stream *stream;
    CUresult status;

    (void)edges;
    if (!sim_object_is(graph, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    status = begin(handle, graph, mode, &stream);
    if (status == CUDA_SUCCESS)
        sim_capture_set_deps(stream, (struct sim_node *const *)deps, ndeps);
    return status;
}

static void mark(struct sim_node *node)
{
    if (node->index)
        return;
    node->index = 1;
    for (size_t i = 0; i < node->ndeps; i++)
        mark(node->deps[i]);
}

/* Every stream of the capture must have been waited for by the origin. */
static bool is_joined(const struct sim_capture *capture)
{
    bool is_joined = true;

    for (struct sim_node *node = capture->graph->first; node; node = node->next)
        node->index = 0;
    for (size_t i = 0; i < capture->origin->ndeps; i++)
        mark(capture->origin->deps[i]);
    for (struct sim_stream *stream = capture->ctx->streams; stream; stream = stream->next)
        if (stream->capture == capture)
            for (size_t i = 0; i < stream->ndeps; i++)
                is_joined = is_joined && stream->deps[i]->index;
    return is_joined;
}

static void leave_all(struct sim_capture *capture, struct sim_context *ctx)
{
    for (struct sim_stream *stream = ctx->streams; stream; stream = stream->next) {
        if (stream->capture == capture) {
            stream->capture = NULL;
            stream->ndeps = 0;
        }
    }
}

static void leave_context(void *object, void *argument)
{
    leave_all(argument, object);
}

static void finish(struct sim_capture *capture)
{
    sim_object_visit(SIM_CONTEXT, leave_context, capture);
    if (sim_object_is(capture->ctx, SIM_CONTEXT) && capture->ctx->ncaptures > 0)
        capture->ctx->ncaptures--;
    ncaptures--;
    sim_object_destroy(capture);
}

/* The stream is being destroyed. Without its origin a capture can never be ended. */
void sim_capture_leave(struct sim_stream *stream)
{
    struct sim_capture *capture = stream->capture;

    if (!capture)
        return;
    capture->is_invalid = true;
    stream->capture = NULL;
    if (capture->origin != stream)
        return;
    if (capture->owns_graph)
        sim_graph_destroy(capture->graph);
    finish(capture);
}

CUresult sim_cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    struct sim_stream *stream;
    struct sim_capture *capture;
    struct sim_graph *graph;
    CUresult status = sim_stream_find(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    capture = stream->capture;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sim_thread()->id)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture->origin != stream)
        return break_capture(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->is_invalid)
        status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(capture))
        status = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    graph = capture->graph;
    if (status != CUDA_SUCCESS && capture->owns_graph) {
        sim_graph_destroy(graph);
        graph = NULL;
    }
    finish(capture);
    if (out)
        *out = (CUgraph)graph;
    return status;
}

static CUstreamCaptureStatus status_of(const struct sim_stream *stream)
{
    if (!stream->capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult sim_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = status_of(stream);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id,
                                       CUgraph *graph, const CUgraphNode **deps,
                                       const CUgraphEdgeData **edges, size_t *ndeps)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = status_of(stream);
    if (edges)
        *edges = NULL;
    if (!stream->capture)
        return CUDA_SUCCESS;
    if (id)
        *id = stream->capture->head.id;
    if (graph)
        *graph = (CUgraph)stream->capture->graph;
    if (deps)
        *deps = (const CUgraphNode *)stream->deps;
    if (ndeps)
        *ndeps = stream->ndeps;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *out, cuuint64_t *id,
                                       CUgraph *graph, const CUgraphNode **deps, size_t *ndeps)
{
    return sim_cuStreamGetCaptureInfo_v3(stream, out, id, graph, deps, NULL, ndeps);
}

CUresult sim_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *out, cuuint64_t *id)
{
    return sim_cuStreamGetCaptureInfo_v3(stream, out, id, NULL, NULL, NULL, NULL);
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *deps, size_t ndeps,
                                               unsigned int flags)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_find(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        sim_capture_set_deps(stream, (struct sim_node **)deps, ndeps);
    else
        add_deps(stream, (struct sim_node **)deps, ndeps);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *deps,
                                                  const CUgraphEdgeData *edges, size_t ndeps,
                                                  unsigned int flags)
{
    (void)edges;
    return sim_cuStreamUpdateCaptureDependencies(stream, deps, ndeps, flags);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    struct sim_thread *self = sim_thread();
    CUstreamCaptureMode old = self->mode;

    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    self->mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
