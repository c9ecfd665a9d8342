/* SPDX-License-Identifier: MIT */
/*
 * The commands of drv_script.c that are about how much memory there is: who says so, the kinds of
 * memory that count, and other processes that want some.
 */
#include "script.h"

#include <cuwarden/cuwarden.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#define UNIT      ((size_t)2 << 20) /* of virtual memory management */
#define WAIT_MS   5
#define WAIT_MOST 600000

static CUarray arrays[128];
static CUmemGenericAllocationHandle handles[128];

/* ---- who says how much there is ---- */

static int run_info(const struct args *args)
{
    size_t free_bytes = 0, total = 0;
    int rc = (int)cuMemGetInfo(&free_bytes, &total);

    (void)args;
    say("info free=%zu total=%zu", free_bytes, total);
    return rc;
}

static int run_total(const struct args *args) /* total[:ORDINAL] */
{
    size_t total = 0;
    int rc = (int)cuDeviceTotalMem(&total, (int)size_at(args, 0));

    say("total %zu", total);
    return rc;
}

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

/* As programs do that were not linked with it. */
static void *nvml(const char *name)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    void *function = library != NULL ? dlsym(library, name) : NULL;

    if (function == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(99);
    }
    return function;
}

static void *nvml_device(unsigned ordinal)
{
    void *device = NULL;

    must((CUresult)((int (*)(void))nvml("nvmlInit_v2"))(), "nvmlInit_v2");
    must((CUresult)((int (*)(unsigned, void **))nvml("nvmlDeviceGetHandleByIndex_v2"))(ordinal,
                                                                                       &device),
         "nvmlDeviceGetHandleByIndex_v2");
    return device;
}

static int run_nvml(const struct args *args) /* nvml[:ORDINAL] */
{
    void *device = nvml_device((unsigned)size_at(args, 0));
    struct nvml_memory memory = {0, 0, 0};
    int rc =
        ((int (*)(void *, struct nvml_memory *))nvml("nvmlDeviceGetMemoryInfo"))(device, &memory);

    say("nvml total=%llu free=%llu used=%llu", memory.total, memory.free, memory.used);
    return rc;
}

static int run_nvml2(const struct args *args) /* nvml2[:ORDINAL] */
{
    void *device = nvml_device((unsigned)size_at(args, 0));
    struct nvml_memory_v2 memory = {.version = sizeof(memory) | 2u << 24};
    int rc = ((int (*)(void *, struct nvml_memory_v2 *))nvml("nvmlDeviceGetMemoryInfo_v2"))(
        device, &memory);

    say("nvml2 total=%llu reserved=%llu free=%llu used=%llu", memory.total, memory.reserved,
        memory.free, memory.used);
    return rc;
}

/* ---- what counts ---- */

/* WORD:BLOCK:BYTES */
#define ALLOCS(ROW)                                                                                \
    ROW("managed", run_managed, cuMemAllocManaged(&block->at, block->bytes, CU_MEM_ATTACH_GLOBAL)) \
    ROW("async", run_async, cuMemAllocAsync(&block->at, block->bytes, NULL))
ALLOCS(DEFINE_ALLOC)

static NOINLINE int run_array(const struct args *args) /* array:BLOCK:BYTES, in rows of 4 KiB */
{
    size_t rows = (size_at(args, 1) + 4095) / 4096;
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 1024, .Height = rows, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};

    return (int)cuArrayCreate(&arrays[args->text[0][0] & 127], &shape);
}

/* vmm:BLOCK:BYTES: physical memory, mapped and accessible; what fails first is the answer. */
static NOINLINE int run_vmm(const struct args *args)
{
    struct block *block = block_at(args, 0);
    CUmemGenericAllocationHandle *handle = &handles[args->text[0][0] & 127];
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult rc;

    MUST(cuCtxGetDevice(&here.id));
    prop.location = access.location = here;
    block->bytes = (size_at(args, 1) + UNIT - 1) / UNIT * UNIT;
    rc = cuMemCreate(handle, block->bytes, &prop, 0);
    if (rc != CUDA_SUCCESS)
        return (int)rc;
    MUST(cuMemAddressReserve(&block->at, block->bytes, 0, 0, 0));
    MUST(cuMemMap(block->at, block->bytes, 0, *handle, 0));
    return (int)cuMemSetAccess(block->at, block->bytes, &access, 1);
}

