/* SPDX-License-Identifier: MIT */
/*
 * Who else bounds the memory of a device: the user's platform, and CUWARDEN_SOFT_LIMIT.
 *
 * X(ID, "name", FORCE, SCOPE). A hard bound is the most that there may be; what is beyond a soft
 * one is borrowed, and may be taken away with the process that holds it. SCOPE: all processes of a
 * container, all of a cgroup, or each process for itself. The name is the variable's, or where the
 * bound was read. The first CW_BOUND_VARIABLES come from the environment
 * (base/options/platform_limits.h has their sources).
 */
#ifndef CW_BASE_BOUNDS_H
#define CW_BASE_BOUNDS_H

#define CW_BOUNDS(X)                                                                               \
    X(NVIDIA_LIMIT, "NVIDIA_GPU_MEMORY_LIMIT", HARD, CONTAINER)                                    \
    X(NVIDIA_REQUEST, "NVIDIA_GPU_MEMORY_REQUEST", SOFT, CONTAINER)                                \
    X(VGPU, "CUDA_DEVICE_MEMORY_LIMIT", HARD, CONTAINER)                                           \
    X(MPS, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", HARD, PROCESS)                                      \
    X(OWN, "CUWARDEN_SOFT_LIMIT", SOFT, PROCESS)                                                   \
    X(DMEM_MAX, "dmem.max", HARD, CGROUP)                                                          \
    X(DMEM_MIN, "dmem.min", SOFT, CGROUP)                                                          \
    X(NVML_HARD, "NVML.hardLimit", HARD, CGROUP)                                                   \
    X(NVML_SOFT, "NVML.softLimit", SOFT, CGROUP)

#define CW_BOUND_VARIABLES 4

enum cw_bound {
#define X(id, name, force, scope) CW_BOUND_##id,
    CW_BOUNDS(X)
#undef X
        CW_BOUND_COUNT
};

enum cw_bound_force { CW_BOUND_HARD, CW_BOUND_SOFT };

enum cw_bound_scope { CW_BOUND_OF_PROCESS, CW_BOUND_OF_CONTAINER, CW_BOUND_OF_CGROUP };

struct cw_bound_kind {
    const char *name;
    enum cw_bound_force force;
    enum cw_bound_scope scope;
};

/* "hard", and "container". */
static inline const char *cw_bound_force_name(enum cw_bound_force force)
{
    return force == CW_BOUND_HARD ? "hard" : "soft";
}

static inline const char *cw_bound_scope_name(enum cw_bound_scope scope)
{
    return scope == CW_BOUND_OF_PROCESS     ? "process"
           : scope == CW_BOUND_OF_CONTAINER ? "container"
                                            : "cgroup";
}

static inline const struct cw_bound_kind *cw_bound_kind(enum cw_bound bound)
{
    static const struct cw_bound_kind kinds[CW_BOUND_COUNT] = {
#define X(id, name, force, scope) {name, CW_BOUND_##force, CW_BOUND_OF_##scope},
        CW_BOUNDS(X)
#undef X
    };

    return &kinds[bound];
}

#endif
