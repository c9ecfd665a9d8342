/* SPDX-License-Identifier: MIT */
/*
 * Calls that nobody takes for allocations and that take memory on the way, each as the device is
 * full of what the program has freed. What they take the environment says, or the first argument
 * does; then come the calls that are to be made, all of them if none is named.
 *
 *   take     the simulated driver is told that each takes TAKEN bytes
 *   full     the same, and nothing is freed, so that there is nothing to give back
 *   capture  the same, while a stream captures
 *   plain    as the environment says
 *   remote   the same, while the context of another device is current
 */
#include "victim.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "cusim.h"

#define TAKEN ((size_t)200 << 20)
#define BLOCK (TAKEN / 4)
#define UNIT  ((size_t)2 << 20) /* of virtual memory management */
#define IMAGE "cusim 1\nkernel spin\nglobal variable 4096\n"
#define MOST  64

/* By name and in words, because headers of any version have to do. */
struct one {
    const char *symbol;
    uint64_t args[8];
};
#define A(value) ((uint64_t)(uintptr_t)(value))

static CUresult ask(const struct one *one)
{
    typedef CUresult (*any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                            uint64_t);
    any called = (any)dlsym(RTLD_DEFAULT, one->symbol);
    const uint64_t *a = one->args;

    if (called != NULL)
        return called(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    fprintf(stderr, "no %s\n", one->symbol);
    exit(98);
}
#define ASK(...) must(ask(&(struct one){__VA_ARGS__}), #__VA_ARGS__)

/* ---- what the calls work on, and leave ---- */

static void *module, *function, *library, *kernel, *link_state, *made;
static CUgraph graph;
static CUgraphExec exec;
static CUgraphNode node;
static CUstream stream;
static CUevent event;
static CUdeviceptr range, address;
static CUmemGenericAllocationHandle physical, multicast, another;
static CUmemAccessDesc here = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
static CUDA_TEXTURE_DESC texture = {.flags = CU_TRSF_READ_AS_INTEGER};
static CUtexObject object;
static CUjit_option option =
    CU_JIT_THREADS_PER_BLOCK; /* the compiler reads it, then writes to it */
static uint64_t threads[2] = {64, 64};
static char pages[8192] __attribute__((aligned(4096)));
static int number;
static size_t bytes;
static struct { /* CUmulticastObjectProp */
    unsigned devices;
    size_t size;
    unsigned long long handle_types, flags;
} cast = {.devices = 1, .size = UNIT};

static void prepare(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};

    ASK("cuModuleLoadData", {A(&module), A(IMAGE)});
    ASK("cuModuleGetFunction", {A(&function), A(module), A("spin")});
    ASK("cuLibraryLoadData", {A(&library), A(IMAGE)});
    ASK("cuLibraryGetKernel", {A(&kernel), A(library), A("spin")});
    ASK("cuLinkCreate_v2", {0, 0, 0, A(&link_state)});
    ASK("cuMulticastCreate", {A(&multicast), A(&cast)});
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuMemCreate(&physical, UNIT, &on_device, 0));
    MUST(cuMemAddressReserve(&range, UNIT, 0, 0, 0));
    MUST(cuMemMap(range, UNIT, 0, physical, 0));
    MUST(cuArrayCreate(&resource.res.array.hArray, &shape));
    MUST(cuMemHostRegister(pages, sizeof(pages), 0));
}

