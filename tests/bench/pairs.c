/* SPDX-License-Identifier: MIT */
/*
 * The workloads over the driver that costs nothing (null_driver.c), with whatever is preloaded in
 * front of it.
 *
 *   pairs [kind=device|pinned|pitched] NAME=VALUE...
 *
 * The other words are those of workload.h. Blocks are device memory by default.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int cuInit(unsigned flags);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(uint64_t *dptr, size_t bytes);
int cuMemAllocPitch_v2(uint64_t *dptr, size_t *pitch, size_t width, size_t height,
                       unsigned element);
int cuMemFree_v2(uint64_t dptr);
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
int cuMemFreeHost(void *address);
uint64_t null_upstream(void);

#define ROWS 4

static enum { DEVICE, PINNED, PITCHED } kind;

static inline uint64_t take_block(size_t bytes)
{
    uint64_t address = 0;
    size_t pitch;

    switch (kind) {
    case DEVICE:
        cuMemAlloc_v2(&address, bytes);
        break;
    case PINNED:
        cuMemHostAlloc((void **)&address, bytes, 0);
        break;
    case PITCHED:
        cuMemAllocPitch_v2(&address, &pitch, bytes / ROWS, ROWS, 4);
        break;
    }
    return address;
}

static inline void give_block(uint64_t address)
{
    if (kind == PINNED)
        cuMemFreeHost((void *)(uintptr_t)address);
    else
        cuMemFree_v2(address);
}

static inline void synchronize(void)
{
    cuCtxSynchronize();
}

#include "workload.h"

int main(int argc, char **argv)
{
    argc--;
    argv++;
    if (argc > 0 && strncmp(argv[0], "kind=", 5) == 0) {
        if (strcmp(argv[0], "kind=pinned") == 0)
            kind = PINNED;
        else if (strcmp(argv[0], "kind=pitched") == 0)
            kind = PITCHED;
        argc--;
        argv++;
    }
    return cuInit(0) == 0 ? run_workload(argc, argv) : 2;
}
