/* SPDX-License-Identifier: MIT */
/* Proves what README.md says of how much memory there is: `selftest_memory MODE`, where MODE is
 * shared, implicit, pools, managed, unmanaged, units or here. Prints TAP; exits 1 if a test fails.
 * Other modes are its own child processes.
 */
#include "selftest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB            ((size_t)1 << 20)
#define CONTEST_ROUNDS 30000

static CUcontext ctx;

static void start(void)
{
    must(cuInit(0));
    must(cuCtxCreate(&ctx, NULL, 0, 0));
}

/* ---- several processes ---- */

struct child {
    pid_t pid;
    int said; /* a pipe */
};

static struct child spawn(const char *mode, const char *argument)
{
    struct child child;
    int ends[2];

    if (pipe(ends) != 0)
        exit(99);
    child.pid = fork();
    if (child.pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "selftest_memory", mode, argument, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    child.said = ends[0];
    return child;
}

/* One byte: that it is as far, or how often it had success. */
static unsigned hear(const struct child *child)
{
    unsigned char byte = 255;

    if (read(child->said, &byte, 1) != 1)
        return 999;
    return byte;
}

static void say_byte(unsigned byte)
{
    unsigned char it = (unsigned char)byte;

    if (write(1, &it, 1) != 1)
        exit(99);
}

static void end(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->said);
}

static void child_holds(size_t bytes)
{
    CUdeviceptr block;

    start();
    must(cuMemAlloc(&block, bytes));
    say_byte(1);
    pause();
}

/* What the children of test_many_processes share, in a file. */
struct contest {
    atomic_uint is_open, holders, successes, collisions;
};

static struct contest *map_contest(const char *path)
{
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    struct contest *contest = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof *contest) == 0)
        contest = mmap(NULL, sizeof *contest, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (contest == MAP_FAILED)
        exit(99);
    close(fd);
    return contest;
}

/* Takes more than half of the device again and again: no two processes may have it at a time. */
static void child_contends(const char *path)
{
    struct contest *contest = map_contest(path);
    CUdeviceptr block;

    start();
    say_byte(1);
    while (!atomic_load(&contest->is_open))
        usleep(100);
    for (int i = 0; i < CONTEST_ROUNDS; i++) {
        if (cuMemAlloc(&block, 40 * MiB) != CUDA_SUCCESS)
            continue;
        if (atomic_fetch_add(&contest->holders, 1) > 0)
            atomic_fetch_add(&contest->collisions, 1);
        atomic_fetch_add(&contest->successes, 1);
        atomic_fetch_sub(&contest->holders, 1);
        must(cuMemFree(block));
    }
    say_byte(1);
    pause();
}

static void test_two_processes(void)
{
    struct child child;
    CUdeviceptr block;
    size_t total;

    must(cuMemGetInfo(NULL, &total));
    ok(total == 64 * MiB && free_bytes() == 63 * MiB, "alone, a process sees its own memory");
    child = spawn("holds", "20");
    ok(hear(&child) == 1 && free_bytes() == 42 * MiB, "it sees what another process holds");
    ok(cusim_used_bytes(0) == MiB, "which is not counted as its own");
    ok(cuMemAlloc(&block, 42 * MiB + 1) == CUDA_ERROR_OUT_OF_MEMORY, "and cannot have it");
    must(cuMemAlloc(&block, 42 * MiB));
    ok(free_bytes() == 0, "what is left it can have");
    end(&child);
    ok(free_bytes() == 21 * MiB, "a killed process gives back what it held");
    must(cuMemFree(block));
    ok(free_bytes() == 63 * MiB, "and nothing more");
}

static void test_many_processes(void)
{
    static const char path[] = "selftest.contest";
    struct contest *contest = map_contest(path);
    struct child children[3];
    unsigned sum = 0;

    for (int i = 0; i < 3; i++) {
        children[i] = spawn("contends", path);
        sum += hear(&children[i]);
    }
    ok(sum == 3 && free_bytes() == 60 * MiB, "several processes share a device");
    atomic_store(&contest->is_open, 1);
    for (int i = 0; i < 3; i++)
        sum += hear(&children[i]);
    ok(sum == 6 && contest->successes > 0, "any of them gets a block for which there is room");
    ok(contest->collisions == 0, "never two of them");
    for (int i = 0; i < 3; i++)
        end(&children[i]);
    ok(free_bytes() == 63 * MiB, "once they are gone, all of it is free");
    munmap(contest, sizeof *contest);
    unlink(path);
}

