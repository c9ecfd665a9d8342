/* SPDX-License-Identifier: MIT */
/* What programs do that brought other interposers down: driver WAY. Says what it was answered,
 * which has to be what it is answered without the library. See peers.test. */
#include "in_thread.h"
#include "victim.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A place for so many bytes before memory that nobody may touch. */
static void *before_guard(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE) != 0)
        exit(99);
    return at + page - bytes;
}

static const CUmemPoolProps pool_on_device = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

#define ANSWER(call) say("%s: %d", #call, (int)(call))

/* Places for results that are not there, or are of the size that belongs to what is asked. */
static void null_outputs(void)
{
    CUmemoryPool pool;
    CUdeviceptr block;
    CUpointer_attribute type = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    int *reuse = before_guard(sizeof(*reuse));
    size_t bytes;

    use_device(0);
    MUST(cuMemAlloc(&block, 1000));
    ANSWER(cuMemGetInfo(NULL, &bytes));
    ANSWER(cuMemGetInfo(&bytes, NULL));
    ANSWER(cuMemGetInfo(NULL, NULL));
    ANSWER(cuDeviceTotalMem(NULL, 0));
    ANSWER(cuMemGetAddressRange(NULL, &bytes, block));
    ANSWER(cuMemGetAddressRange(&block, NULL, block));
    ANSWER(cuMemGetAddressRange(NULL, NULL, block));
    ANSWER(cuPointerGetAttribute(NULL, type, block));
    ANSWER(cuMemAlloc(NULL, 1000));
    ANSWER(cuMemAllocManaged(NULL, 1000, CU_MEM_ATTACH_GLOBAL));
    ANSWER(cuMemAllocPitch(NULL, &bytes, 100, 10, 4));
    ANSWER(cuMemAllocPitch(&block, NULL, 100, 10, 4));
    ANSWER(cuMemHostAlloc(NULL, 1000, 0));
    ANSWER(cuMemAllocAsync(NULL, 1000, NULL));
    ANSWER(cuMemCreate(NULL, 2 << 20, &on_device, 0));
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    ANSWER(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, reuse));
    say("reuse %d", *reuse);
}

/* Several attributes at once say what each of them says, and nothing when the call fails. */
static void pointer_attributes(void)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    int one = -1, type = -2, managed = -3;
    void *data[] = {&managed, &type};
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemAllocManaged(&block, 4096, CU_MEM_ATTACH_GLOBAL));
    ANSWER(cuPointerGetAttribute(&one, CU_POINTER_ATTRIBUTE_IS_MANAGED, block));
    ANSWER(cuPointerGetAttributes(2, names, data, block));
    say("managed %d %d, type %d", one, managed, type);
    MUST(cuMemFree(block));
    one = managed = type = -1;
    ANSWER(cuPointerGetAttribute(&one, CU_POINTER_ATTRIBUTE_IS_MANAGED, block));
    ANSWER(cuPointerGetAttributes(2, names, data, block));
    names[1] = (CU_POINTER_ATTRIBUTE_MEMORY_TYPE) + 1000;
    ANSWER(cuPointerGetAttributes(2, names, data, block));
    say("managed %d %d, type %d", one, managed, type);
}

static CUdeviceptr launch_graph(CUstream stream)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = pool_on_device, .bytesize = 1 << 20};
    CUgraphExec exec;
    CUgraphNode node;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    return params.dptr;
}

/* What a graph has taken, and what never was memory, comes to cuMemFree. */
static void unknown_pointer(void)
{
    CUdeviceptr block;
    CUstream stream;

    use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ANSWER(cuMemFree(0x1000));
    for (int i = 0; i < 4; i++) {
        block = launch_graph(stream);
        ANSWER(cuMemFree(block));
        ANSWER(cuMemFree(block));
    }
    ANSWER(cuMemFreeAsync(0x1000, stream));
}

