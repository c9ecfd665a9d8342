/* SPDX-License-Identifier: MIT */
/* Graphs: their nodes and edges, and the memory of their allocation nodes.
 *
 * A graph owns its nodes in creation order; a node owns its child graph and shares the block of an
 * allocation node with the copies of it that executable graphs hold. Guarded by sim.lock.
 */
#include "sim_user.h"

#include <stdlib.h>
#include <string.h>

CUgraphNodeType sim_graph_type_of(enum sim_task task)
{
    static const CUgraphNodeType types[] = {
        [SIM_NOTHING] = CU_GRAPH_NODE_TYPE_EMPTY,
        [SIM_DO_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
        [SIM_DO_SET] = CU_GRAPH_NODE_TYPE_MEMSET,
        [SIM_DO_CALL] = CU_GRAPH_NODE_TYPE_KERNEL,
        [SIM_DO_HOST] = CU_GRAPH_NODE_TYPE_HOST,
        [SIM_DO_CALLBACK] = CU_GRAPH_NODE_TYPE_HOST,
        [SIM_DO_MEMOP] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        [SIM_DO_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE,
        [SIM_DO_ALLOC] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        [SIM_DO_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
    };

    return types[task];
}

/* ---- the memory of allocation nodes ---- */

struct sim_block *sim_graph_block(size_t bytes, int device)
{
    struct sim_block *block = sim_block_create(SIM_MEM_GRAPH, device, bytes, false);

    if (!block)
        return NULL;
    sim_block_count(block, -1);
    block->state = SIM_IDLE;
    block->refs = 1;
    return block;
}

static void discard(struct sim_block *block)
{
    if (block->charged)
        sim_device(block->device)->graph_reserved -= block->charged;
    sim_block_destroy(block);
}

void sim_graph_block_release(struct sim_block *block)
{
    sim_block_count(block, -1);
    sim_device(block->device)->graph_used -= block->span;
    block->state = SIM_IDLE;
    if (block->refs == 0)
        discard(block);
}

void sim_graph_block_unref(struct sim_block *block)
{
    if (--block->refs == 0 && block->state == SIM_IDLE)
        discard(block);
}

/* ---- nodes ---- */

struct sim_graph *sim_graph_create(void)
{
    return sim_object_create(SIM_GRAPH);
}

void sim_graph_depend(struct sim_node *node, struct sim_node *on)
{
    if (node->ndeps == node->room) {
        node->room = node->room ? 2 * node->room : 4;
        node->deps = realloc(node->deps, node->room * sizeof *node->deps);
        if (!node->deps)
            abort();
    }
    node->deps[node->ndeps++] = on;
}

struct sim_node *sim_graph_add(struct sim_graph *graph, CUgraphNodeType type,
                               struct sim_node *const *deps, size_t ndeps)
{
    struct sim_node *node;

    for (size_t i = 0; i < ndeps; i++)
        if (!sim_object_is(deps[i], SIM_NODE) || deps[i]->graph != graph)
            return NULL;
    node = sim_object_create(SIM_NODE);
    if (!node)
        return NULL;
    node->graph = graph;
    node->type = type;
    for (size_t i = 0; i < ndeps; i++)
        sim_graph_depend(node, deps[i]);
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    graph->nnodes++;
    return node;
}

void sim_graph_destroy_node(struct sim_node *node)
{
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node->work.block)
        sim_graph_block_unref(node->work.block);
    if (node->child)
        sim_graph_destroy(node->child);
    free(node->work.owned);
    free(node->deps);
    sim_object_destroy(node);
}

void sim_graph_destroy(struct sim_graph *graph)
{
    while (graph->first) {
        struct sim_node *node = graph->first;

        graph->first = node->next;
        sim_graph_destroy_node(node);
    }
    sim_user_drop_shares(graph);
    sim_object_destroy(graph);
}

/* Nodes of the copy know their originals; `index` links an original to its copy meanwhile. */
struct sim_graph *sim_graph_copy(struct sim_graph *graph)
{
    struct sim_graph *copy = sim_graph_create();

    if (!copy)
        return NULL;
    for (struct sim_node *node = graph->first; node; node = node->next) {
        struct sim_node *twin = sim_graph_add(copy, node->type, NULL, 0);

        if (!twin)
            abort();
        twin->work = node->work;
        twin->work.owned = NULL;
        twin->origin = node;
        twin->is_disabled = node->is_disabled;
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            twin->work.block->refs++;
        if (node->child)
            twin->child = sim_graph_copy(node->child);
        node->index = (size_t)twin;
    }
    for (struct sim_node *node = graph->first; node; node = node->next)
        for (size_t i = 0; i < node->ndeps; i++)
            sim_graph_depend((struct sim_node *)node->index,
                             (struct sim_node *)node->deps[i]->index);
    sim_user_copy_shares(copy, graph);
    return copy;
}

static CUresult find_graph(struct sim_graph **out, CUgraph handle)
{
    if (!sim_object_is(handle, SIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct sim_graph *)handle;
    return CUDA_SUCCESS;
}

/* ---- entry points: what a graph is made of ---- */

CUresult sim_cuGraphCreate(CUgraph *out, unsigned int flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)sim_graph_create();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuGraphDestroy(CUgraph handle)
{
    struct sim_graph *graph;
    CUresult status = find_graph(&graph, handle);

    if (status == CUDA_SUCCESS)
        sim_graph_destroy(graph);
    return status;
}

CUresult sim_cuGraphClone(CUgraph *out, CUgraph handle)
{
    struct sim_graph *graph;

    if (!out || find_graph(&graph, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sim_node *node = graph->first; node; node = node->next)
        if (node->work.task == SIM_DO_ALLOC || node->work.task == SIM_DO_FREE)
            return CUDA_ERROR_NOT_SUPPORTED;
    *out = (CUgraph)sim_graph_copy(graph);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
    struct sim_graph *graph;

    if (!out || find_graph(&graph, clone) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sim_node *node = graph->first; node; node = node->next) {
        if (node->origin == (struct sim_node *)original) {
            *out = (CUgraphNode)node;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    if (!type || !sim_object_is(handle, SIM_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *type = ((struct sim_node *)handle)->type;
    return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *out, size_t *n, bool only_roots)
{
    struct sim_graph *graph;
    size_t found = 0;

    if (!n || find_graph(&graph, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sim_node *node = graph->first; node; node = node->next) {
        if (only_roots && node->ndeps > 0)
            continue;
        if (out && found < *n)
            out[found] = (CUgraphNode)node;
        found++;
    }
    for (size_t i = found; out && i < *n; i++)
        out[i] = NULL;
    if (!out || found < *n)
        *n = found;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return list_nodes(graph, nodes, n, false);
}

CUresult sim_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return list_nodes(graph, nodes, n, true);
}

CUresult sim_cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *edges, size_t *n)
{
    struct sim_graph *graph;
    size_t found = 0;

    if (!n || find_graph(&graph, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sim_node *node = graph->first; node; node = node->next) {
        for (size_t i = 0; i < node->ndeps; i++, found++) {
            if (!from || !to || found >= *n)
                continue;
            from[found] = (CUgraphNode)node->deps[i];
            to[found] = (CUgraphNode)node;
            if (edges)
                memset(&edges[found], 0, sizeof *edges);
        }
    }
    if (!from || found < *n)
        *n = found;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return sim_cuGraphGetEdges_v2(graph, from, to, NULL, n);
}

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *deps,
                                           CUgraphEdgeData *edges, size_t *n)
{
    struct sim_node *node = (struct sim_node *)handle;

    if (!n || !sim_object_is(node, SIM_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; deps && i < *n && i < node->ndeps; i++)
        deps[i] = (CUgraphNode)node->deps[i];
    if (edges)
        memset(edges, 0, *n * sizeof *edges);
    *n = node->ndeps;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, size_t *n)
{
    return sim_cuGraphNodeGetDependencies_v2(node, deps, NULL, n);
}

CUresult sim_cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *out,
                                             CUgraphEdgeData *edges, size_t *n)
{
    struct sim_node *node = (struct sim_node *)handle;
    size_t found = 0;

    if (!n || !sim_object_is(node, SIM_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sim_node *other = node->graph->first; other; other = other->next) {
        for (size_t i = 0; i < other->ndeps; i++) {
            if (other->deps[i] != node)
                continue;
            if (out && found < *n)
                out[found] = (CUgraphNode)other;
            found++;
        }
    }
    if (edges)
        memset(edges, 0, *n * sizeof *edges);
    *n = found;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *n)
{
    return sim_cuGraphNodeGetDependentNodes_v2(node, out, NULL, n);
}

CUresult sim_cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t n)
{
    struct sim_graph *graph;

    if (find_graph(&graph, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (!sim_object_is(from[i], SIM_NODE) || !sim_object_is(to[i], SIM_NODE))
            return CUDA_ERROR_INVALID_VALUE;
        sim_graph_depend((struct sim_node *)to[i], (struct sim_node *)from[i]);
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *edges,
                                       size_t n)
{
    (void)edges;
    return sim_cuGraphAddDependencies(graph, from, to, n);
}

CUresult sim_cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode *from,
                                       const CUgraphNode *to, size_t n)
{
    struct sim_graph *graph;

    if (find_graph(&graph, handle) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        struct sim_node *node = (struct sim_node *)to[i];
        size_t kept = 0;

        if (!sim_object_is(node, SIM_NODE))
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t j = 0; j < node->ndeps; j++)
            if (node->deps[j] != (struct sim_node *)from[i])
                node->deps[kept++] = node->deps[j];
        node->ndeps = kept;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                          const CUgraphNode *to, const CUgraphEdgeData *edges,
                                          size_t n)
{
    (void)edges;
    return sim_cuGraphRemoveDependencies(graph, from, to, n);
}
