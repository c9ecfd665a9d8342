/* SPDX-License-Identifier: MIT */
/* Making the nodes of graphs by hand, and asking what they do. */
#include "sim.h"

#include <string.h>

/* ---- entry points: nodes ---- */

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t ndeps,
                    const struct sim_work *work)
{
    struct sim_graph *graph = (struct sim_graph *)handle;
    struct sim_node *node;

    if (!out || !sim_object_is(handle, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    node =
        sim_graph_add(graph, sim_graph_type_of(work->task), (struct sim_node *const *)deps, ndeps);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    node->work = *work;
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                 size_t ndeps)
{
    struct sim_work work = {.task = SIM_NOTHING};

    return add(out, graph, deps, ndeps, &work);
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                     size_t ndeps, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct sim_work work = {.task = SIM_DO_CALL};
    CUresult status = params ? sim_call_parse(&work.call, params) : CUDA_ERROR_INVALID_VALUE;

    return status == CUDA_SUCCESS ? add(out, graph, deps, ndeps, &work) : status;
}

CUresult sim_cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                  size_t ndeps, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 wide = {0};

    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&wide, params, sizeof *params);
    return sim_cuGraphAddKernelNode_v2(out, graph, deps, ndeps, &wide);
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                  size_t ndeps, const CUDA_MEMCPY3D_v2 *params, CUcontext ctx)
{
    struct sim_work work = {.task = SIM_DO_COPY};
    CUresult status = params ? sim_copy_parse(&work.copy, params) : CUDA_ERROR_INVALID_VALUE;

    (void)ctx;
    return status == CUDA_SUCCESS ? add(out, graph, deps, ndeps, &work) : status;
}

