/* SPDX-License-Identifier: MIT */
/* Bodies of families CAPTURE and GRAPH. */
#include "hook/bodies/entries.h" /* first */
#include "core/device/device.h"
#include "hook/bodies/observe.h"

#include <string.h>

#include "base/mem.h"
#include "core/device/context.h"
#include "core/account/site.h"
#include "core/process/gate.h"

/* ---- captures ---- */

static uint64_t stream_key(CUstream stream, enum cw_stream_flavour flavour)
{
    if (stream == NULL && flavour == CW_STREAM_THREAD)
        stream = CW_STREAM_PER_THREAD;
    return (uint64_t)(uintptr_t)stream;
}

/* Asks after a failed end: an attempt by the wrong thread leaves the capture running. */
static int has_ended(CUstream stream, enum cw_stream_flavour flavour)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (stream == NULL && flavour == CW_STREAM_THREAD)
        stream = CW_STREAM_PER_THREAD;
    return CW_REAL(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS ||
           status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* 1 if the capture is followed; then begun must come after. */
static int begin_capture(void)
{
    if (!cw_session_is_armed() || cw_thread.depth != 0)
        return 0;
    cw_capture_begin();
    return 1;
}

static CUresult capture_begun(int followed, CUresult rc, CUstream stream,
                              enum cw_stream_flavour flavour, CUstreamCaptureMode mode)
{
    enum cw_capture_start start =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? CW_CAPTURE_GLOBAL : CW_CAPTURE_APART;
    uint8_t device;

    if (followed)
        cw_capture_started(stream_key(stream, flavour), cw_context_current(&device),
                           rc == CUDA_SUCCESS ? start : CW_CAPTURE_FAILED);
    return rc;
}

/* Before the end: number, as cw_capture_find has it. */
static uint64_t capture_of(CUstream stream, enum cw_stream_flavour flavour)
{
    return cw_session_is_armed() ? cw_capture_find(stream_key(stream, flavour)) : 0;
}

static CUresult capture_ended(uint64_t number, CUresult rc, CUstream stream,
                              enum cw_stream_flavour flavour)
{
    if (number != 0 && (rc == CUDA_SUCCESS || has_ended(stream, flavour)))
        cw_capture_ended(stream_key(stream, flavour), number);
    return rc;
}

#define CAPTURE_BEGINS(symbol, flavour, mode)                                                      \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        int followed = begin_capture();                                                            \
                                                                                                   \
        return capture_begun(followed, CW_REAL(symbol) CW_ARGS_##symbol, a1, flavour, mode);       \
    }

#define CAPTURE_ENDS(symbol, flavour)                                                              \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        uint64_t number = capture_of(a1, flavour);                                                 \
                                                                                                   \
        return capture_ended(number, CW_REAL(symbol) CW_ARGS_##symbol, a1, flavour);               \
    }

/* The oldest form has no mode, and that of the last two is not told: as strict as can be. */
CAPTURE_BEGINS(cuStreamBeginCapture, CW_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL)
CAPTURE_BEGINS(cuStreamBeginCapture_ptsz, CW_STREAM_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL)
CAPTURE_BEGINS(cuStreamBeginCapture_v2, CW_STREAM_LEGACY, a2)
CAPTURE_BEGINS(cuStreamBeginCapture_v2_ptsz, CW_STREAM_THREAD, a2)
CAPTURE_BEGINS(cuStreamBeginCaptureToGraph, CW_STREAM_LEGACY, a6)
CAPTURE_BEGINS(cuStreamBeginCaptureToGraph_ptsz, CW_STREAM_THREAD, a6)
CAPTURE_BEGINS(cuStreamBeginRecaptureToGraph, CW_STREAM_LEGACY, a2)
CAPTURE_BEGINS(cuStreamBeginRecaptureToGraph_ptsz, CW_STREAM_THREAD, a2)
CAPTURE_BEGINS(cuStreamBeginCaptureToCig, CW_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL)
CAPTURE_BEGINS(cuStreamBeginCaptureToCig_ptsz, CW_STREAM_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL)

CAPTURE_ENDS(cuStreamEndCapture, CW_STREAM_LEGACY)
CAPTURE_ENDS(cuStreamEndCapture_ptsz, CW_STREAM_THREAD)
CAPTURE_ENDS(cuStreamEndCaptureToCig, CW_STREAM_LEGACY)
CAPTURE_ENDS(cuStreamEndCaptureToCig_ptsz, CW_STREAM_THREAD)

/* A stream may be destroyed while it captures; that ends the capture. */
CW_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream)
{
    uint64_t number = capture_of(hStream, CW_STREAM_LEGACY);
    CUresult rc = CW_REAL(cuStreamDestroy_v2)(hStream);

    if (rc == CUDA_SUCCESS)
        cw_capture_ended(stream_key(hStream, CW_STREAM_LEGACY), number);
    return rc;
}

