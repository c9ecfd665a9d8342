/* SPDX-License-Identifier: MIT */
/* NVML. See nvml.h. Owns the library, once it is loaded. */
#include "cli/devices/nvml.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/host_memory.h"

#define NOT_SUPPORTED 3 /* NVML_ERROR_NOT_SUPPORTED */

static struct cw_nvml nvml;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"nvmlDeviceGetCount_v2", offsetof(struct cw_nvml, count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct cw_nvml, handle)},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct cw_nvml, memory)},
    {"nvmlDeviceGetUUID", offsetof(struct cw_nvml, uuid)},
    {"nvmlDeviceGetName", offsetof(struct cw_nvml, name)},
    /* Older drivers have the second name alone; the records are equal. */
    {"nvmlDeviceGetComputeRunningProcesses_v2", offsetof(struct cw_nvml, processes)},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct cw_nvml, processes)},
    {"nvmlDeviceGetMigMode", offsetof(struct cw_nvml, mig_mode)},
    {"nvmlDeviceGetMaxMigDeviceCount", offsetof(struct cw_nvml, mig_count)},
    {"nvmlDeviceGetMigDeviceHandleByIndex", offsetof(struct cw_nvml, mig_handle)},
};

static const struct cw_nvml *load(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = library ? (__typeof__(init))dlsym(library, "nvmlInit_v2") : NULL;

    if (!init || init() != 0)
        return NULL;
    for (size_t i = 0; i < CW_ARRAY_LEN(functions); i++) {
        void *function = dlsym(library, functions[i].name);

        if (function)
            *(void **)((char *)&nvml + functions[i].offset) = function;
    }
    return nvml.count && nvml.handle && nvml.memory && nvml.uuid ? &nvml : NULL;
}

int cw_nvml_memory_of(const struct cw_nvml *nvml, void *device, struct cw_nvml_memory *out)
{
    struct cw_host_memory host;
    int status = nvml->memory(device, out);

    if (status != NOT_SUPPORTED || cw_host_memory_of(CW_HOST_MEMORY_ALL, &host) != 0)
        return status;
    *out = (struct cw_nvml_memory){
        .total = host.total, .free = host.available, .used = host.total - host.available};
    return 0;
}

const struct cw_nvml *cw_nvml(void)
{
    static const struct cw_nvml *loaded;
    static int is_tried;

    if (!is_tried)
        loaded = load();
    is_tried = 1;
    return loaded;
}
