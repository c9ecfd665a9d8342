/* SPDX-License-Identifier: MIT */
/* Executable graphs: instantiation, launch, and the memory launches need.
 *
 * An executable graph holds a copy whose nodes are in an order that respects the edges. A launch
 * makes one operation per node between an operation that starts and one that ends it; launches of
 * one executable graph follow each other. Guarded by sim.lock.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* ---- topological order ---- */

static bool place(struct sim_node *node, struct sim_node ***end)
{
    if (node->index == 2)
        return true;
    if (node->index == 1)
        return false; /* a cycle */
    node->index = 1;
    for (size_t i = 0; i < node->ndeps; i++)
        if (!place(node->deps[i], end))
            return false;
    node->index = 2;
    **end = node;
    *end = &node->sorted_next;
    return true;
}

/* Relinks the nodes; false, with the order unchanged, if there is none. */
static bool sort_nodes(struct sim_graph *graph)
{
    struct sim_node *first = NULL, **end = &first;

    for (struct sim_node *node = graph->first; node; node = node->next)
        node->index = 0;
    for (struct sim_node *node = graph->first; node; node = node->next)
        if (!place(node, &end))
            return false;
    *end = NULL;
    graph->first = first;
    for (struct sim_node *node = first; node; node = node->sorted_next) {
        node->next = node->sorted_next;
        graph->last = node;
        if (node->child && !sort_nodes(node->child))
            return false;
    }
    return true;
}

/* ---- launching ---- */

static CUresult charge_block(struct sim_block *block)
{
    struct sim_device *device = sim_device(block->device);

    if (block->charged)
        return CUDA_SUCCESS;
    if (!sim_device_charge(block->device, block->span))
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->charged = block->span;
    device->graph_reserved += block->span;
    if (device->graph_reserved > device->graph_reserved_high)
        device->graph_reserved_high = device->graph_reserved;
    return CUDA_SUCCESS;
}

/* Checks before anything is queued: a launch happens as a whole or not at all. */
static CUresult prepare(struct sim_graph *graph, bool frees_first)
{
    CUresult status = CUDA_SUCCESS;

    for (struct sim_node *node = graph->first; node && status == CUDA_SUCCESS; node = node->next) {
        if (node->child)
            status = prepare(node->child, frees_first);
        if (node->work.task != SIM_DO_ALLOC)
            continue;
        if (node->work.block->state == SIM_LIVE && !frees_first)
            return CUDA_ERROR_INVALID_VALUE; /* still allocated by the launch before */
        status = charge_block(node->work.block);
    }
    return status;
}

static void revive(struct sim_block *block)
{
    struct sim_device *device = sim_device(block->device);

    if (block->state == SIM_FREEING)
        block->skip_frees++;
    if (block->state == SIM_IDLE) {
        sim_block_count(block, 1);
        device->graph_used += block->span;
        if (device->graph_used > device->graph_used_high)
            device->graph_used_high = device->graph_used;
    }
    block->state = SIM_LIVE;
}

static void queue_graph(struct sim_graph *graph, struct sim_context *ctx, struct sim_op *start,
                        struct sim_op *end);

static struct sim_op *queue_child(struct sim_node *node, struct sim_context *ctx,
                                  struct sim_op *start)
{
    struct sim_op *end = sim_op_create(ctx, NULL);

    queue_graph(node->child, ctx, start, end);
    sim_op_ref(end);
    sim_op_submit(end);
    return end;
}

static struct sim_op *queue_node(struct sim_node *node, struct sim_context *ctx,
                                 struct sim_op *start)
{
    struct sim_work work = node->work;
    bool is_wait = node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    struct sim_op *op;

