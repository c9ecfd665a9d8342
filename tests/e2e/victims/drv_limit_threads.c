/* SPDX-License-Identifier: MIT */
/*
 * 16 threads at the limit: each allocates and frees at random, of all kinds that count, until it
 * has done its share of operations, or for so many seconds. The driver's own count never exceeds
 * the limit by a byte.
 *
 *   drv_limit_threads LIMIT [OPERATIONS [SECONDS [KINDS]]]
 *
 * KINDS is a number with a bit for each kind, all if it is missing.
 */
#include "victim.h"
#include "in_thread.h"

#include <time.h>

#include "cusim.h"

#define THREADS    16
#define SLOTS      8
#define OPERATIONS 4000
#define UNIT       ((size_t)2 << 20)
#define CHARGE     512 /* what the driver's count goes in */

enum kind { LINEAR, PITCHED, ASYNC, ARRAY, VIRTUAL, MANAGED, KINDS };

struct slot {
    enum kind kind;
    int is_full;
    CUdeviceptr at;
    CUarray array;
    CUmemGenericAllocationHandle handle;
    size_t bytes;
};

/* Others than the simulated driver keep no such count. */
#pragma weak cusim_used_bytes
#pragma weak cusim_peak_bytes

static CUcontext context;
static int operations = OPERATIONS;
static time_t end;
static unsigned kinds = (1u << KINDS) - 1;
static _Atomic int granted[KINDS], refused[KINDS];

static unsigned draw(unsigned *seed)
{
    *seed = *seed * 1103515245 + 12345;
    return *seed >> 8;
}

static CUresult create_physical(struct slot *slot)
{
    slot->bytes = (slot->bytes + UNIT - 1) / UNIT * UNIT;
    return cuMemCreate(&slot->handle, slot->bytes, &on_device, 0);
}

static CUresult allocate(struct slot *slot)
{
    CUDA_ARRAY_DESCRIPTOR shape = {.Width = 1024,
                                   .Height = slot->bytes / 4096 + 1,
                                   .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                   .NumChannels = 1};
    size_t pitch;

    switch (slot->kind) {
    case PITCHED:
        return cuMemAllocPitch(&slot->at, &pitch, 1000, slot->bytes / 1000 + 1, 4);
    case ASYNC:
        return cuMemAllocAsync(&slot->at, slot->bytes, NULL);
    case ARRAY:
        return cuArrayCreate(&slot->array, &shape);
    case VIRTUAL:
        return create_physical(slot);
    case MANAGED:
        return cuMemAllocManaged(&slot->at, slot->bytes, CU_MEM_ATTACH_GLOBAL);
    default:
        return cuMemAlloc(&slot->at, slot->bytes);
    }
}

static CUresult release(struct slot *slot)
{
    switch (slot->kind) {
    case ASYNC:
        return cuMemFreeAsync(slot->at, NULL);
    case ARRAY:
        return cuArrayDestroy(slot->array);
    case VIRTUAL:
        return cuMemRelease(slot->handle);
    default:
        return cuMemFree(slot->at);
    }
}

static void step(struct slot *slot, unsigned *seed)
{
    CUresult rc;

    if (slot->is_full) {
        MUST(release(slot));
        slot->is_full = 0;
        return;
    }
    do
        slot->kind = draw(seed) % KINDS;
    while ((kinds >> slot->kind & 1) == 0);
    /* From 4 KiB on, where the pool's sizes are whole numbers of charges too. */
    slot->bytes = (size_t)1 << (draw(seed) % 10 + 12);
    slot->bytes += draw(seed) % slot->bytes / CHARGE * CHARGE;
    rc = allocate(slot);
    if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_OUT_OF_MEMORY)
        must(rc, "an allocation");
    slot->is_full = rc == CUDA_SUCCESS;
    ++*(rc == CUDA_SUCCESS ? &granted[slot->kind] : &refused[slot->kind]);
}

static void *work(void *number)
{
    struct slot slots[SLOTS] = {0};
    unsigned seed = (unsigned)(size_t)number * 7919 + 1;

    MUST(cuCtxSetCurrent(context));
    for (int i = 0; end != 0 ? time(NULL) < end : i < operations; i++)
        step(&slots[draw(&seed) % SLOTS], &seed);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].is_full)
            MUST(release(&slots[i]));
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long long limit = argc > 1 ? strtoull(argv[1], NULL, 0) : 0, before, peak;
    pthread_t threads[THREADS];

    operations = argc > 2 ? atoi(argv[2]) : OPERATIONS;
    end = argc > 3 && atoi(argv[3]) > 0 ? time(NULL) + atoi(argv[3]) : 0;
    if (argc > 4)
        kinds = (unsigned)strtoul(argv[4], NULL, 0);
    context = use_device(0);
    before = cusim_used_bytes ? cusim_used_bytes(0) : 0;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    join_threads(threads, THREADS);
    MUST(cuCtxSynchronize());
    peak = cusim_peak_bytes ? cusim_peak_bytes(0) - before : 0;
    say("%s", peak <= limit ? "within the limit" : "beyond the limit");
    for (int i = 0; i < KINDS; i++)
        say("kind %d %s, %s", i, granted[i] ? "granted" : "never granted",
            refused[i] ? "refused" : "never refused");
    fprintf(stderr, "peak %llu of %llu\n", peak, limit);
    return peak > limit;
}