CW_EXPORT CUresult cuStreamDestroy(CUstream hStream)
{
    uint64_t number = capture_of(hStream, CW_STREAM_LEGACY);
    CUresult rc = CW_REAL(cuStreamDestroy)(hStream);

    if (rc == CUDA_SUCCESS)
        cw_capture_ended(stream_key(hStream, CW_STREAM_LEGACY), number);
    return rc;
}

/* ---- memory nodes ---- */

static void set_node(const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct cw_request *out)
{
    *out = (struct cw_request){.kind = CW_KIND_GRAPH,
                               .key = params->dptr,
                               .bytes = params->bytesize,
                               .held = params->bytesize};
    if (params->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        params->poolProps.location.id >= 0 && params->poolProps.location.id < CW_MAX_DEVICES)
        out->device = (uint8_t)params->poolProps.location.id;
}

static void remember_node(uint32_t api, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    struct cw_request request;

    set_node(params, &request);
    cw_graph_node_added(&request, cw_site_here(api, CW_KIND_GRAPH, request.device));
}

CW_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                          const CUgraphNode *dependencies, size_t numDependencies,
                                          CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuGraphAddMemAllocNode, CW_CALLER))
        return CW_REAL(cuGraphAddMemAllocNode)(phGraphNode, hGraph, dependencies, numDependencies,
                                               nodeParams);
    do
        rc = CW_REAL(cuGraphAddMemAllocNode)(phGraphNode, hGraph, dependencies, numDependencies,
                                             nodeParams);
    while (cw_call_again(&call, rc));
    if (rc == CUDA_SUCCESS)
        remember_node(call.api, nodeParams);
    cw_call_leave();
    cw_call_note(CW_HOOK_cuGraphAddMemAllocNode, rc, CW_CALLER);
    return rc;
}

CW_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         CUdeviceptr dptr)
{
    CUresult rc =
        CW_REAL(cuGraphAddMemFreeNode)(phGraphNode, hGraph, dependencies, numDependencies, dptr);

    if (rc == CUDA_SUCCESS)
        cw_graph_free_node_added();
    return rc;
}

/* With headers older than 12.2 the node's stack is that of its graph's instantiation. */
static void remember_generic_node(struct cw_call *call, CUresult rc, CUgraphNodeParams *params)
{
    (void)call;
    if (rc != CUDA_SUCCESS)
        return;
#if CUDA_VERSION >= 12020
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.dptr = params->alloc.dptr,
                                            .bytesize = params->alloc.bytesize,
                                            .poolProps = params->alloc.poolProps};

        remember_node(call->api, &alloc);
    } else if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        cw_graph_free_node_added();
    }
#else
    (void)params;
    cw_graph_free_node_added();
#endif
}

/* The nodes report their last parameters. */
#define ADDS_NODE(symbol, node)                                                                    \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        do                                                                                         \
            rc = CW_REAL(symbol) CW_ARGS_##symbol;                                                 \
        while (cw_call_again(&call, rc));                                                          \
        remember_generic_node(&call, rc, node);                                                    \
        cw_call_leave();                                                                           \
        cw_call_note(CW_HOOK_##symbol, rc, CW_CALLER);                                             \
        return rc;                                                                                 \
    }

ADDS_NODE(cuGraphAddNode, a5)
ADDS_NODE(cuGraphAddNode_v2, a6)
ADDS_NODE(cuGraphAddNode_v3, a6)

/* ---- executable graphs ---- */

#define CHILD_DEPTH_MAX 16

/* Addresses of a graph's memory nodes, children included. */
struct memory_nodes {
    uint64_t *allocs, *frees; /* from cw_mem */
    uint32_t alloc_count, alloc_capacity;
    uint32_t free_count, free_capacity;
    uint32_t api;
};

static void append(uint64_t **list, uint32_t *count, uint32_t *capacity, uint64_t value)
{
    if (*count == *capacity) {
        uint32_t wanted = *capacity ? *capacity * 2 : 32;
        uint64_t *bigger = cw_mem_alloc(wanted * sizeof(*bigger));

        if (bigger == NULL)
            return;
        if (*list != NULL) {
            memcpy(bigger, *list, *count * sizeof(*bigger));
            cw_mem_free(*list, *capacity * sizeof(*bigger));
        }
        *list = bigger;
        *capacity = wanted;
    }
    (*list)[(*count)++] = value;
}

static void look_at_graph(CUgraph graph, struct memory_nodes *out, unsigned depth);

static void look_at_node(CUgraphNode node, struct memory_nodes *out, unsigned depth)
{
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUgraphNodeType type;
    CUdeviceptr freed;
    CUgraph child;

    if (CW_REAL(cuGraphNodeGetType)(node, &type) != CUDA_SUCCESS)
        return;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
        CW_REAL(cuGraphMemAllocNodeGetParams)(node, &alloc) == CUDA_SUCCESS) {
        if (cw_graph_node_site(alloc.dptr) == 0)
            remember_node(out->api, &alloc);
        append(&out->allocs, &out->alloc_count, &out->alloc_capacity, alloc.dptr);
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
               CW_REAL(cuGraphMemFreeNodeGetParams)(node, &freed) == CUDA_SUCCESS) {
        append(&out->frees, &out->free_count, &out->free_capacity, freed);
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < CHILD_DEPTH_MAX &&
               CW_REAL(cuGraphChildGraphNodeGetGraph)(node, &child) == CUDA_SUCCESS) {
        look_at_graph(child, out, depth + 1);
    }
}

