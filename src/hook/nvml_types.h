/* SPDX-License-Identifier: MIT */
/*
 * Our own declarations of the NVML functions that are hooked: nvml.h is in no package that the
 * build needs. Enumerations are ints, handles and structures are passed through unread.
 */
#ifndef CW_HOOK_NVML_TYPES_H
#define CW_HOOK_NVML_TYPES_H

int nvmlDeviceGetMemoryInfo(void *device, void *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, void *memory);

#endif
