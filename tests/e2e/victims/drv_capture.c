/* SPDX-License-Identifier: MIT */
/* Captures in the mode that its argument names, and meanwhile does what a program may and may not
 * do, in this thread and others; says every return code. */
#include "victim.h"
#include "in_thread.h"

#include <string.h>
#include <unistd.h>

static CUcontext context;
static CUstream stream;
static CUdeviceptr before;
static volatile int is_done;

static void attempt(const char *what)
{
    CUdeviceptr block = 0, async = 0;
    CUstream other;
    size_t free_bytes, total;

    say("%s: cuMemAlloc %d", what, (int)cuMemAlloc(&block, 1000));
    say("%s: cuMemFree %d", what, (int)cuMemFree(block));
    say("%s: cuMemGetInfo %d", what, (int)cuMemGetInfo(&free_bytes, &total));
    say("%s: cuStreamCreate %d", what, (int)cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    say("%s: cuMemAllocAsync %d", what, (int)cuMemAllocAsync(&async, 1000, other));
    say("%s: cuMemFreeAsync %d", what, (int)cuMemFreeAsync(async, other));
}

static void *in_another_thread(void *argument)
{
    MUST(cuCtxSetCurrent(context));
    attempt("another thread");
    return argument;
}

static void *allocate_all_the_time(void *argument)
{
    MUST(cuCtxSetCurrent(context));
    while (!is_done) {
        CUdeviceptr block;

        if (cuMemAlloc(&block, 512) == CUDA_SUCCESS)
            cuMemFree(block);
    }
    return argument;
}

static CUstreamCaptureMode mode_of(const char *word)
{
    if (strcmp(word, "global") == 0)
        return CU_STREAM_CAPTURE_MODE_GLOBAL;
    return strcmp(word, "thread") == 0 ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                       : CU_STREAM_CAPTURE_MODE_RELAXED;
}

static int capture_once(CUstreamCaptureMode mode, int tries)
{
    CUgraph graph = NULL;
    CUgraphExec exec;
    CUresult rc;

    MUST(cuStreamBeginCapture(stream, mode));
    MUST(cuMemsetD8Async(before, 7, 4096, stream));
    if (tries) {
        attempt("the same thread");
        in_thread(in_another_thread, NULL);
    }
    rc = cuStreamEndCapture(stream, &graph);
    if (rc == CUDA_SUCCESS) {
        MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
        MUST(cuGraphLaunch(exec, stream));
        MUST(cuStreamSynchronize(stream));
        MUST(cuGraphExecDestroy(exec));
    }
    return (int)rc;
}

/* Of the simulated driver: how often it was called. Others do not count. */
unsigned long long cusim_calls(const char *symbol) __attribute__((weak));

/* Calls that nobody in this program makes. */
static unsigned long long foreign_calls(void)
{
    static const char *const names[] = {
        "cuMemGetInfo_v2", "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuCtxGetDevice",
        "cuStreamGetCtx",  "cuGraphGetNodes", "cuDeviceGetUuid_v2",  "cuDeviceGetUuid"};
    unsigned long long sum = 0;

    for (size_t i = 0; cusim_calls && i < sizeof(names) / sizeof(*names); i++)
        sum += cusim_calls(names[i]);
    return sum;
}

static void *take_elsewhere(void *argument)
{
    CUstream other;
    CUdeviceptr block;

    /* A context that nobody has seen yet, and a new thread: all that there is to be curious about.
     */
    MUST(cuCtxSetCurrent(argument));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 3; i++) {
        MUST(cuMemAllocAsync(&block, 777, other));
        MUST(cuMemFreeAsync(block, other));
        usleep(60000);
    }
    return NULL;
}

/* Does only what a capture in global mode allows. */
static void capture_in_peace(void)
{
    CUcontext unseen = use_device(1);
    unsigned long long calls;
    CUdeviceptr captured;
    CUgraph graph;

    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    calls = foreign_calls();
    MUST(cuMemAllocAsync(&captured, 5000, stream));
    in_thread(take_elsewhere, unseen);
    MUST(cuMemFreeAsync(captured, stream));
    calls = foreign_calls() - calls;
    MUST(cuStreamEndCapture(stream, &graph));
    say("calls of others during the capture: %llu", calls);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "global";
    pthread_t thread;
    CUdeviceptr after;

    context = use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&before, 4096));
    if (strcmp(word, "threads") == 0) {
        /* A relaxed capture may go on beside allocations, and nobody may disturb it. */
        pthread_create(&thread, NULL, allocate_all_the_time, NULL);
        for (int i = 0; i < 50; i++)
            if (capture_once(CU_STREAM_CAPTURE_MODE_RELAXED, 0) != 0)
                return 1;
        is_done = 1;
        pthread_join(thread, NULL);
        return 0;
    }
    if (strcmp(word, "peace") == 0)
        capture_in_peace();
    else
        say("cuStreamEndCapture %d", capture_once(mode_of(word), 1));
    MUST(cuMemAlloc(&after, 2048)); /* and afterwards all is as before */
    MUST(cuMemFree(after));
    MUST(cuMemFree(before));
    say("expect leaked_blocks=0 leaked_bytes=0");
    return 0;
}
