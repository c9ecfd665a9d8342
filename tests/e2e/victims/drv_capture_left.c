/* SPDX-License-Identifier: MIT */
/* A thread begins a capture, in the mode that the argument names, on its own default stream (or on
 * a named one: "named") and ends without ending it; or a capture ends that a call has made invalid
 * ("invalid"). The program goes on; says every return code. */
#include "victim.h"
#include "in_thread.h"

#include <string.h>

#define ROUNDS 20

static CUcontext context;
static CUstream stream = CU_STREAM_PER_THREAD;
static CUdeviceptr before;
static CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

static void *leave_a_capture(void *argument)
{
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamBeginCapture(stream, mode));
    MUST(cuMemsetD8Async(before, 7, 4096, stream));
    return argument;
}

static void spoil_a_capture(void)
{
    CUdeviceptr block;
    CUgraph graph;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    say("cuMemAlloc %d", (int)cuMemAlloc(&block, 4096));
    say("cuStreamEndCapture %d", (int)cuStreamEndCapture(stream, &graph));
    stream = CU_STREAM_PER_THREAD;
}

static void use_memory(const char *when)
{
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr block = 0;
        int rc = (int)cuMemAlloc(&block, 4096);

        say("%s: cuMemAlloc %d cuMemFree %d", when, rc, rc == 0 ? (int)cuMemFree(block) : 0);
    }
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "relaxed";
    CUgraph graph;

    context = use_device(0);
    MUST(cuMemAlloc(&before, 4096));
    if (strcmp(word, "global") == 0)
        mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    else if (strcmp(word, "thread") == 0)
        mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    else if (strcmp(word, "named") == 0)
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (strcmp(word, "invalid") == 0)
        spoil_a_capture();
    else
        in_thread(leave_a_capture, NULL);
    use_memory("after the thread");
    if (stream != CU_STREAM_PER_THREAD) {
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphDestroy(graph));
        use_memory("after the capture");
    }
    say("cuMemFree %d", (int)cuMemFree(before));
    return 0;
}