    work.owned = NULL;
    if (node->is_disabled || is_wait || node->child)
        work.task = SIM_NOTHING;
    if (work.task == SIM_DO_ALLOC)
        revive(work.block);
    if (work.task == SIM_DO_FREE)
        work.block->state = SIM_FREEING;
    op = sim_op_create(ctx, &work);
    sim_op_depend(op, start);
    for (size_t i = 0; i < node->ndeps; i++)
        sim_op_depend(op, (struct sim_op *)node->deps[i]->index);
    if (is_wait && sim_object_is(node->work.event, SIM_EVENT))
        sim_op_depend(op, node->work.event->op);
    if (work.task == SIM_DO_RECORD && sim_object_is(work.event, SIM_EVENT))
        sim_event_settle(work.event, op);
    sim_op_ref(op);
    sim_op_submit(op);
    return op;
}

static void queue_graph(struct sim_graph *graph, struct sim_context *ctx, struct sim_op *start,
                        struct sim_op *end)
{
    for (struct sim_node *node = graph->first; node; node = node->next) {
        struct sim_op *op = queue_node(node, ctx, start);

        if (node->child) {
            struct sim_op *after = queue_child(node, ctx, op);

            sim_op_unref(op);
            op = after;
        }
        sim_op_depend(end, op);
        node->index = (size_t)op;
    }
    for (struct sim_node *node = graph->first; node; node = node->next)
        sim_op_unref((struct sim_op *)node->index);
}

static CUresult launch(struct sim_exec *exec, struct sim_stream *stream)
{
    bool frees_first = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    CUresult status = prepare(exec->graph, frees_first);
    struct sim_op *start, *end;

    if (status != CUDA_SUCCESS)
        return status;
    start = sim_op_create(stream->ctx, NULL);
    sim_op_depend(start, exec->last);
    sim_stream_order(stream, start);
    sim_op_ref(start);
    sim_op_submit(start);
    end = sim_op_create(stream->ctx, NULL);
    queue_graph(exec->graph, stream->ctx, start, end);
    sim_stream_order(stream, end);
    sim_op_unref(exec->last);
    exec->last = sim_op_ref(end);
    sim_op_submit(end);
    sim_op_unref(start);
    return stream->ctx->sticky;
}

/* ---- entry points ---- */

/* The functions of the kernels are loaded here; memory of allocation nodes comes with a launch. */
static CUresult load_functions(struct sim_graph *graph)
{
    CUresult status = CUDA_SUCCESS;

    for (struct sim_node *node = graph->first; node && status == CUDA_SUCCESS; node = node->next) {
        if (node->child)
            status = load_functions(node->child);
        else if (node->work.task == SIM_DO_CALL)
            status = sim_function_load(node->work.call.function);
    }
    return status;
}

static void destroy(struct sim_exec *exec)
{
    sim_device_discharge(exec->device, exec->charged);
    sim_graph_destroy(exec->graph);
    sim_object_destroy(exec);
}

