/* SPDX-License-Identifier: MIT */
/* Compiled for the per-thread default stream: every stream-ordered call is a _ptsz variant. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "victim.h"

static NOINLINE void leak_in_own_stream(void)
{
    CUdeviceptr kept, freed;

    MUST(cuMemAllocAsync(&kept, 6001, NULL));
    MUST(cuMemAllocAsync(&freed, 100, NULL));
    MUST(cuMemsetD8Async(kept, 1, 6001, NULL));
    MUST(cuMemFreeAsync(freed, NULL));
    MUST(cuStreamSynchronize(NULL));
}

static NOINLINE void capture_own_stream(void)
{
    CUdeviceptr captured;
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuMemAllocAsync(&captured, 7001, NULL));
    MUST(cuStreamEndCapture(NULL, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, NULL));
    MUST(cuStreamSynchronize(NULL));
}

int main(void)
{
    use_device(0);
    leak_in_own_stream();
    capture_own_stream();
    say("expect leaked_bytes=13002 leaked_blocks=2 leak_sites=2");
    say("json kind('async') == (1, 6001) and kind('graph') == (1, 7001)");
    return 0;
}