CUresult sim_set_parse(struct sim_set *set, const CUDA_MEMSET_NODE_PARAMS *params)
{
    struct sim_set result;

    if (!params ||
        (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4))
        return CUDA_ERROR_INVALID_VALUE;
    result = (struct sim_set){
        .address = params->dst,
        .pitch = params->pitch,
        .width = params->width,
        .height = params->height,
        .element = params->elementSize,
        .value = params->value,
    };
    *set = result;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                  size_t ndeps, const CUDA_MEMSET_NODE_PARAMS *params,
                                  CUcontext ctx)
{
    struct sim_work work = {.task = SIM_DO_SET};
    CUresult status = sim_set_parse(&work.set, params);

    (void)ctx;
    return status == CUDA_SUCCESS ? add(out, graph, deps, ndeps, &work) : status;
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                size_t ndeps, const CUDA_HOST_NODE_PARAMS *params)
{
    struct sim_work work = {.task = SIM_DO_HOST};

    if (!params || !params->fn)
        return CUDA_ERROR_INVALID_VALUE;
    work.host.function = params->fn;
    work.host.argument = params->userData;
    return add(out, graph, deps, ndeps, &work);
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                      size_t ndeps, CUgraph child)
{
    struct sim_work work = {.task = SIM_NOTHING};
    struct sim_node *node;
    CUresult status;

    if (!sim_object_is(child, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    status = add(out, graph, deps, ndeps, &work);
    if (status != CUDA_SUCCESS)
        return status;
    node = (struct sim_node *)*out;
    node->type = CU_GRAPH_NODE_TYPE_GRAPH;
    node->child = sim_graph_copy((struct sim_graph *)child);
    return CUDA_SUCCESS;
}

static CUresult add_event(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t ndeps,
                          CUevent event, CUgraphNodeType type)
{
    struct sim_work work = {.task = SIM_DO_RECORD, .event = (struct sim_event *)event};
    CUresult status;

    if (!sim_object_is(event, SIM_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    status = add(out, graph, deps, ndeps, &work);
    if (status == CUDA_SUCCESS)
        ((struct sim_node *)*out)->type = type;
    return status;
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                       size_t ndeps, CUevent event)
{
    return add_event(out, graph, deps, ndeps, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                     size_t ndeps, CUevent event)
{
    return add_event(out, graph, deps, ndeps, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                    size_t ndeps, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    struct sim_work work = {.task = SIM_DO_ALLOC};
    CUresult status;

    if (!params || !params->bytesize ||
        params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !sim_device(params->poolProps.location.id))
        return CUDA_ERROR_INVALID_VALUE;
    work.block = sim_graph_block(params->bytesize, params->poolProps.location.id);
    if (!work.block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    status = add(out, graph, deps, ndeps, &work);
    if (status == CUDA_SUCCESS)
        params->dptr = work.block->start;
    else
        sim_graph_block_unref(work.block);
    return status;
}

CUresult sim_cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                                   size_t ndeps, CUdeviceptr address)
{
    struct sim_work work = {.task = SIM_DO_FREE, .block = sim_block_find(address)};

    if (!work.block || work.block->start != address || work.block->kind != SIM_MEM_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    return add(out, graph, deps, ndeps, &work);
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                               const CUgraphEdgeData *edges, size_t ndeps,
                               CUgraphNodeParams *params)
{
    (void)edges;
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return sim_cuGraphAddKernelNode_v2(out, graph, deps, ndeps,
                                           (const CUDA_KERNEL_NODE_PARAMS_v2 *)&params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_cuGraphAddMemcpyNode(out, graph, deps, ndeps, &params->memcpy.copyParams, NULL);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return sim_cuGraphAddMemsetNode(out, graph, deps, ndeps,
                                        (const CUDA_MEMSET_NODE_PARAMS *)&params->memset, NULL);
    case CU_GRAPH_NODE_TYPE_HOST:
        return sim_cuGraphAddHostNode(out, graph, deps, ndeps,
                                      (const CUDA_HOST_NODE_PARAMS *)&params->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return sim_cuGraphAddChildGraphNode(out, graph, deps, ndeps, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return sim_cuGraphAddEmptyNode(out, graph, deps, ndeps);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return sim_cuGraphAddEventWaitNode(out, graph, deps, ndeps, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return sim_cuGraphAddEventRecordNode(out, graph, deps, ndeps, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return sim_cuGraphAddMemAllocNode(out, graph, deps, ndeps,
                                          (CUDA_MEM_ALLOC_NODE_PARAMS *)&params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return sim_cuGraphAddMemFreeNode(out, graph, deps, ndeps, params->free.dptr);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t ndeps,
                            CUgraphNodeParams *params)
{
    return sim_cuGraphAddNode_v2(out, graph, deps, NULL, ndeps, params);
}

CUresult sim_cuGraphDestroyNode(CUgraphNode handle)
{
    struct sim_node *node = (struct sim_node *)handle, **at;
    struct sim_graph *graph;

    if (!sim_object_is(node, SIM_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    graph = node->graph;
    at = &graph->first;
    graph->last = NULL;
    while (*at) {
        struct sim_node *other = *at;
        size_t kept = 0;

        if (other == node) {
            *at = node->next;
            continue;
        }
        for (size_t i = 0; i < other->ndeps; i++)
            if (other->deps[i] != node)
                other->deps[kept++] = other->deps[i];
        other->ndeps = kept;
        graph->last = other;
        at = &other->next;
    }
    graph->nnodes--;
    sim_graph_destroy_node(node);
    return CUDA_SUCCESS;
}

/* ---- entry points: what a node does ---- */

static struct sim_node *find_node(CUgraphNode handle, CUgraphNodeType type)
{
    struct sim_node *node = (struct sim_node *)handle;

    return sim_object_is(node, SIM_NODE) && node->type == type ? node : NULL;
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_GRAPH);

    if (!out || !node)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)node->child;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

    if (!params || !node)
        return CUDA_ERROR_INVALID_VALUE;
    memset(params, 0, sizeof *params);
    params->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params->poolProps.location.id = node->work.block->device;
    params->bytesize = node->work.block->size;
    params->dptr = node->work.block->start;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *out)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_MEM_FREE);

    if (!out || !node)
        return CUDA_ERROR_INVALID_VALUE;
    *out = node->work.block->start;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_KERNEL);

    if (!params || !node)
        return CUDA_ERROR_INVALID_VALUE;
    *params = node->work.call.shown;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *params)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_HOST);

    if (!params || !node)
        return CUDA_ERROR_INVALID_VALUE;
    params->fn = node->work.host.function;
    params->userData = node->work.host.argument;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_MEMSET);
    const struct sim_set *set;

    if (!params || !node)
        return CUDA_ERROR_INVALID_VALUE;
    set = &node->work.set;
    *params = (CUDA_MEMSET_NODE_PARAMS){set->address, set->pitch, set->value,
                                        set->element, set->width, set->height};
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *out)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);

    if (!out || !node)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUevent)node->work.event;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent *out)
{
    struct sim_node *node = find_node(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);

    if (!out || !node)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUevent)node->work.event;
    return CUDA_SUCCESS;
}
