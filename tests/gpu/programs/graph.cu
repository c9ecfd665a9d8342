/* SPDX-License-Identifier: MIT */
/* Captured cudaMallocAsync: memory that lives from a launch on. "illegal" does in captures what is
 * not allowed there, or only in some modes: the codes must be those of a run without the library.
 */
#include "contents.h"

#include <string.h>

static cudaStream_t stream;
static unsigned *wrong;

static cudaGraphExec_t instantiate(cudaGraph_t graph, unsigned long long flags)
{
    cudaGraphExec_t exec;

    MUST(cudaGraphInstantiateWithFlags(&exec, graph, flags));
    return exec;
}

/* Three launches, each of which takes and frees. */
SITE void take_and_free_inside(void)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *block;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaMallocAsync(&block, 1 << 20, stream));
    fill(block, 1 << 20, 11, stream);
    check(block, 1 << 20, 11, wrong, stream);
    MUST(cudaFreeAsync(block, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    exec = instantiate(graph, 0);
    for (int i = 0; i < 3; i++)
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    say("json all(s['live']['count'] == 0 for s in sites('take_and_free_inside'))");
}

/* The launch takes, the program frees in stream order. */
SITE void free_outside(void)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *block;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaMallocAsync(&block, 33332, stream));
    fill(block, 33332, 12, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    exec = instantiate(graph, 0);
    for (int i = 0; i < 2; i++) {
        MUST(cudaGraphLaunch(exec, stream));
        check(block, 33332, 12, wrong, stream);
        MUST(cudaFreeAsync(block, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    say("json all(s['live']['count'] == 0 for s in sites('free_outside'))");
}

/* Each launch frees what the one before took; the last one's stays. */
SITE void free_on_launch(void)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *block;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(cudaMallocAsync(&block, 44444, stream));
    fill(block, 44444, 13, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    exec = instantiate(graph, cudaGraphInstantiateFlagAutoFreeOnLaunch);
    for (int i = 0; i < 3; i++)
        MUST(cudaGraphLaunch(exec, stream));
    check(block, 44444, 13, wrong, stream);
    MUST(cudaStreamSynchronize(stream));
    say("json [s['live'] for s in sites('free_on_launch') if s['live']['count']]"
        " == [{'count': 1, 'bytes': 44444}]");
}

SITE void launch_and_forget(void)
{
    void *kept, *freed;
    cudaGraph_t graph;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaMallocAsync(&kept, 55556, stream));
    MUST(cudaMallocAsync(&freed, 1000, stream));
    fill(kept, 55556, 14, stream);
    MUST(cudaFreeAsync(freed, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphLaunch(instantiate(graph, 0), stream));
    check(kept, 55556, 14, wrong, stream);
    MUST(cudaStreamSynchronize(stream));
    say("json [s['live'] for s in sites('launch_and_forget') if s['live']['count']]"
        " == [{'count': 1, 'bytes': 55556}]");
    say("json {s['kind'] for s in sites('launch_and_forget') if s['live']['count']} == {'graph'}");
}

/* Captured, never launched: never memory. */
SITE void build_only(void)
{
    cudaGraph_t graph;
    void *block;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaMallocAsync(&block, 11111, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    instantiate(graph, 0);
    say("json not [s for s in sites('build_only') if s['total']['count']]");
}

/* A block of the pool is freed behind the launch of a graph that writes and reads it; who takes it
 * next writes it in another stream. */
SITE void free_behind_launch(cudaStreamCaptureMode mode, unsigned seed)
{
    const size_t bytes = 1 << 18;
    cudaGraphExec_t exec;
    cudaStream_t other;
    cudaGraph_t graph;
    void *block, *next;

    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaMalloc(&block, bytes));
    MUST(cudaStreamBeginCapture(stream, mode));
    fill(block, bytes, seed, stream);
    check(block, bytes, seed, wrong, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    exec = instantiate(graph, 0);
    for (int i = 0; i < 8; i++)
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaFree(block));
    MUST(cudaMalloc(&next, bytes));
    fill(next, bytes, seed + 1, other);
    check(next, bytes, seed + 1, wrong, other);
    MUST(cudaFree(next));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(other));
}

/* What the mode says of cudaMalloc and cudaFree within the capture. */
static void try_in(cudaStreamCaptureMode mode, const char *name)
{
    cudaGraph_t graph = NULL;
    void *block = NULL, *held;
    int took, freed, ended, last;

    MUST(cudaMalloc(&held, 1 << 16));
    MUST(cudaStreamBeginCapture(stream, mode));
    took = cudaMalloc(&block, 1 << 16);
    freed = cudaFree(held);
    ended = cudaStreamEndCapture(stream, &graph);
    last = cudaGetLastError();
    say("%s: cudaMalloc %d, cudaFree %d, end %d, last error %d", name, took, freed, ended, last);
    if (freed != 0)
        MUST(cudaFree(held));
    if (took == 0)
        MUST(cudaFree(block));
    if (graph != NULL)
        MUST(cudaGraphDestroy(graph));
}

static int illegal(void)
{
    try_in(cudaStreamCaptureModeGlobal, "global");
    try_in(cudaStreamCaptureModeThreadLocal, "thread local");
    try_in(cudaStreamCaptureModeRelaxed, "relaxed");
    MUST(cudaDeviceSynchronize());
    say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0");
    say("no report INVALID FREES");
    return 0;
}

int main(int argc, char **argv)
{
    unsigned found;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (argc > 1 && strcmp(argv[1], "illegal") == 0)
        return illegal();
    MUST(cudaMalloc(&wrong, sizeof(*wrong)));
    start_counter(wrong, 0);
    MUST(cudaDeviceSynchronize());
    take_and_free_inside();
    free_outside();
    free_on_launch();
    launch_and_forget();
    build_only();
    free_behind_launch(cudaStreamCaptureModeGlobal, 15);
    free_behind_launch(cudaStreamCaptureModeThreadLocal, 17);
    free_behind_launch(cudaStreamCaptureModeRelaxed, 19);
    MUST(cudaDeviceSynchronize()); /* a copy does not wait for the streams that are non-blocking */
    MUST(cudaMemcpy(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost));
    MUST(cudaFree(wrong));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", found);
    say("expect leaked_bytes=%d leaked_blocks=2 leak_sites=2 failed=0", 44444 + 55556);
    say("json sum(s['live']['count'] for s in sites('free_behind_launch')) == 0");
    say("strict not_waited_for(0) + served(0)['hits'] >= 5");
    say("prompt served(0)['hits'] >= 5");
    say("no report INVALID FREES");
    return found != 0;
}