static void look_at_graph(CUgraph graph, struct memory_nodes *out, unsigned depth)
{
    CUgraphNode *nodes;
    size_t count = 0, capacity;

    if (CW_REAL(cuGraphGetNodes)(graph, NULL, &count) != CUDA_SUCCESS || count == 0)
        return;
    capacity = count;
    nodes = cw_mem_alloc(capacity * sizeof(CUgraphNode));
    if (nodes == NULL)
        return;
    if (CW_REAL(cuGraphGetNodes)(graph, nodes, &count) == CUDA_SUCCESS)
        for (size_t i = 0; i < count && i < capacity; i++)
            look_at_node(nodes[i], out, depth);
    cw_mem_free(nodes, capacity * sizeof(CUgraphNode));
}

/* Removes from both lists what the graph itself both allocates and frees. */
static void drop_pairs(struct memory_nodes *nodes)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < nodes->free_count; i++) {
        uint32_t k = 0;

        while (k < nodes->alloc_count && nodes->allocs[k] != nodes->frees[i])
            k++;
        if (k < nodes->alloc_count)
            nodes->allocs[k] = nodes->allocs[--nodes->alloc_count];
        else
            nodes->frees[kept++] = nodes->frees[i];
    }
    nodes->free_count = kept;
}

static void account_exec(struct cw_call *call, CUresult rc, const CUgraphExec *exec, CUgraph graph)
{
    struct memory_nodes nodes = {.api = call->api};

    if (rc == CUDA_SUCCESS && cw_graph_has_memory_nodes()) {
        look_at_graph(graph, &nodes, 0);
        drop_pairs(&nodes);
        cw_graph_instantiated((uint64_t)(uintptr_t)*exec, nodes.allocs, nodes.alloc_count,
                              nodes.frees, nodes.free_count);
    }
    if (nodes.allocs != NULL)
        cw_mem_free(nodes.allocs, nodes.alloc_capacity * sizeof(*nodes.allocs));
    if (nodes.frees != NULL)
        cw_mem_free(nodes.frees, nodes.free_capacity * sizeof(*nodes.frees));
    cw_call_leave();
}

#define INSTANTIATES(symbol)                                                                       \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        do                                                                                         \
            rc = CW_REAL(symbol) CW_ARGS_##symbol;                                                 \
        while (cw_call_again(&call, rc));                                                          \
        account_exec(&call, rc, a1, a2);                                                           \
        cw_call_note(CW_HOOK_##symbol, rc, CW_CALLER);                                             \
        return rc;                                                                                 \
    }

INSTANTIATES(cuGraphInstantiate)
INSTANTIATES(cuGraphInstantiate_v2)
INSTANTIATES(cuGraphInstantiateWithFlags)
INSTANTIATES(cuGraphInstantiateWithParams)
INSTANTIATES(cuGraphInstantiateWithParams_ptsz)

typedef CUresult (*launch_fn)(CUgraphExec exec, CUstream stream);

static CUresult launch(enum cw_hook hook, CUgraphExec exec, CUstream stream, void *caller)
{
    launch_fn real = (launch_fn)cw_real_of(hook);
    CUresult rc = real(exec, stream);
    struct cw_call call = {.caller = caller};

    while (cw_call_observe(&call, hook, rc))
        rc = real(exec, stream);
    if (rc == CUDA_SUCCESS && cw_graph_has_memory_nodes() && cw_session_is_armed())
        cw_graph_launched((uint64_t)(uintptr_t)exec, cw_session_now());
    return rc;
}

CW_EXPORT CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch(CW_HOOK_cuGraphLaunch, hGraphExec, hStream, CW_CALLER);
}

CW_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch(CW_HOOK_cuGraphLaunch_ptsz, hGraphExec, hStream, CW_CALLER);
}

/* Memory that a launch allocated stays allocated (CUDA programming guide, graph memory nodes). */
CW_EXPORT CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    if (cw_session_is_armed())
        cw_graph_exec_destroyed((uint64_t)(uintptr_t)hGraphExec);
    return CW_REAL(cuGraphExecDestroy)(hGraphExec);
}

/* What graphs held unused is the device's again, and nothing else may make us ask. */
static void trimmed(CUresult rc, CUdevice device)
{
    if (rc == CUDA_SUCCESS && cw_call_on(device) != 0 && cw_session_is_armed() &&
        cw_thread.depth == 0)
        cw_device_sample_now((uint8_t)device, cw_call_api_text(CW_HOOK_cuDeviceGraphMemTrim));
}

CW_OBSERVED_BODY(cuDeviceGraphMemTrim, .is_once = 1, trimmed(rc, a1))
