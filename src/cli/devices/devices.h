/* SPDX-License-Identifier: MIT */
/*
 * The devices that a program started now could use, and how much of each is free: by NVML, else by
 * the driver, which a child process asks; of those, what CUDA_VISIBLE_DEVICES leaves. A GPU that is
 * divided by MIG is its instances, of which the driver shows one.
 *
 * Numbers are those of nvidia-smi, whoever answers. Those in CUDA_VISIBLE_DEVICES are CUDA's: where
 * they may differ, the driver says what they mean.
 */
#ifndef CW_CLI_DEVICES_H
#define CW_CLI_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#define CW_DEVICES_MAX     64
#define CW_DEVICE_UUID_MAX 96 /* "MIG-GPU-.../7/0" of older drivers, too */

struct cw_device_memory {
    uint32_t index; /* of the GPU, as nvidia-smi counts: along the PCI bus */
    uint8_t is_mig;
    uint64_t place; /* on that bus, if the driver told it */
    char uuid[CW_DEVICE_UUID_MAX], name[96];
    uint64_t total, free;
};

struct cw_devices {
    struct cw_device_memory device[CW_DEVICES_MAX];
    unsigned count;
};

/* All of the machine, by NVML. 0, or -1: NVML is not there or sees none. */
int cw_devices_by_nvml(struct cw_devices *devices);
/* Those that the driver shows with this CUDA_VISIBLE_DEVICES, in its order and counted so; NULL:
 * all of the machine, along the PCI bus. has_memory: also how much of each is free, for which a
 * context is opened. 0, also if it shows none; -1 with the reason in `why`: it could not be asked.
 */
int cw_devices_by_driver(struct cw_devices *devices, const char *visible, int has_memory, char *why,
                         size_t cap);
/* Keeps those that a list as of CUDA_VISIBLE_DEVICES names, in its order, but by the numbers here.
 * 0, or -1 with the reason in `why`, to follow the name of what holds the list. */
int cw_devices_keep(struct cw_devices *devices, const char *visible, char *why, size_t cap);

/* Those of this environment. 0, or -1 after a message. */
int cw_devices_look(struct cw_devices *devices);

/* "GPU 0", or "GPU 0 (MIG)". Returns buf. */
const char *cw_device_label(const struct cw_device_memory *device, char *buf, size_t cap);

#endif