static void *without_context(void *unused)
{
    CUmemAllocationProp there = on_device, host = on_device;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr block = 0;
    size_t bytes = 0;

    (void)unused;
    there.location.id = 1;
    host.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    ANSWER(cuMemCreate(&handle, 4 << 20, &there, 0));
    ANSWER(cuMemCreate(&handle, 2 << 20, &host, 0));
    ANSWER(cuMemAlloc(&block, 1000));
    ANSWER(cuMemAllocAsync(&block, 1000, NULL));
    ANSWER(cuMemGetInfo(&bytes, &bytes));
    ANSWER(cuMemFree(block));
    return NULL;
}

static void no_context(void)
{
    MUST(cuInit(0));
    without_context(NULL);
    use_device(0);
    in_thread(without_context, NULL);
}

/* What was taken on one device is freed in stream order while another is current. */
static void other_device_current(void)
{
    CUcontext first = use_device(0), second = use_device(1);
    CUdeviceptr block;
    CUstream stream;

    MUST(cuCtxSetCurrent(first));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 10; i++) {
        MUST(cuCtxSetCurrent(first));
        MUST(cuMemAllocAsync(&block, 10 << 20, stream));
        MUST(cuCtxSetCurrent(second));
        MUST(cuMemFreeAsync(block, stream));
    }
    MUST(cuStreamSynchronize(stream));
}

/* Taken and freed in stream order, from two pools: more by far than there is room for at a time. */
static void async_drift(void)
{
    CUdeviceptr one, other;
    CUmemoryPool pool;
    CUstream stream;

    use_device(0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemPoolCreate(&pool, &pool_on_device));
    for (int i = 0; i < 2000; i++) {
        MUST(cuMemAllocAsync(&one, 8 << 20, stream));
        MUST(cuMemAllocFromPoolAsync(&other, 8 << 20, pool, stream));
        MUST(cuMemFreeAsync(one, stream));
        MUST(i % 2 == 0 ? cuMemFreeAsync(other, stream) : cuStreamSynchronize(stream));
        if (i % 2 != 0)
            MUST(cuMemFree(other));
    }
    MUST(cuStreamSynchronize(stream));
}

static void *look_again(void *first)
{
    static const char *const names[] = {"open", "cuMemAlloc_v2", "dlsym", "nobody"};
    size_t different = 0;

    for (int i = 0; i < 4000; i++)
        different += dlsym(RTLD_NEXT, names[i % 4]) != ((void **)first)[i % 4];
    return (void *)different;
}

/* The same look-up again and again, by several threads. */
static void next_again(void)
{
    void *first[] = {dlsym(RTLD_NEXT, "open"), dlsym(RTLD_NEXT, "cuMemAlloc_v2"),
                     dlsym(RTLD_NEXT, "dlsym"), dlsym(RTLD_NEXT, "nobody")};
    pthread_t threads[8];
    void *different;

    for (int i = 0; i < 4; i++)
        say("%s", first[i] == NULL ? "none" : "found");
    start_threads(threads, 8, look_again, first);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &different);
        say("%zu others", (size_t)different);
    }
}

/* Memory information follows what the program takes and gives, within a limit or not. */
static void info_follows(void)
{
    size_t at_first, free_bytes, total;
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemGetInfo(&at_first, &total));
    for (int i = 1; i <= 5; i++) {
        MUST(cuMemAlloc(&block, (size_t)i << 21));
        MUST(cuMemGetInfo(&free_bytes, &total));
        say("taken %zu", at_first - free_bytes);
        MUST(cuMemFree(block));
        MUST(cuMemGetInfo(&free_bytes, &total));
        say("given back %zu", at_first - free_bytes);
    }
}

/* What is in use as soon as there is a context: nothing of ours. */
static void own_memory(void)
{
    size_t free_bytes, total;

    use_device(0);
    MUST(cuMemGetInfo(&free_bytes, &total));
    say("in use %zu of %zu", total - free_bytes, total);
}

static void die_midway(void)
{
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemAlloc(&block, 1 << 20));
    kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
#define WAY(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {WAY(null_outputs), WAY(pointer_attributes),   WAY(unknown_pointer),
                WAY(no_context),   WAY(other_device_current), WAY(async_drift),
                WAY(next_again),   WAY(info_follows),         WAY(own_memory),
                WAY(die_midway)};

    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        if (argc > 1 && strcmp(argv[1], ways[i].name) == 0) {
            ways[i].run();
            return 0;
        }
    return 98;
}
