/* SPDX-License-Identifier: MIT */
/*
 * A kernel runs until the host tells it to end, and the program goes on meanwhile. SCENARIO
 *
 *   small   frees small blocks, device and pinned, and asks for more memory than there is
 *   large   frees a block whose free waits for the kernel, and so for another thread of the program
 *   capture frees small blocks while other threads capture streams
 *   pile    frees more than anybody would want to keep
 *   queue   as small, and then waits and goes on as any program
 *   device, context, trim: another device or context, where nothing runs, needs memory
 *   vain, vain_thread, vain_pending: more memory is asked for than there is with all that is idle;
 *           after another thread was at work, and with frees put off
 *   beside  a thread waits in the driver's free, another one frees, and a third captures in another
 *           context: in the same one each of its calls would wait, too, on a GPU
 *   peer    one waits there, and another one frees in a second context before it ends the kernel
 *   unpin   the same, where the one unregisters memory of the host
 *   crowd   one waits there, and many free beside it, and go on until the pool has served each of
 *           them often, once the kernel has ended (here it is not asked whether the results are
 *           those of a run without the library, which never ends)
 *   left    a block of the fallback was freed in stream order, and small blocks are freed
 *   unused  the same, after the device is done with it
 */
#include "victim.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cusim.h"
#include "in_thread.h"

#define SMALL  ((size_t)4 << 10)
#define LARGE  ((size_t)8 << 20)
#define BLOCKS 200
#define CROWD  24
#define SERVED 100

static CUcontext context;
static CUstream stream;
static CUfunction persist;
static uint32_t *flag;

static void prepare(void)
{
    static const char image[] = "cusim 1\nkernel persist\n";
    CUmodule module;

    context = use_device(0);
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&persist, module, "persist"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc((void **)&flag, sizeof(*flag), CU_MEMHOSTALLOC_PORTABLE));
}

static void start_kernel(void)
{
    uint32_t told = 1;
    void *arguments[] = {&flag, &told};

    *flag = 0;
    MUST(cuLaunchKernel(persist, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void end_kernel(void)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static int is_running(void)
{
    return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

static NOINLINE void take_and_free(size_t bytes, int count)
{
    CUdeviceptr block[BLOCKS];

    for (int i = 0; i < count; i++)
        MUST(cuMemAlloc(&block[i], bytes));
    for (int i = 0; i < count; i++)
        MUST(cuMemFree(block[i]));
}

static void free_beside_kernel(void)
{
    CUdeviceptr all;
    void *pinned;

    start_kernel();
    for (int i = 0; i < 10; i++)
        take_and_free(SMALL, BLOCKS / 10);
    for (int i = 0; i < 10; i++) {
        MUST(cuMemHostAlloc(&pinned, SMALL, 0));
        MUST(cuMemFreeHost(pinned));
    }
    say("too much: %d", cuMemAlloc(&all, (size_t)64 << 30));
    say("running: %d", is_running());
    end_kernel();
}

static void run_small(void)
{
    free_beside_kernel();
}

/* What was put off serves from then on, and frees wait again. */
static void run_queue(void)
{
    free_beside_kernel();
    MUST(cuCtxSynchronize());
    for (int i = 0; i < 10; i++)
        take_and_free(SMALL, BLOCKS);
    free_beside_kernel();
}

static void *end_soon(void *unused)
{
    usleep(80000);
    end_kernel();
    return unused;
}

static void run_large(void)
{
    pthread_t thread;
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, LARGE));
    start_kernel();
    start_threads(&thread, 1, end_soon, NULL);
    MUST(cuMemFree(block));
    say("running: %d", is_running());
    join_threads(&thread, 1);
}

static atomic_int captures;

static void *capture(void *unused)
{
    CUstream own;
    CUgraph graph;

    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 20; i++) {
        MUST(cuStreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        usleep(2000);
        MUST(cuStreamEndCapture(own, &graph));
        MUST(cuGraphDestroy(graph));
        usleep(2000);
    }
    atomic_fetch_add(&captures, 1);
    return unused;
}

static void run_capture(void)
{
    pthread_t thread[2];

    start_kernel();
    start_threads(thread, 2, capture, NULL);
    while (atomic_load(&captures) < 2)
        take_and_free(SMALL, 10);
    join_threads(thread, 2);
    say("running: %d", is_running());
    end_kernel();
}

/* 320 MiB of a size, in use at once, then free. */
static void run_pile(void)
{
    start_kernel();
    take_and_free(2 * LARGE, 20);
    take_and_free(2 * LARGE, 20);
    say("running: %d", is_running());
    end_kernel();
}

/* ---- work of one context, memory of another ---- */

/* Idle blocks of both contexts have been waited for in both. */
static void settle(CUcontext other)
{
    CUcontext both[] = {context, other};

    for (int i = 0; i < 8; i++) {
        MUST(cuCtxSetCurrent(both[i % 2]));
        MUST(cuCtxSynchronize());
        take_and_free(1000, 1);
        usleep(1000);
    }
}

static void end_elsewhere(void)
{
    end_kernel();
    MUST(cuCtxSetCurrent(context));
}

/* Memory of device 1 runs out while a kernel runs on device 0, where pinned memory lies idle. */
static void run_device(void)
{
    CUcontext other = use_device(1);
    CUdeviceptr first, second;
    void *pinned;

    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAllocHost(&pinned, 1 << 20));
    MUST(cuMemFreeHost(pinned));
    settle(other);
    MUST(cuCtxSetCurrent(context));
    start_kernel();
    MUST(cuCtxSetCurrent(other));
    MUST(cuMemAlloc(&first, (size_t)600 << 20));
    say("no more: %d", cuMemAlloc(&second, (size_t)600 << 20));
    end_elsewhere();
}

/* A context asks for more than it ever had while a kernel runs in another of its device. */
static void run_context(void)
{
    CUcontext other;
    CUdeviceptr block[50];

    MUST(cuCtxCreate_v2(&other, 0, 0));
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 8; i++)
        MUST(cuMemAlloc(&block[i], (10 << 20) + (i << 18)));
    for (int i = 0; i < 8; i++)
        MUST(cuMemFree(block[i]));
    settle(other);
    MUST(cuCtxSetCurrent(context));
    start_kernel();
    MUST(cuCtxSetCurrent(other));
    for (int i = 0; i < 50; i++)
        MUST(cuMemAlloc(&block[i], (5 << 20) + (i << 17)));
    end_elsewhere();
}

