/* SPDX-License-Identifier: MIT */
/*
 * What allocations cost on a real GPU. Not a test: ../bench.sh runs this and makes tables of it.
 *
 *   cost device                         what it runs on, one line
 *   cost pairs malloc|async [used]      rows "BYTES MICROSECONDS": one allocation and its free,
 * alone, or with a memset of the block in a stream in between cost blocking Markdown rows: do the
 * driver's frees and allocations wait for a kernel that runs in another, non-blocking stream? cost
 * events                         Markdown rows: events of a whole context, and waits for it
 */
#include "gpu.h"

#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#define RUNS        5
#define LOOP_NS     50e6 /* what a loop of pairs is to take */
#define LOOP_MAX    10000
#define KERNEL_NS   50000000ull
#define STREAMS_MAX 64
#define EVENTS      16
#define CALLS       100

static const size_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;

static double now_ns()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* "64 KiB", in one of four places. */
static const char *size_text(size_t bytes)
{
    static char texts[4][32];
    static unsigned next;
    char *text = texts[next++ % 4];

    if (bytes >= gib)
        snprintf(text, sizeof(texts[0]), "%zu GiB", bytes / gib);
    else if (bytes >= mib)
        snprintf(text, sizeof(texts[0]), "%zu MiB", bytes / mib);
    else
        snprintf(text, sizeof(texts[0]), "%zu KiB", bytes / kib);
    return text;
}

static size_t free_memory()
{
    size_t free_bytes, total;

    MUST(cudaMemGetInfo(&free_bytes, &total));
    return free_bytes;
}

/* ---- a kernel of known length ---- */

/* Sets *started, which lies in the host's memory, and is busy for the given time. */
__global__ void spin(unsigned long long ns, volatile int *started)
{
    unsigned long long start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    *started = 1;
    __threadfence_system();
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

static volatile int *started;

static void wait_for_start()
{
    double since = now_ns();

    MUST(cudaGetLastError());
    while (*started == 0)
        if (now_ns() - since > 10e9)
            MUST(cudaErrorLaunchTimeout);
}

/* Returns when the kernel runs. */
static void start_kernel(cudaStream_t stream, unsigned long long ns)
{
    *started = 0;
    spin<<<1, 1, 0, stream>>>(ns, started);
    wait_for_start();
}

static int is_running(cudaStream_t stream)
{
    cudaError_t result = cudaStreamQuery(stream);

    if (result != cudaErrorNotReady)
        MUST(result);
    return result == cudaErrorNotReady;
}

/* The first launch loads the kernel, which may wait for the device. */
static void prepare_kernel()
{
    void *flag;

    MUST(cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped));
    started = (volatile int *)flag;
    start_kernel(0, 1000);
    MUST(cudaDeviceSynchronize());
}