static CUresult charge_exec(struct sim_exec *exec)
{
    const struct sim_context *ctx = sim_context_current();

    exec->device = ctx ? ctx->device : 0;
    if (!sim_device_charge(exec->device, sim.config.graph_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->charged = sim.config.graph_bytes;
    return load_functions(exec->graph);
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    struct sim_exec *exec;
    CUresult status;

    if (!out || !sim_object_is(handle, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    exec = sim_object_create(SIM_EXEC);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->graph = sim_graph_copy((struct sim_graph *)handle);
    exec->flags = flags;
    status = sort_nodes(exec->graph) ? charge_exec(exec) : CUDA_ERROR_INVALID_VALUE;
    if (status != CUDA_SUCCESS)
        destroy(exec);
    else
        *out = (CUgraphExec)exec;
    return status;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    return instantiate(out, graph, flags);
}

CUresult sim_cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log,
                                   size_t length)
{
    if (node)
        *node = NULL;
    if (log && length)
        *log = '\0';
    return instantiate(out, graph, 0);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUresult status = params ? instantiate(out, graph, params->flags) : CUDA_ERROR_INVALID_VALUE;

    if (params) {
        params->hErrNode_out = NULL;
        params->result_out =
            status == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    }
    return status;
}

static CUresult find(struct sim_exec **out, CUgraphExec handle)
{
    if (!sim_object_is(handle, SIM_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct sim_exec *)handle;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    struct sim_stream *stream;
    struct sim_exec *exec;
    CUresult status = sim_stream_check(&stream, stream_handle);

    if (status == CUDA_SUCCESS)
        status = find(&exec, handle);
    if (status != CUDA_SUCCESS)
        return status;
    if (stream->capture) {
        stream->capture->is_invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return launch(exec, stream);
}

CUresult sim_cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
    struct sim_stream *stream;
    struct sim_exec *exec;
    CUresult status = sim_stream_check(&stream, stream_handle);

    if (status == CUDA_SUCCESS)
        status = find(&exec, handle);
    return status == CUDA_SUCCESS ? prepare(exec->graph, true) : status;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec handle)
{
    struct sim_exec *exec;
    CUresult status = find(&exec, handle);

    if (status != CUDA_SUCCESS)
        return status;
    sim_op_wait(exec->last); /* the driver defers this; nothing can tell the difference */
    sim_op_unref(exec->last);
    destroy(exec);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
    struct sim_exec *exec;
    CUresult status = flags ? find(&exec, handle) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *flags = exec->flags;
    return status;
}

static struct sim_node *node_in(struct sim_exec *exec, CUgraphNode original, CUgraphNodeType type)
{
    for (struct sim_node *node = exec->graph->first; node; node = node->next)
        if (node->origin == (struct sim_node *)original && node->type == type)
            return node;
    return NULL;
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode original,
                                               const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct sim_exec *exec;
    struct sim_node *node;

    if (!params || find(&exec, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    node = node_in(exec, original, CU_GRAPH_NODE_TYPE_KERNEL);
    return node ? sim_call_parse(&node->work.call, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode original,
                                            const CUDA_MEMCPY3D_v2 *params, CUcontext ctx)
{
    struct sim_exec *exec;
    struct sim_node *node;

    (void)ctx;
    if (!params || find(&exec, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    node = node_in(exec, original, CU_GRAPH_NODE_TYPE_MEMCPY);
    return node ? sim_copy_parse(&node->work.copy, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec handle, CUgraphNode original,
                                            const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
    struct sim_exec *exec;
    struct sim_node *node;

    (void)ctx;
    if (find(&exec, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    node = node_in(exec, original, CU_GRAPH_NODE_TYPE_MEMSET);
    return node ? sim_set_parse(&node->work.set, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int enabled)
{
    struct sim_exec *exec;

    if (find(&exec, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sim_node *node = exec->graph->first; node; node = node->next)
        if (node->origin == (struct sim_node *)original)
            node->is_disabled = !enabled;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int *enabled)
{
    struct sim_exec *exec;

    if (!enabled || find(&exec, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = 1;
    for (struct sim_node *node = exec->graph->first; node; node = node->next)
        if (node->origin == (struct sim_node *)original)
            *enabled = !node->is_disabled;
    return CUDA_SUCCESS;
}

/* ---- a device's memory for graphs ---- */

static void trim_block(struct sim_block *block, int device)
{
    if (block->kind != SIM_MEM_GRAPH || block->state != SIM_IDLE || block->device != device)
        return;
    sim_device_discharge(device, block->charged);
    sim_device(device)->graph_reserved -= block->charged;
    block->charged = 0;
}

static void trim_node(void *object, void *argument)
{
    struct sim_node *node = object;

    if (node->work.task == SIM_DO_ALLOC && node->work.block)
        trim_block(node->work.block, *(const int *)argument);
}

CUresult sim_cuDeviceGraphMemTrim(CUdevice device)
{
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_object_visit(SIM_NODE, trim_node, &device);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                          void *value)
{
    struct sim_device *device = sim_device(ordinal);
    cuuint64_t *out = value;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        *out = device->graph_used;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        *out = device->graph_used_high;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        *out = device->graph_reserved;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        *out = device->graph_reserved_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim_cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                          void *value)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(cuuint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        device->graph_used_high = device->graph_used;
    else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        device->graph_reserved_high = device->graph_reserved;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
