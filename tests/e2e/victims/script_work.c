/* SPDX-License-Identifier: MIT */
/*
 * The commands of drv_script.c that are about memory which nobody asks for by its size (modules,
 * graphs, kernels), about kinds that script_memory.c does not have, and about what became of it.
 */
#include "script.h"

#include <dirent.h>
#include <unistd.h>

#include "cusim.h"

#define WAIT_MS   2
#define WAIT_MOST 600000
#define IMAGE     "cusim 1\nkernel spin\n"

static CUmipmappedArray mipmaps[128];
static CUmemoryPool pools[128];
static CUmodule modules[128];
static CUgraphExec execs[128];

static size_t index_at(const struct args *args, int i)
{
    return args->text[i][0] & 127;
}

static int device_here(void)
{
    CUdevice device;

    MUST(cuCtxGetDevice(&device));
    return device;
}

/* module:NAME, launch:EXEC, destroy-pool:NAME. */
#define CALLS(ROW)                                                                                 \
    ROW("module", run_module, cuModuleLoadData(&modules[index_at(args, 0)], IMAGE))                \
    ROW("launch", run_launch, cuGraphLaunch(execs[index_at(args, 0)], NULL))                       \
    ROW("destroy-pool", run_destroy_pool, cuMemPoolDestroy(pools[index_at(args, 0)]))
CALLS(DEFINE_CALL)

/* from-pool:BLOCK:BYTES:POOL */
#define ALLOCS(ROW)                                                                                \
    ROW("from-pool", run_from_pool,                                                                \
        cuMemAllocFromPoolAsync(&block->at, block->bytes, pools[index_at(args, 2)], NULL))
ALLOCS(DEFINE_ALLOC)

/* ---- kinds ---- */

static NOINLINE int run_mipmap(const struct args *args) /* mipmap:NAME:BYTES of its one level */
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 1024,
                                     .Height = (size_at(args, 1) + 4095) / 4096,
                                     .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                     .NumChannels = 1};

    return (int)cuMipmappedArrayCreate(&mipmaps[index_at(args, 0)], &shape, 1);
}

static int run_pool(const struct args *args) /* pool:NAME, one that keeps all that is freed */
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_here()}};
    cuuint64_t all = UINT64_MAX;

    MUST(cuMemPoolCreate(&pools[index_at(args, 0)], &props));
    return (int)cuMemPoolSetAttribute(pools[index_at(args, 0)], CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                      &all);
}

/* captured:BLOCK:BYTES:EXEC: asked for in a capture, which becomes an executable graph. */
static NOINLINE int run_captured(const struct args *args)
{
    struct block *block = block_at(args, 0);
    CUstream stream;
    CUgraph graph;
    int rc;

    block->bytes = size_at(args, 1);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    rc = (int)cuMemAllocAsync(&block->at, block->bytes, stream);
    MUST(cuStreamEndCapture(stream, &graph));
    if (rc == 0)
        rc = (int)cuGraphInstantiateWithFlags(&execs[index_at(args, 2)], graph, 0);
    return rc;
}

/* ---- memory that nobody asks for ---- */

static int run_kernel(const struct args *args) /* kernel:MODULE */
{
    unsigned long long microseconds = 0;
    void *arguments[] = {&microseconds};
    CUfunction function;

    MUST(cuModuleGetFunction(&function, modules[index_at(args, 0)], "spin"));
    return (int)cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
}

static int run_empty_graph(const struct args *args) /* empty-graph:EXEC, instantiated */
{
    CUgraphNode node;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    return (int)cuGraphInstantiateWithFlags(&execs[index_at(args, 0)], graph, 0);
}

/* ---- what became of it ---- */

static int run_info_parts(const struct args *args) /* one of the two pointers, and none */
{
    size_t free_bytes = 1, total = 1;
    int rc_free = (int)cuMemGetInfo(&free_bytes, NULL);
    int rc_total = (int)cuMemGetInfo(NULL, &total);

    (void)args;
    say("parts free=%zu total=%zu rc=%d,%d,%d", free_bytes, total, rc_free, rc_total,
        (int)cuMemGetInfo(NULL, NULL));
    return 0;
}

static int run_advice(const struct args *args) /* advice:BLOCK, on standard error */
{
    unsigned long long accessed = 0;
    int preferred = 0;
    int rc = cusim_managed_advice(block_at(args, 0)->at, &preferred, &accessed);

    fprintf(stderr, "%s rc=%d preferred=%d accessed=%llx\n", args->word, rc, preferred, accessed);
    return 0;
}

static int run_used(const struct args *args) /* used:ORDINAL by the driver, on standard error */
{
    int device = (int)size_at(args, 0);

    fprintf(stderr, "%s %llu of %llu\n", args->word, cusim_used_bytes(device),
            cusim_peak_bytes(device));
    return 0;
}

static int run_tasks(const struct args *args) /* tasks: threads of the process, on standard error */
{
    DIR *directory = opendir("/proc/self/task");
    int count = 0;

    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    fprintf(stderr, "%s %d\n", args->word, count);
    return 0;
}

/* wait-free:BYTES[:ORDINAL]: until the device has so much, by the driver's word and without a call
 * that the library could see. */
static int run_wait_free(const struct args *args)
{
    unsigned long long used = 0, total = 0;

    for (int ms = 0;
         cusim_memory((int)size_at(args, 1), &used, &total) != 0 || total - used < size_at(args, 0);
         ms += WAIT_MS) {
        if (ms >= WAIT_MOST) {
            fprintf(stderr, "%s: only %llu of %llu\n", args->word, total - used, total);
            exit(95);
        }
        usleep(WAIT_MS * 1000);
    }
    return 0;
}

const struct command work_commands[] = {
    {"mipmap", run_mipmap, 0},
    {"pool", run_pool, 0},
    {"captured", run_captured, 0},
    {"kernel", run_kernel, 0},
    {"empty-graph", run_empty_graph, 0},
    {"info-parts", run_info_parts, 1},
    {"advice", run_advice, 1},
    {"used", run_used, 1},
    {"tasks", run_tasks, 1},
    {"wait-free", run_wait_free, 1},
    CALLS(ENTRY)  /* those of one call */
    ALLOCS(ENTRY) /* and those that allocate by one */
    {NULL, NULL, 0},
};