/* A child that lives on does not keep what its parent held. */
static void test_orphan(void)
{
    struct child child = spawn("forks", "20");

    ok(hear(&child) == 1 && free_bytes() == 42 * MiB,
       "a process that forked holds its memory once");
    kill(child.pid, SIGKILL);
    waitpid(child.pid, NULL, 0);
    ok(free_bytes() == 63 * MiB, "its child does not hold it any longer");
    close(child.said);
}

/* The child speaks, until nobody listens. */
static void child_forks(size_t bytes)
{
    CUdeviceptr block;

    start();
    must(cuMemAlloc(&block, bytes));
    if (fork() != 0)
        pause();
    for (;;) {
        say_byte(1);
        usleep(1000);
    }
}

static void test_shared(void)
{
    static const char path[] = "selftest.shared";

    unlink(path);
    setenv("CUSIM_SHARED", path, 1);
    setenv("CUSIM_MEMORY", "64M", 1);
    setenv("CUSIM_CONTEXT_BYTES", "1M", 1);
    start();
    test_two_processes();
    test_many_processes();
    test_orphan();
    unlink(path);
}

/* ---- what costs memory without asking for it ---- */

static const char image[] = "cusim 1\nkernel trap\nkernel spin\n";

static CUresult launch(CUfunction function)
{
    uint64_t microseconds = 0;
    void *arguments[] = {&microseconds};

    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
}