/* Idle memory of device 0 grows old while a kernel runs there; device 1 allocates and frees. */
static void run_trim(void)
{
    CUcontext other = use_device(1);

    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 8; i++)
        take_and_free((4 << 20) + (i << 19), 2);
    settle(other);
    MUST(cuCtxSetCurrent(context));
    start_kernel();
    MUST(cuCtxSetCurrent(other));
    for (int i = 0; i < 30; i++) {
        usleep(20000);
        take_and_free(1000, 1);
        MUST(cuCtxSynchronize());
    }
    end_elsewhere();
}

/* ---- requests in vain ---- */

static void ask_in_vain(void)
{
    CUdeviceptr none;

    say("too much: %d", cuMemAlloc(&none, (size_t)900 << 20));
    say("running: %d", is_running());
    end_kernel();
}

/* 600 of 1024 MiB are in use, and a block of 8 is idle. */
static void begin_vain(void)
{
    CUdeviceptr live, idle;

    MUST(cuMemAlloc(&live, (size_t)600 << 20));
    MUST(cuMemAlloc(&idle, LARGE));
    MUST(cuMemFree(idle));
    start_kernel();
}

static void run_vain(void)
{
    begin_vain();
    ask_in_vain();
}

static void *take_once(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    take_and_free(SMALL, 1);
    return unused;
}

static void run_vain_thread(void)
{
    pthread_t thread;

    start_threads(&thread, 1, take_once, NULL);
    join_threads(&thread, 1);
    run_vain();
}

static void run_vain_pending(void)
{
    begin_vain();
    for (int i = 0; i < 5; i++)
        take_and_free(SMALL, 1);
    ask_in_vain();
}

static CUdeviceptr waiting[2];

static void *free_waiting(void *block)
{
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemFree(*(CUdeviceptr *)block));
    return NULL;
}

