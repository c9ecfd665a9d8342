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
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length);

#endif