/* Returns how many there are. */
static size_t list(struct one *out)
{
    const struct one all[] = {
        {"cuModuleLoadDataEx", {A(&made), A(IMAGE), 1, A(&option), A(&threads[0])}},
        {"cuLibraryLoadData", {A(&made), A(IMAGE), A(&option), A(&threads[1]), 1}},
        {"cuFuncLoad", {A(function)}},
        {"cuFuncGetAttribute", {A(&number), 0, A(function)}},
        {"cuFuncSetAttribute", {A(function), 8, 1024}},
        {"cuFuncSetCacheConfig", {A(function), 1}},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessor", {A(&number), A(function), 256}},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", {A(&number), A(function), 256}},
        {"cuModuleGetFunction", {A(&made), A(module), A("spin")}},
        {"cuModuleGetGlobal_v2", {A(&address), A(&bytes), A(module), A("variable")}},
        {"cuLibraryGetKernel", {A(&made), A(library), A("spin")}},
        {"cuLibraryGetGlobal", {A(&address), A(&bytes), A(library), A("variable")}},
        {"cuLibraryGetModule", {A(&made), A(library)}},
        {"cuKernelGetFunction", {A(&made), A(kernel)}},
        {"cuKernelGetAttribute", {A(&number), 0, A(kernel), 0}},
        {"cuKernelSetAttribute", {8, 1024, A(kernel), 0}},
        {"cuKernelSetCacheConfig", {A(kernel), 1, 0}},
        {"cuLinkCreate_v2", {0, 0, 0, A(&made)}},
        {"cuLinkComplete", {A(link_state), A(&made), A(&bytes)}},
        {"cuEventCreate", {A(&event), 0}},
        {"cuStreamCreate", {A(&made), CU_STREAM_NON_BLOCKING}},
        {"cuStreamGetFlags", {A(stream), A(&number)}},
        {"cuTexObjectCreate", {A(&object), A(&resource), A(&texture), 0}},
        {"cuSurfObjectCreate", {A(&object), A(&resource)}},
        {"cuGraphCreate", {A(&made), 0}},
        {"cuGraphAddEmptyNode", {A(&node), A(graph), 0, 0}},
        {"cuGraphUpload", {A(exec), A(stream)}},
        {"cuMemSetAccess", {range, UNIT, A(&here), 1}},
        {"cuMemHostUnregister", {A(pages)}},
        {"cuMulticastCreate", {A(&another), A(&cast)}},
        {"cuMulticastAddDevice", {multicast, 0}},
        {"cuMulticastBindMem", {multicast, 0, physical, 0, UNIT, 0}},
    };

    memcpy(out, all, sizeof(all));
    return sizeof(all) / sizeof(all[0]);
}

/* ---- the device is full ---- */

static CUdeviceptr blocks[MOST];
static int count;

/* Nearly: less than any of the calls takes is left. */
static void fill(void)
{
    size_t left = 0;

    MUST(cuMemGetInfo(&left, NULL));
    for (count = 0; count < (int)(left / BLOCK) && count < MOST; count++)
        MUST(cuMemAlloc(&blocks[count], BLOCK));
}

static void empty(void)
{
    for (int i = 0; i < count; i++)
        MUST(cuMemFree(blocks[i]));
}

static void make(const struct one *one, char how)
{
    unsigned long long before;
    CUresult rc;

    fill();
    if (how != 'f')
        empty();
    if (how == 'c')
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (strchr("tfc", how) != NULL)
        cusim_take(one->symbol, TAKEN);
    if (how == 'r')
        use_device(1);
    before = cusim_calls(one->symbol);
    rc = ask(one);
    fprintf(stderr, "%s: %llu calls\n", one->symbol, cusim_calls(one->symbol) - before);
    say("%s: %d", one->symbol, (int)rc);
    cusim_take(one->symbol, 0);
    if (how == 'c')
        MUST(cuStreamEndCapture(stream, &graph));
    if (how == 'f')
        empty();
    use_device(0);
}

int main(int argc, char **argv)
{
    struct one all[MOST];
    size_t calls;

    use_device(0);
    prepare();
    calls = list(all);
    for (size_t i = 0; i < calls; i++) {
        int is_meant = argc == 2;

        for (int k = 2; k < argc; k++)
            is_meant |= strcmp(argv[k], all[i].symbol) == 0;
        if (is_meant)
            make(&all[i], argv[1][0]);
    }
    say("threads %d %d", (int)threads[0], (int)threads[1]);
    return 0;
}
