/* SPDX-License-Identifier: MIT */
/* Memory nodes of graphs: live from a launch, and only then; made by the API and by capture. */
#include "victim.h"

#include <string.h>

static CUstream stream;

/* A graph that has a node which allocates. */
static NOINLINE CUdeviceptr make_graph(size_t bytes, CUgraph *graph, CUgraphNode *node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = bytes};

    MUST(cuGraphCreate(graph, 0));
    MUST(cuGraphAddMemAllocNode(node, *graph, NULL, 0, &params));
    return params.dptr;
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec;

    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

/* Never launched: never memory. */
static NOINLINE void build_only(void)
{
    CUgraph graph;
    CUgraphNode node;

    make_graph(11111, &graph, &node);
    instantiate(graph);
}

/* The graph frees what it takes. */
static NOINLINE void take_and_free_inside(void)
{
    CUgraph graph;
    CUgraphNode alloc, free_node;
    CUdeviceptr block;
    CUgraphExec exec;

    block = make_graph(22222, &graph, &alloc);
    MUST(cuGraphAddMemFreeNode(&free_node, graph, &alloc, 1, block));
    exec = instantiate(graph);
    for (int i = 0; i < 3; i++)
        MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuGraphExecDestroy(exec));
}

/* What a launch took is freed by the program in stream order. */
static NOINLINE void free_outside(void)
{
    CUgraph graph;
    CUgraphNode node;
    CUdeviceptr block;
    CUgraphExec exec;

    block = make_graph(33333, &graph, &node);
    exec = instantiate(graph);
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuStreamSynchronize(stream));
}

static NOINLINE void launch_and_forget(void)
{
    CUgraph graph;
    CUgraphNode node;

    make_graph(44444, &graph, &node);
    MUST(cuGraphLaunch(instantiate(graph), stream));
    MUST(cuStreamSynchronize(stream));
}

static NOINLINE void captured_and_forgotten(void)
{
    CUdeviceptr kept, freed;
    CUgraph graph;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuMemAllocAsync(&kept, 55555, stream));
    MUST(cuMemAllocAsync(&freed, 1000, stream));
    MUST(cuMemsetD8Async(kept, 1, 55555, stream));
    MUST(cuMemFreeAsync(freed, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphLaunch(instantiate(graph), stream));
    MUST(cuStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
    int captures = argc > 1 && strcmp(argv[1], "capture") == 0;

    use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (captures) {
        captured_and_forgotten();
        say("expect leaked_bytes=55555 leaked_blocks=1 leak_sites=1");
        say("report  captured_and_forgotten  ");
        say("json [s['live']['bytes'] for s in sites('captured_and_forgotten')"
            " if s['live']['count']] == [55555]");
        return 0;
    }
    build_only();
    take_and_free_inside();
    free_outside();
    launch_and_forget();
    say("expect leaked_bytes=44444 leaked_blocks=1 leak_sites=1");
    say("json kind('graph') == (1, 44444) and live('launch_and_forget') == (1, 44444)");
    say("json live('free_outside') == (0, 0) and site('free_outside')['total']['count'] == 2");
    say("json not [s for s in sites('build_only') if s['total']['count']]");
    say("json site('launch_and_forget')['api'] == 'cuGraphAddMemAllocNode'");
    say("no report INVALID FREES");
    return 0;
}
