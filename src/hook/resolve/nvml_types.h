/* SPDX-License-Identifier: MIT */
/*
 * Our own declarations of the few functions of NVML that are hooked or called: nvml.h is in no
 * package that the build needs. Enumerations are ints, handles are passed through unread. The
 * structures are NVML's public ABI (NVML API reference: nvmlMemory_t, nvmlMemory_v2_t).
 */
#ifndef CW_HOOK_NVML_TYPES_H
#define CW_HOOK_NVML_TYPES_H

struct cw_nvml_memory {
    unsigned long long total, free, used;
};

struct cw_nvml_memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo(void *device, struct cw_nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct cw_nvml_memory_v2 *memory);
struct cw_nvml_limits { /* nvmlGetMemoryLimits_v1_t, of driver 615 */
    const char *group;  /* the directory of the cgroup */
    unsigned long long soft, hard, used;
};

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetMemoryLimits_v1(void *device, struct cw_nvml_limits *limits);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length);

#endif
