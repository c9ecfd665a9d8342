/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this machine: what each has, how much is in use, and by whom, for `top`. NVML tells,
 * where it is there; else the devices that the fleet's processes use are known from what their
 * drivers last told them.
 *
 * One thread.
 */
#ifndef CW_CLI_GPUS_H
#define CW_CLI_GPUS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/fleet/fleet.h"

#define CW_GPUS_MAX      64
#define CW_GPU_USERS_MAX 32

struct cw_gpu_user {
    uint32_t pid;
    char name[32];  /* "" if /proc does not tell, as in another PID namespace */
    uint64_t bytes; /* UINT64_MAX: not known */
};

struct cw_gpu {
    uint32_t index; /* of NVML; else as the first of its processes counts */
    char name[96], uuid[48];
    uint64_t total, used;
    struct cw_gpu_user other[CW_GPU_USERS_MAX]; /* processes that are not in the fleet */
    unsigned others;
};

struct cw_gpus {
    struct cw_gpu gpu[CW_GPUS_MAX];
    unsigned count;
};

void cw_gpus_look(struct cw_gpus *gpus, const struct cw_fleet *fleet);

/* The processes on the GPU with this UUID that are not in the fleet, "python 4711 20.0G, ..."; ""
 * if there are none, or it is not known. Returns buf. */
const char *cw_gpus_others(const struct cw_gpus *gpus, const char *uuid, char *buf, size_t cap);

/* One line that fits in `columns`, at least 20: "GPU 0 [###.......] 3.0G of 10.0G, 7.0G free ...".
 * What does not fit is left out. */
void cw_gpu_format(const struct cw_gpu *gpu, size_t columns, char *buf, size_t cap);

#endif
