/* SPDX-License-Identifier: MIT */
/*
 * Sizes its cache as inference servers do, vLLM for one: asks at the start how much memory there is
 * and what is free, loads weights, makes a trial run, asks again, takes what is missing in free
 * memory for what it has used itself, and gives the rest of its share to the cache.
 *
 *   drv_server NAME OTHER SHARE WEIGHTS TRIAL
 *
 * SHARE is in percent of the total, WEIGHTS and TRIAL in MiB. At each step it waits for the server
 * that is called OTHER, unless that is "-", so that each loads between the other's two looks. Says
 * total, free at both looks, and the cache's size, in bytes. Exits 3 if too little is free at the
 * start, 4 if there is more in the end, 5 if nothing is left for the cache, 6 if the cache is not
 * to be had.
 */
#include "victim.h"

#include <fcntl.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB       ((size_t)1 << 20)
#define PIECES    8
#define WAIT_MOST 600000 /* ms */

static const char *name, *other;

static int leave_mark(const char *step)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s.%s", name, step);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : close(fd);
}

/* Until the other one is as far. */
static void meet(const char *step)
{
    char path[256];

    if (leave_mark(step) != 0)
        exit(90);
    snprintf(path, sizeof(path), "%s.%s", other, step);
    for (int ms = 0; strcmp(other, "-") != 0 && access(path, F_OK) != 0; ms++) {
        if (ms >= WAIT_MOST) {
            fprintf(stderr, "%s does not come\n", path);
            exit(91);
        }
        usleep(1000);
    }
}

static void look(size_t *out_free, size_t *out_total)
{
    MUST(cuMemGetInfo(out_free, out_total));
}

static void load_weights(size_t bytes)
{
    for (int i = 0; i < PIECES; i++) {
        CUdeviceptr weights;

        MUST(cuMemAlloc(&weights, bytes / PIECES));
    }
}

static void try_out(size_t bytes)
{
    CUdeviceptr activations;

    MUST(cuMemAlloc(&activations, bytes));
    MUST(cuCtxSynchronize());
    MUST(cuMemFree(activations));
}

int main(int argc, char **argv)
{
    size_t first, last, total, share, used, trial;
    CUdeviceptr cache;

    if (argc != 6)
        return 2;
    name = argv[1];
    other = argv[2];
    trial = strtoul(argv[5], NULL, 10) * MIB;
    use_device(0);
    meet("started");
    look(&first, &total);
    share = total / 100 * strtoul(argv[3], NULL, 10);
    meet("looked");
    if (first < share)
        return 3;
    load_weights(strtoul(argv[4], NULL, 10) * MIB);
    try_out(trial);
    meet("loaded");
    look(&last, &total);
    meet("measured");
    if (last > first)
        return 4;
    used = first - last + trial;
    if (used >= share)
        return 5;
    printf("total %zu first %zu last %zu cache %zu\n", total, first, last, share - used);
    if (cuMemAlloc(&cache, share - used) != CUDA_SUCCESS)
        return 6;
    meet("served");
    return 0;
}