static int run_free_vmm(const struct args *args)
{
    struct block *block = block_at(args, 0);

    MUST(cuMemUnmap(block->at, block->bytes));
    MUST(cuMemAddressFree(block->at, block->bytes));
    return (int)cuMemRelease(handles[args->text[0][0] & 127]);
}

/* ---- how much one gets ---- */

/* big:BLOCK:PERCENT: one block of so much of what is said to be free. */
static NOINLINE int run_big(const struct args *args)
{
    struct block *block = block_at(args, 0);
    size_t free_bytes = 0;
    int rc;

    MUST(cuMemGetInfo(&free_bytes, NULL));
    block->bytes = free_bytes * size_at(args, 1) / 100;
    rc = (int)cuMemAlloc(&block->at, block->bytes);
    say("big rc=%d bytes=%zu", rc, block->bytes);
    return rc;
}

static NOINLINE int run_ask(const struct args *args) /* ask:BLOCK:BYTES; failure is an answer */
{
    struct block *block = block_at(args, 0);
    CUdeviceptr at;
    int rc = (int)cuMemAlloc(&at, size_at(args, 1));

    if (rc == 0)
        *block = (struct block){.at = at, .bytes = size_at(args, 1)};
    say("ask %s rc=%d", args->text[1], rc);
    return rc;
}

/* ---- other processes ---- */

static int run_touch(const struct args *args) /* touch:FILE */
{
    return close(open(args->text[0], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static int run_wait(const struct args *args) /* wait:FILE, until it exists */
{
    for (int ms = 0; access(args->text[0], F_OK) != 0; ms += WAIT_MS) {
        if (ms >= WAIT_MOST) {
            fprintf(stderr, "%s does not come\n", args->text[0]);
            exit(96);
        }
        usleep(WAIT_MS * 1000);
    }
    return 0;
}

#define CALLS(ROW) ROW("free-array", run_free_array, cuArrayDestroy(arrays[args->text[0][0] & 127]))
CALLS(DEFINE_CALL)

/* push:TAG and pop: of cuwarden's own. */
static int run_push(const struct args *args)
{
    return cuwarden_tag_push(args->text[0]);
}

static int run_pop(const struct args *args)
{
    (void)args;
    return cuwarden_tag_pop();
}

/* step:NAME */
static int run_step(const struct args *args)
{
    return cuwarden_step(args->text[0]);
}

/* budget:TAG:BYTES[:refuse], budget:TAG: none any more. */
static int run_budget(const struct args *args)
{
    if (args->text[1][0] == '\0')
        return cuwarden_budget_clear(args->text[0]);
    return cuwarden_budget_set(args->text[0], size_at(args, 1),
                               args->text[2][0] != '\0' ? CUWARDEN_REFUSE : CUWARDEN_WARN);
}

/* has:TAG: used, most used, refused calls, times beyond. */
static int run_has(const struct args *args)
{
    struct cuwarden_budget now = {0};

    cuwarden_budget_now(args->text[0], &now);
    say("%s %llu %llu %llu %llu", args->text[0], (unsigned long long)now.used_bytes,
        (unsigned long long)now.peak_bytes, (unsigned long long)now.refused,
        (unsigned long long)now.exceeded);
    return 0;
}

const struct command memory_commands[] = {
    {"info", run_info, 1},
    {"total", run_total, 1},
    {"nvml", run_nvml, 1},
    {"nvml2", run_nvml2, 1},
    {"array", run_array, 0},
    {"vmm", run_vmm, 0},
    {"free-vmm", run_free_vmm, 0},
    {"big", run_big, 1},
    {"ask", run_ask, 1},
    {"touch", run_touch, 1},
    {"wait", run_wait, 1},
    {"push", run_push, 1},
    {"pop", run_pop, 1},
    {"step", run_step, 1},
    {"budget", run_budget, 0},
    {"has", run_has, 1},
    CALLS(ENTRY)  /* those of one call */
    ALLOCS(ENTRY) /* and those that allocate by one */
    {NULL, NULL, 0},
};
