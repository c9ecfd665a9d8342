/* SPDX-License-Identifier: MIT */
/*
 * NVML, as far as the command asks it. Loaded at the first question, and stays.
 *
 * The declarations are our own, of NVML's published interface (NVML API reference: nvmlMemory_t,
 * nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3, chapter "Multi Instance GPU").
 */
#ifndef CW_CLI_NVML_H
#define CW_CLI_NVML_H

struct cw_nvml_memory {
    unsigned long long total, free, used;
};

struct cw_nvml_process {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
};

/* Functions return 0 on success. The last ones may be NULL. */
struct cw_nvml {
    int (*count)(unsigned int *count);
    int (*handle)(unsigned int index, void **device);
    int (*memory)(void *device, struct cw_nvml_memory *memory);
    int (*uuid)(void *device, char *uuid, unsigned int length);
    int (*name)(void *device, char *name, unsigned int length);
    int (*processes)(void *device, unsigned int *count, struct cw_nvml_process *process);
    int (*mig_mode)(void *device, unsigned int *current, unsigned int *pending);
    int (*mig_count)(void *device, unsigned int *count);
    int (*mig_handle)(void *device, unsigned int index, void **instance);
};

/* NULL: not installed, or it cannot be used. */
const struct cw_nvml *cw_nvml(void);

/* The memory of a device. NVML does not know it where the device has the host's (GB10; nvitop#208,
 * ollama#12619): then the kernel is asked. 0, or NVML's status. */
int cw_nvml_memory_of(const struct cw_nvml *nvml, void *device, struct cw_nvml_memory *out);

#endif
