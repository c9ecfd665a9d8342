/* SPDX-License-Identifier: MIT */
/* Graph memory through the runtime: a node's block is live once it was launched. */
#include "victim_rt.h"

static NOINLINE void launch_and_forget(cudaStream_t stream)
{
    struct cudaMemAllocNodeParams params = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = 8888};
    cudaGraphNode_t node;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

int main(void)
{
    cudaStream_t stream;

    MUST(cudaStreamCreate(&stream));
    launch_and_forget(stream);
    MUST(cudaStreamDestroy(stream));
    say("expect leaked_bytes=8888 leaked_blocks=1 leak_sites=1");
    say("json live('launch_and_forget') == (1, 8888) and kind('graph') == (1, 8888)");
    return 0;
}
