/* SPDX-License-Identifier: MIT */
/* Graphs that are built node by node, and the objects that live as long as a graph. */
#include "rt.h"

#include <string.h>

#define CALL(call) (rt_begin() == cudaSuccess ? rt_end(RT->call) : cudaPeekAtLastError())

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *deps,
                                         cudaGraphEdgeData *edges, size_t *n)
{
    return CALL(cuGraphNodeGetDependencies_v2(node, deps, (CUgraphEdgeData *)edges, n));
}

/* The runtime's description of a node is the driver's, but for two kinds. */
static cudaError_t translate(CUgraphNodeParams *to, const struct cudaGraphNodeParams *from)
{
    _Static_assert(sizeof *to == sizeof *from, "descriptions of nodes have one size");
    memcpy(to, from, sizeof *to);
    if (from->type == cudaGraphNodeTypeMemcpy) {
        memset(&to->memcpy, 0, sizeof to->memcpy);
        to->memcpy.copyParams = rt_region(&from->memcpy.copyParams);
        return rt_end(RT->cuCtxGetCurrent(&to->memcpy.copyCtx));
    }
    if (from->type == cudaGraphNodeTypeKernel) {
        to->kernel.func = rt_function(from->kernel.func);
        to->kernel.kern = NULL;
        return to->kernel.func ? cudaSuccess : rt_note(cudaErrorInvalidDeviceFunction);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *deps,
                             const cudaGraphEdgeData *edges, size_t ndeps,
                             struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams same;
    cudaError_t status = params ? rt_begin() : rt_note(cudaErrorInvalidValue);

    if (status == cudaSuccess)
        status = translate(&same, params);
    if (status == cudaSuccess)
        status = rt_end(
            RT->cuGraphAddNode_v2(out, graph, deps, (const CUgraphEdgeData *)edges, ndeps, &same));
    if (status == cudaSuccess && params->type == cudaGraphNodeTypeMemAlloc)
        params->alloc.dptr = (void *)same.alloc.dptr;
    return status;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *out, cudaGraph_t graph,
                                             unsigned int value, unsigned int flags)
{
    CUcontext current = NULL;
    cudaError_t status = rt_begin();

    if (status == cudaSuccess)
        status = rt_end(RT->cuCtxGetCurrent(&current));
    if (status == cudaSuccess)
        status = rt_end(RT->cuGraphConditionalHandleCreate((CUgraphConditionalHandle *)out, graph,
                                                           current, value, flags));
    return status;
}

/* ---- user objects ---- */

cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *pointer, cudaHostFn_t destroy,
                                 unsigned int count, unsigned int flags)
{
    return CALL(cuUserObjectCreate((CUuserObject *)out, pointer, destroy, count, flags));
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    return CALL(cuUserObjectRetain((CUuserObject)object, count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    return CALL(cuUserObjectRelease((CUuserObject)object, count));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags)
{
    return CALL(cuGraphRetainUserObject(graph, (CUuserObject)object, count, flags));
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count)
{
    return CALL(cuGraphReleaseUserObject(graph, (CUuserObject)object, count));
}
