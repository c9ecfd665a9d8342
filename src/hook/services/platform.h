/* SPDX-License-Identifier: MIT */
/*
 * What the system lets the process's control group have of a device: the kernel's controller dmem,
 * else NVML, where the program has loaded and started it (driver 615, cgroup v2; not of a MIG
 * instance: "MPS v3 Memory Partitioning"). NVML is never loaded for that.
 *
 * Owns what does not change of each device: its PCI address and uuid as text. No lock: two threads
 * that ask for the first time find the same.
 */
#ifndef CW_HOOK_PLATFORM_H
#define CW_HOOK_PLATFORM_H

#include "core/process/host.h"

/* Member of struct cw_host_ops. */
int cw_platform_bounds(uint8_t device, struct cw_host_bounds *out);

#endif