/* The frees wait for a kernel that ends after the capture. */
static void run_beside(void)
{
    pthread_t thread[2];
    CUcontext other;
    CUstream own;
    CUgraph graph;

    MUST(cuCtxCreate_v2(&other, 0, 0));
    MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 2; i++)
        MUST(cuMemAlloc(&waiting[i], LARGE));
    start_kernel();
    for (int i = 0; i < 2; i++) {
        start_threads(&thread[i], 1, free_waiting, &waiting[i]);
        usleep(100000);
    }
    MUST(cuCtxSetCurrent(other));
    MUST(cuStreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuStreamEndCapture(own, &graph));
    MUST(cuGraphDestroy(graph));
    say("running: %d", is_running());
    end_elsewhere();
    join_threads(thread, 2);
}

/* As with kernels that wait for each other: the one is launched by a thread that frees before. */
static void free_beside(void *(*wait)(void *), void *arg)
{
    CUcontext other;
    pthread_t thread;

    MUST(cuCtxCreate_v2(&other, 0, 0));
    MUST(cuCtxSetCurrent(context));
    start_kernel();
    start_threads(&thread, 1, wait, arg);
    usleep(100000);
    MUST(cuCtxSetCurrent(other));
    for (int i = 0; i < 5; i++)
        take_and_free(SMALL << i, 10);
    end_elsewhere();
    join_threads(&thread, 1);
}

static void run_peer(void)
{
    MUST(cuMemAlloc(&waiting[0], LARGE));
    free_beside(free_waiting, &waiting[0]);
}

static void *unregister(void *memory)
{
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemHostUnregister(memory));
    return NULL;
}

static void run_unpin(void)
{
    void *memory = aligned_alloc(4096, LARGE);

    MUST(cuMemHostRegister(memory, LARGE, 0));
    free_beside(unregister, memory);
    free(memory);
}

static void *take_until_served(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    for (int served = 0; served < SERVED;) {
        unsigned long long asked = cusim_calls("cuMemAlloc_v2");

        take_and_free(SMALL, 1);
        served += cusim_calls("cuMemAlloc_v2") == asked;
    }
    return unused;
}

/* Managed memory is never the pool's, so its free waits in the driver. */
static void run_crowd(void)
{
    pthread_t thread[1 + CROWD];

    MUST(cuMemAllocManaged(&waiting[0], LARGE, CU_MEM_ATTACH_GLOBAL));
    start_kernel();
    start_threads(thread, 1, free_waiting, &waiting[0]);
    usleep(50000);
    start_threads(thread + 1, CROWD, take_until_served, NULL);
    usleep(100000);
    end_kernel();
    alarm(600);
    join_threads(thread, 1 + CROWD);
}

static void run_left(void)
{
    CUdeviceptr small, live, left;

    MUST(cuMemAlloc(&small, SMALL));
    MUST(cuMemAlloc(&live, (size_t)900 << 20));
    MUST(cuMemAllocAsync(&left, (size_t)200 << 20, stream));
    MUST(cuMemFreeAsync(left, stream));
    start_kernel();
    MUST(cuMemFree(small));
    say("running: %d", is_running());
    MUST(cuMemAllocAsync(&left, (size_t)200 << 20, stream));
    say("running: %d", is_running());
    end_kernel();
}

static void run_unused(void)
{
    CUdeviceptr managed, live, left;
    unsigned type;

    MUST(cuMemAllocManaged(&managed, SMALL, CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemAlloc(&live, (size_t)900 << 20));
    MUST(cuMemAllocAsync(&left, (size_t)200 << 20, stream));
    MUST(cuMemFreeAsync(left, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemFree(managed));
    say("there: %d",
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, left) == CUDA_SUCCESS);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"small", run_small},
                     {"queue", run_queue},
                     {"large", run_large},
                     {"capture", run_capture},
                     {"pile", run_pile},
                     {"device", run_device},
                     {"context", run_context},
                     {"trim", run_trim},
                     {"vain", run_vain},
                     {"vain_thread", run_vain_thread},
                     {"vain_pending", run_vain_pending},
                     {"beside", run_beside},
                     {"peer", run_peer},
                     {"unpin", run_unpin},
                     {"crowd", run_crowd},
                     {"left", run_left},
                     {"unused", run_unused}};

    prepare();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (argc > 1 && strcmp(argv[1], scenarios[i].name) == 0)
            scenarios[i].run();
    MUST(cuCtxSynchronize());
    MUST(cuMemFreeHost(flag));
    return 0;
}