static CUgraph make_graph(CUfunction function)
{
    uint64_t microseconds = 0;
    void *arguments[] = {&microseconds};
    CUDA_KERNEL_NODE_PARAMS params = {function, 1, 1, 1, 1, 1, 1, 0, arguments, NULL, NULL, NULL};
    CUgraphNode node;
    CUgraph graph;

    must(cuGraphCreate(&graph, 0));
    must(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    return graph;
}

static void test_full(CUfunction function, CUgraph graph)
{
    CUcontext other;
    CUmodule module;
    CUstream stream;
    CUgraphExec exec;

    ok(cuModuleLoadData(&module, image) == CUDA_ERROR_OUT_OF_MEMORY, "full: no module is loaded");
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_ERROR_OUT_OF_MEMORY, "no stream");
    ok(cuGraphInstantiate(&exec, graph, 0) == CUDA_ERROR_OUT_OF_MEMORY, "no graph instantiated");
    ok(launch(function) == CUDA_ERROR_OUT_OF_MEMORY, "no function launched for the first time");
    ok(cuCtxCreate(&other, NULL, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY, "no context created");
    ok(cuDevicePrimaryCtxRetain(&other, 0) == CUDA_ERROR_OUT_OF_MEMORY, "nor retained");
    ok(free_bytes() == 0, "and nothing is lost");
}

static void test_implicit(void)
{
    CUmodule module, second;
    CUfunction function;
    CUgraphExec exec;
    CUdeviceptr all;
    CUstream stream;
    CUgraph graph;

    setenv("CUSIM_MEMORY", "64M", 1);
    setenv("CUSIM_CONTEXT_BYTES", "1M", 1);
    setenv("CUSIM_MODULE_BYTES", "2M", 1);
    setenv("CUSIM_STREAM_BYTES", "3M", 1);
    setenv("CUSIM_GRAPH_BYTES", "4M", 1);
    setenv("CUSIM_LAZY_LOAD_BYTES", "5M", 1);
    start();
    ok(free_bytes() == 63 * MiB, "a context has its default stream for nothing");
    must(cuModuleLoadData(&module, image));
    must(cuModuleGetFunction(&function, module, "spin"));
    ok(free_bytes() == 61 * MiB, "a module costs what CUSIM_MODULE_BYTES says");
    graph = make_graph(function);
    must(cuMemAlloc(&all, free_bytes()));
    test_full(function, graph);
    must(cuMemFree(all));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(free_bytes() == 58 * MiB, "a stream costs what CUSIM_STREAM_BYTES says");
    must(launch(function));
    must(launch(function));
    ok(free_bytes() == 53 * MiB, "the first launch costs what CUSIM_LAZY_LOAD_BYTES says");
    must(cuGraphInstantiate(&exec, graph, 0));
    ok(free_bytes() == 49 * MiB, "an executable graph costs what CUSIM_GRAPH_BYTES says");
    must(cuModuleLoadData(&second, image));
    must(cuModuleGetFunction(&function, second, "spin"));
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    graph = make_graph(function);
    must(cuGraphInstantiate(&exec, graph, 0));
    ok(free_bytes() == 42 * MiB, "and loads the functions that were not launched before");
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    must(cuStreamDestroy(stream));
    must(cuModuleUnload(module));
    must(cuModuleUnload(second));
    ok(free_bytes() == 63 * MiB, "all of it comes back with its end");
}

/* ---- pools ---- */

static cuuint64_t pool_bytes(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value;

    must(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

enum how { BY_STREAM, BY_EVENT, BY_CONTEXT, BY_TRIM };

static void synchronise(enum how how, CUmemoryPool pool, CUstream stream, CUevent event)
{
    switch (how) {
    case BY_STREAM:
        must(cuStreamSynchronize(stream));
        break;
    case BY_EVENT:
        must(cuEventSynchronize(event));
        break;
    case BY_CONTEXT:
        must(cuCtxSynchronize());
        break;
    case BY_TRIM:
        must(cuMemPoolTrimTo(pool, 0));
        break;
    }
}

static void test_give_back(enum how how, CUmemoryPool pool, CUstream stream)
{
    static const char *const sentences[] = {
        "a stream synchronisation gives back what the pool keeps",
        "so does an event's",
        "so does the context's",
        "so does a trim",
    };
    size_t before = free_bytes();
    CUdeviceptr block;
    CUevent event;

    must(cuEventCreate(&event, 0));
    must(cuMemAllocAsync(&block, MiB, stream));
    must(cuMemFreeAsync(block, stream));
    must(cuEventRecord(event, stream));
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
        usleep(100);
    ok(pool_bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0 &&
           pool_bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == MiB &&
           before - free_bytes() == MiB,
       "freed memory stays reserved, and the device's");
    synchronise(how, pool, stream, event);
    ok(free_bytes() == before && pool_bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0,
       sentences[how]);
    must(cuEventDestroy(event));
}

static void test_pools(void)
{
    cuuint64_t threshold = 2 * MiB;
    CUdeviceptr blocks[3], all;
    CUmemoryPool pool, current;
    unsigned char uuid[16];
    CUstream stream;
    size_t before;
    CUuuid said;

    start();
    must(cuDeviceGetUuid_v2(&said, 0));
    ok(cusim_uuid(0, uuid) == 0 && memcmp(uuid, &said, 16) == 0 && cusim_uuid(2, uuid) != 0,
       "a device has one identity");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    must(cuDeviceGetMemPool(&current, 0));
    ok(pool == current && pool_bytes(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0,
       "the default pool keeps nothing by default");
    for (enum how how = BY_STREAM; how <= BY_TRIM; how++)
        test_give_back(how, pool, stream);
    before = free_bytes();
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    for (int i = 0; i < 3; i++)
        must(cuMemAllocAsync(&blocks[i], MiB, stream));
    for (int i = 0; i < 3; i++)
        must(cuMemFreeAsync(blocks[i], stream));
    must(cuStreamSynchronize(stream));
    ok(before - free_bytes() == 2 * MiB, "up to the threshold it keeps it for good");
    must(cuMemPoolTrimTo(pool, MiB));
    ok(before - free_bytes() == MiB, "until it is trimmed, to what is to stay");
    ok(cuMemAlloc(&all, before) == CUDA_SUCCESS && free_bytes() == 0,
       "an allocation takes what a pool does not use");
    must(cuMemFree(all));
    ok(free_bytes() == before, "for good");
}

/* ---- managed memory ---- */

static int attribute(CUdevice_attribute which)
{
    int value = -1;

    must(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

static void test_managed(void)
{
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    unsigned long long accessed = 7;
    CUdeviceptr block, plain;
    int preferred = 7;

    start();
    ok(attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) == 1 &&
           attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 1,
       "there is managed memory");
    must(cuMemAllocManaged(&block, MiB, CU_MEM_ATTACH_GLOBAL));
    must(cuMemAlloc(&plain, MiB));
    ok(cusim_managed_advice(block, &preferred, &accessed) == 0 && preferred == CUSIM_NOWHERE &&
           accessed == 0,
       "about which nothing is advised at first");
    must(cuMemAdvise(block, MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    must(cuMemAdvise(block, MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    must(cuMemAdvise(block, MiB, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    ok(cusim_managed_advice(block + 5, &preferred, &accessed) == 0 && preferred == CUSIM_CPU &&
           accessed == 2,
       "advice is remembered");
    must(cuMemAdvise(block, MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
    must(cuMemAdvise(block, MiB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device));
    must(cuMemAdvise(block, MiB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host));
    ok(cusim_managed_advice(block, &preferred, &accessed) == 0 && preferred == CUSIM_NOWHERE &&
           accessed == CUSIM_HOST_BIT,
       "and can be taken back");
    device.id = 9;
    ok(cuMemAdvise(block, MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, device) == CUDA_ERROR_INVALID_DEVICE,
       "a device must exist");
    ok(cuMemAdvise(plain, MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host) ==
               CUDA_ERROR_INVALID_VALUE &&
           cusim_managed_advice(plain, &preferred, &accessed) != 0,
       "other memory takes no advice");
    must(cuMemFree(block));
    ok(cusim_managed_advice(block, &preferred, &accessed) != 0, "nor does freed memory");
}

static void test_unmanaged(void)
{
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    CUdeviceptr block;

    setenv("CUSIM_MANAGED", "0", 1);
    start();
    ok(attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) == 0 &&
           attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0,
       "CUSIM_MANAGED=0: the device lacks managed memory");
    must(cuMemAllocManaged(&block, MiB, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemAdvise(block, MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host) ==
           CUDA_ERROR_INVALID_DEVICE,
       "and takes no advice on it");
    must(cuMemFree(block));
}

/* ---- units of physical memory ---- */

static void test_units(void)
{
    CUdeviceptr small[3], large;
    size_t before;

    setenv("CUSIM_ALLOC_GRANULARITY", "2M", 1);
    start();
    before = free_bytes();
    must(cuMemAlloc(&large, MiB + 1));
    ok(before - free_bytes() == 2 * MiB, "a block of more than half a unit takes a whole one");
    must(cuMemAlloc(&small[0], MiB));
    ok(before - free_bytes() == 4 * MiB, "the first small one too");
    must(cuMemAlloc(&small[1], MiB));
    ok(before - free_bytes() == 4 * MiB, "a second small one shares it");
    must(cuMemAlloc(&small[2], 1));
    ok(before - free_bytes() == 6 * MiB, "until it is full");
    must(cuMemFree(small[0]));
    ok(before - free_bytes() == 4 * MiB, "where a small one was, another may be");
    must(cuMemFree(large));
    must(cuMemFree(small[1]));
    must(cuMemFree(small[2]));
    ok(free_bytes() == before, "nothing is left of all of them");
    ok(cuMemAlloc(&large, before - 1) == CUDA_SUCCESS && free_bytes() == 0, "all of it in one");
    ok(cuMemAlloc(&small[0], 1) == CUDA_ERROR_OUT_OF_MEMORY, "then there is nothing");
    must(cuMemFree(large));
    must(cuMemAlloc(&large, before - MiB));
    ok(free_bytes() == 0, "a unit that is begun is taken");
    must(cuMemFree(large));
}

/* ---- what a thread has called ---- */

static unsigned entered;

static void count_entry(const char *symbol)
{
    entered += strcmp(symbol, "cuMemAlloc_v2") == 0;
}

static void test_here(void)
{
    struct cusim_here before, after;
    CUdeviceptr block;
    CUstream stream;

    start();
    cusim_set_delay_us(2000);
    cusim_set_cost_ns("cuMemAlloc_v2", 1000);
    must(cuStreamCreate(&stream, 0));
    cusim_here(&before);
    must(cuMemAlloc(&block, 16));
    ok(cuMemAlloc(&block, 1ul << 60) == CUDA_ERROR_OUT_OF_MEMORY, "there is a limit");
    cusim_here(&after);
    ok(after.calls - before.calls == 2 && after.frees == before.frees, "two calls, no free");
    ok(after.refused - before.refused == 1, "one of them out of memory");
    ok(after.cost_ns - before.cost_ns == 2000, "both cost something");
    must(cuMemsetD8Async(block, 0, 16, stream));
    ok(after.waits == before.waits, "nothing has been waited for");
    must(cuMemFree(block));
    must(cuCtxSynchronize());
    cusim_here(&after);
    ok(after.frees - before.frees == 1, "one free");
    ok(after.waits - before.waits == 1, "which found work undone; what came after it did not");
    cusim_set_entered(count_entry);
    must(cuMemAlloc(&block, 16));
    cusim_set_entered(NULL);
    must(cuMemFree(block));
    ok(entered == 1, "who wants to know is told of a call when it begins");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"shared", test_shared},   {"implicit", test_implicit},   {"pools", test_pools},
        {"managed", test_managed}, {"unmanaged", test_unmanaged}, {"units", test_units},
        {"here", test_here},
    };

    if (argc > 2 && !strcmp(argv[1], "holds"))
        child_holds(strtoul(argv[2], NULL, 10) * MiB);
    if (argc > 2 && !strcmp(argv[1], "forks"))
        child_forks(strtoul(argv[2], NULL, 10) * MiB);
    if (argc > 2 && !strcmp(argv[1], "contends"))
        child_contends(argv[2]);
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(argv[1], modes[i].name))
            modes[i].run();
    printf("1..%u\n", ntests);
    return nfailures > 0 || ntests == 0;
}
