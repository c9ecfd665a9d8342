/* SPDX-License-Identifier: MIT */
/*
 * Limits in variables of the user's platform: read from the environment, each in its own form.
 *
 *   NVIDIA_GPU_MEMORY_LIMIT, NVIDIA_GPU_MEMORY_REQUEST   whole MiB for each device of a container
 *       (NVIDIA Container Toolkit, hook apply-cuda-memory-limits); 0 is none
 *   CUDA_DEVICE_MEMORY_LIMIT[_ORDINAL]   a whole number and K, M, G in either case, or bytes;
 *       0 is none; that with an ordinal goes before the other (HAMi-core, KAI)
 *   CUDA_MPS_PINNED_DEVICE_MEM_LIMIT   0=4G,1=512MB: a device and a whole number with M, MB, G or
 *       GB (CUDA MPS, "Environment Variables")
 *
 * Owns nothing; no lock. As for getenv(3), the first of two equal names counts.
 */
#ifndef CW_BASE_PLATFORM_LIMITS_H
#define CW_BASE_PLATFORM_LIMITS_H

#include "base/bounds.h"
#include "base/options/option_values.h"
#include "base/out.h"

/* All zero: none. */
struct cw_platform_limits {
    struct cw_device_sizes of[CW_BOUND_VARIABLES];
    uint8_t is_seen[CW_BOUND_VARIABLES]; /* also where the value says none, or is ignored */
};

/* An entry of the environment. 0: taken, or of another name; -1: its value is of no such form, and
 * *why says so. */
int cw_platform_limits_read(struct cw_platform_limits *limits, const char *entry,
                            struct cw_out *why);

/* 1 if the variable limits any device. */
static inline int cw_platform_limits_has(const struct cw_platform_limits *limits, unsigned variable)
{
    return limits->of[variable].count != 0 || limits->of[variable].fallback.kind != CW_SIZE_NONE;
}

#endif
