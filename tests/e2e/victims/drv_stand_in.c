/* SPDX-License-Identifier: MIT */
/*
 * Stream-ordered requests that find the device full, for which managed memory may stand in. What is
 * freed in stream order waits for its stream, not the program: SCENARIO
 *
 *   order    allocates, uses and frees in a stream that waits for the program meanwhile
 *   context  in a context that is not the device's primary one
 *   shared   from a pool for other processes
 *   capture  while a stream captures
 *   kind     an array, for which there is no managed memory
 *   host     more than any host has
 */
#include "victim.h"

#include <stdint.h>
#include <string.h>

#include "cusim.h"

#define FULL  ((size_t)400 << 20) /* of 512 MiB */
#define BYTES ((size_t)120 << 20)

static CUstream stream;
static uint32_t *flag;

static void fill(void)
{
    CUdeviceptr all;

    MUST(cuMemAlloc(&all, FULL));
}

static unsigned long long managed(void)
{
    return cusim_live_blocks(CUSIM_MANAGED, -1);
}

/* Work of the stream uses the block once the program says so, after it has freed it. */
static NOINLINE CUdeviceptr use_and_free(void)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, BYTES, stream));
    *flag = 0;
    MUST(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    MUST(cuMemsetD8Async(block, 7, BYTES, stream));
    MUST(cuMemFreeAsync(block, stream));
    say("free now: %llu", managed());
    return block;
}

static int go_on(void)
{
    *flag = 1;
    return (int)cuStreamSynchronize(stream);
}

static void run_order(void)
{
    CUdeviceptr block = use_and_free(), next;

    MUST_FAIL(cuMemFreeAsync(block, stream), 1);
    MUST_FAIL(cuMemFree(block), 1);
    say("stream: %d", go_on());
    /* The program waits for all of it, or asks for more, or frees something: then it goes. */
    MUST(cuCtxSynchronize());
    say("waited for: %llu", managed());
    use_and_free();
    say("stream: %d", go_on());
    MUST(cuMemAllocAsync(&next, BYTES, stream));
    say("next: %llu", managed());
    MUST(cuMemFree(next));
    say("freed at once: %llu", managed());
    say("json pressure()['fallbacks'] == {'count': 3, 'bytes': 360 << 20}");
    say("json summary['leaked_blocks'] == 1 and kind('managed') == (0, 0)");
    say("json len(events('invalid-free')) == 2");
}

static void run_context(void)
{
    CUcontext other = create_context(0);
    CUdeviceptr block;

    say("alloc: %d", (int)cuMemAllocAsync(&block, BYTES, NULL));
    MUST(cuCtxDestroy(other));
}

static void run_shared(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool pool, own;
    CUdeviceptr block;

    MUST(cuMemPoolCreate(&pool, &props));
    say("alloc: %d", (int)cuMemAllocFromPoolAsync(&block, BYTES, pool, stream));
    props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    MUST(cuMemPoolCreate(&own, &props));
    MUST(cuMemAllocFromPoolAsync(&block, BYTES, own, stream));
    MUST(cuMemFreeAsync(block, stream));
}

static void run_capture(void)
{
    CUdeviceptr block;
    CUgraph graph;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    say("alloc: %d", (int)cuMemAlloc(&block, BYTES));
    MUST(cuStreamEndCapture(stream, &graph));
}

static void run_kind(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {.Width = 1024,
                                   .Height = BYTES / 4096,
                                   .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                   .NumChannels = 1};
    CUarray array;

    say("alloc: %d", (int)cuArrayCreate(&array, &shape));
}

static void run_host(void)
{
    CUdeviceptr block;

    say("alloc: %d", (int)cuMemAllocAsync(&block, (size_t)1 << 45, stream));
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"order", run_order},     {"context", run_context}, {"shared", run_shared},
    {"capture", run_capture}, {"kind", run_kind},       {"host", run_host},
};

int main(int argc, char **argv)
{
    use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc((void **)&flag, 4096, CU_MEMHOSTALLOC_PORTABLE));
    fill();
    for (size_t i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (strcmp(argv[1], scenarios[i].name) == 0)
            scenarios[i].run();
    MUST(cuMemFreeHost(flag));
    return 0;
}