static cudaStream_t new_stream()
{
    cudaStream_t stream;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

/* ---- pairs ---- */

static int is_async, is_used;

static void one_pair(size_t bytes, cudaStream_t stream)
{
    void *block;

    if (is_async)
        MUST(cudaMallocAsync(&block, bytes, stream));
    else
        MUST(cudaMalloc(&block, bytes));
    if (is_used)
        MUST(cudaMemsetAsync(block, 0, 4 * kib, stream));
    if (is_async)
        MUST(cudaFreeAsync(block, stream));
    else
        MUST(cudaFree(block));
}

/* ns of one pair; what the stream has left to do counts. */
static double loop_of_pairs(size_t bytes, cudaStream_t stream, long count)
{
    double start = now_ns();

    for (long i = 0; i < count; i++)
        one_pair(bytes, stream);
    MUST(cudaStreamSynchronize(stream));
    return (now_ns() - start) / (double)count;
}

/* The driver's pool keeps all it has, as those who use it for speed set it. */
static void keep_in_pool()
{
    uint64_t all = UINT64_MAX;
    cudaMemPool_t pool;
    int device;

    MUST(cudaGetDevice(&device));
    MUST(cudaDeviceGetDefaultMemPool(&pool, device));
    MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

static void pairs()
{
    static const size_t sizes[] = {4 * kib,  64 * kib,  mib, 2 * mib, 16 * mib,
                                   64 * mib, 256 * mib, gib, 4 * gib};
    cudaStream_t stream = new_stream();

    if (is_async)
        keep_in_pool();
    for (size_t bytes : sizes) {
        double best, ns;
        long count;

        if (bytes > free_memory() / 2)
            break;
        loop_of_pairs(bytes, stream, 3);
        best = loop_of_pairs(bytes, stream, 3);
        count = best * LOOP_MAX < LOOP_NS ? LOOP_MAX : (long)(LOOP_NS / best) + 1;
        for (int run = 0; run < RUNS; run++) {
            ns = loop_of_pairs(bytes, stream, count);
            if (ns < best || run == 0)
                best = ns;
        }
        say("%zu %.3f", bytes, best / 1e3);
    }
}

/* ---- do frees wait? ---- */

struct kind {
    const char *take_name, *give_name;
    CUresult (*take)(void **block, size_t bytes);
    CUresult (*give)(void *block);
};

static CUresult take_device(void **block, size_t bytes)
{
    CUdeviceptr address = 0;
    CUresult result = cuMemAlloc(&address, bytes);

    *block = (void *)address;
    return result;
}

static CUresult give_device(void *block)
{
    return cuMemFree((CUdeviceptr)block);
}

static CUresult take_pinned(void **block, size_t bytes)
{
    return cuMemHostAlloc(block, bytes, 0);
}

static CUresult give_pinned(void *block)
{
    return cuMemFreeHost(block);
}

struct timed {
    double ns;
    int running; /* the kernel, afterwards */
};

/* A free, and an allocation, while a kernel runs in the stream or while nothing does. */
static struct timed timed_give(const struct kind *kind, void *block, cudaStream_t stream, int busy)
{
    struct timed timed;

    if (busy)
        start_kernel(stream, KERNEL_NS);
    timed.ns = now_ns();
    MUST(kind->give(block));
    timed.ns = now_ns() - timed.ns;
    timed.running = is_running(stream);
    MUST(cudaStreamSynchronize(stream));
    return timed;
}

static struct timed timed_take(const struct kind *kind, size_t bytes, void **block,
                               cudaStream_t stream, int busy)
{
    struct timed timed;

    if (busy)
        start_kernel(stream, KERNEL_NS);
    timed.ns = now_ns();
    MUST(kind->take(block, bytes));
    timed.ns = now_ns() - timed.ns;
    timed.running = is_running(stream);
    MUST(cudaStreamSynchronize(stream));
    return timed;
}

static void keep_least(struct timed *least, struct timed now, int run)
{
    if (run == 0 || now.ns < least->ns)
        least->ns = now.ns;
    least->running += now.running;
}

/* Small blocks share a page of the driver with others: a neighbour keeps it alive. */
static void blocking_row(const struct kind *kind, size_t bytes, int has_neighbour)
{
    struct timed take[2] = {}, give[2] = {};
    cudaStream_t stream = new_stream();
    void *neighbour = NULL, *block;

    if (has_neighbour)
        MUST(kind->take(&neighbour, bytes));
    for (int busy = 0; busy < 2; busy++)
        for (int run = 0; run < RUNS; run++) {
            keep_least(&take[busy], timed_take(kind, bytes, &block, stream, busy), run);
            keep_least(&give[busy], timed_give(kind, block, stream, busy), run);
        }
    say("| %s, %s | %s | %s | %.1f | %.1f | %d of %d | %.1f | %.1f | %d of %d |", kind->take_name,
        kind->give_name, size_text(bytes), has_neighbour ? "yes" : "no", take[0].ns / 1e3,
        take[1].ns / 1e3, take[1].running, RUNS, give[0].ns / 1e3, give[1].ns / 1e3,
        give[1].running, RUNS);
    if (has_neighbour)
        MUST(kind->give(neighbour));
    MUST(cudaStreamDestroy(stream));
}

static void blocking()
{
    static const struct kind kinds[] = {
        {"cuMemAlloc", "cuMemFree", take_device, give_device},
        {"cuMemHostAlloc", "cuMemFreeHost", take_pinned, give_pinned},
    };
    static const size_t sizes[] = {4 * kib, 64 * kib, mib, 2 * mib, 16 * mib, 128 * mib, gib};

    say("A kernel of %llu ms runs in a non-blocking stream. The least of %d times, in us; *runs*: "
        "how "
        "often the kernel was still running when the call had returned.",
        KERNEL_NS / 1000000, RUNS);
    putchar('\n');
    say("| calls | size | neighbour | allocation, idle | allocation, kernel | runs | free, idle | "
        "free, kernel | runs |");
    say("|---|---|---|---|---|---|---|---|---|");
    for (const struct kind &kind : kinds)
        for (size_t bytes : sizes) {
            if (bytes > free_memory() / 2)
                continue;
            blocking_row(&kind, bytes, 0);
            if (bytes < 2 * mib)
                blocking_row(&kind, bytes, 1);
        }
}

/* ---- events of a context ---- */

typedef CUresult (*record_fn)(CUcontext, CUevent);

struct costs {
    double record, query, stream_record, synchronize; /* ns of one call */
};

/* Not declared by headers before 12.5, and not in older drivers. */
static record_fn find_record()
{
    return (record_fn)dlsym(RTLD_DEFAULT, "cuCtxRecordEvent");
}

static void query_once(CUevent event)
{
    CUresult result = cuEventQuery(event);

    if (result != CUDA_ERROR_NOT_READY)
        MUST(result);
}

/* synchronize stays 0 when the device is busy: it would measure the kernels. */
static struct costs measure_events(record_fn record, CUevent *events, cudaStream_t stream, int busy)
{
    struct costs costs = {};
    CUcontext context;
    double start;

    MUST(cuCtxGetCurrent(&context));
    start = now_ns();
    for (int i = 0; record && i < CALLS; i++)
        MUST(record(context, events[i % EVENTS]));
    costs.record = (now_ns() - start) / CALLS;
    start = now_ns();
    for (int i = 0; i < CALLS; i++)
        query_once(events[i % EVENTS]);
    costs.query = (now_ns() - start) / CALLS;
    start = now_ns();
    for (int i = 0; i < CALLS; i++)
        MUST(cuEventRecord(events[i % EVENTS], stream));
    costs.stream_record = (now_ns() - start) / CALLS;
    if (busy)
        return costs;
    MUST(cuCtxSynchronize());
    start = now_ns();
    for (int i = 0; i < CALLS; i++)
        MUST(cuCtxSynchronize());
    costs.synchronize = (now_ns() - start) / CALLS;
    return costs;
}

static void keep_least_costs(struct costs *least, struct costs now, int is_first)
{
    if (is_first || now.record < least->record)
        least->record = now.record;
    if (is_first || now.query < least->query)
        least->query = now.query;
    if (is_first || now.stream_record < least->stream_record)
        least->stream_record = now.stream_record;
    if (is_first || now.synchronize < least->synchronize)
        least->synchronize = now.synchronize;
}

/* All streams have done something; when busy, a kernel is in each of them, if only in line. */
static void events_row(record_fn record, int count, int busy)
{
    cudaStream_t streams[STREAMS_MAX];
    CUevent events[EVENTS];
    struct costs least = {};
    int held = 1;
    char first[32] = "-", last[32] = "-";

    for (CUevent &event : events)
        MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < count; i++)
        streams[i] = new_stream();
    for (int run = 0; run < RUNS; run++) {
        struct costs now;

        *started = 0;
        for (int i = 0; i < count; i++)
            spin<<<1, 1, 0, streams[i]>>>(busy ? KERNEL_NS : 1000, started);
        wait_for_start();
        if (!busy)
            MUST(cudaDeviceSynchronize());
        now = measure_events(record, events, streams[0], busy);
        held = held && (!busy || is_running(streams[0]));
        MUST(cudaDeviceSynchronize());
        keep_least_costs(&least, now, run == 0);
    }
    if (record)
        snprintf(first, sizeof(first), "%.2f", least.record / 1e3);
    if (!busy)
        snprintf(last, sizeof(last), "%.2f", least.synchronize / 1e3);
    say("| %d | %s%s | %s | %.2f | %.2f | %s |", count, busy ? "a kernel in each" : "idle",
        held ? "" : ", which ended too soon", first, least.query / 1e3, least.stream_record / 1e3,
        last);
    for (int i = 0; i < count; i++)
        MUST(cudaStreamDestroy(streams[i]));
    for (CUevent &event : events)
        MUST(cuEventDestroy(event));
}

static void events()
{
    record_fn record = find_record();

    say("The mean of %d calls, the least of %d times, in us.", CALLS, RUNS);
    putchar('\n');
    say("| streams | they are | cuCtxRecordEvent | cuEventQuery of it | cuEventRecord | "
        "cuCtxSynchronize |");
    say("|---|---|---|---|---|---|");
    for (int busy = 0; busy < 2; busy++)
        for (int count = 1; count <= STREAMS_MAX; count *= 8)
            events_row(record, count, busy);
}

/* ---- the program ---- */

static void device()
{
    struct cudaDeviceProp properties;
    int driver, runtime;

    MUST(cudaGetDeviceProperties(&properties, 0));
    MUST(cudaDriverGetVersion(&driver));
    MUST(cudaRuntimeGetVersion(&runtime));
    say("%s, %.1f GiB, driver for CUDA %d.%d, runtime %d.%d", properties.name,
        (double)properties.totalGlobalMem / (double)gib, driver / 1000, driver % 1000 / 10,
        runtime / 1000, runtime % 1000 / 10);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    MUST(cudaFree(NULL));
    prepare_kernel();
    if (strcmp(what, "device") == 0) {
        device();
    } else if (strcmp(what, "pairs") == 0) {
        is_async = argc > 2 && strcmp(argv[2], "async") == 0;
        is_used = argc > 3 && strcmp(argv[3], "used") == 0;
        pairs();
    } else if (strcmp(what, "blocking") == 0) {
        blocking();
    } else if (strcmp(what, "events") == 0) {
        events();
    } else {
        return 2;
    }
    return 0;
}
