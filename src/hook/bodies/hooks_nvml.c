/* SPDX-License-Identifier: MIT */
/*
 * Bodies of NVML's functions: they report the same memory of a device as CUDA's functions do.
 * NVML's device is CUDA's if their uuids are equal, MIG instances included. A process that has not
 * called CUDA gets NVML's own answer.
 */
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "hook/bodies/call.h"
#include "hook/resolve/nvml_types.h"

#define NVML_SUCCESS     0
#define NVML_UUID_LENGTH 96 /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */

/* 1 if this process also uses the device through CUDA, so that its view of the memory is
 * adjusted. */
static int find_device(void *handle, uint8_t *out_device)
{
    char text[NVML_UUID_LENGTH] = "";
    uint8_t uuid[16];

    return cw_real_has(CW_HOOK_nvmlDeviceGetUUID) &&
           CW_REAL(nvmlDeviceGetUUID)(handle, text, sizeof(text)) == NVML_SUCCESS &&
           cw_uuid_parse(text, uuid) == 0 && cw_device_find(uuid, out_device);
}

static int view(void *handle, unsigned long long free_bytes, unsigned long long total_bytes,
                struct cw_memory_view *out)
{
    uint8_t device;
    int found;

    if (!cw_session_is_armed() || cw_thread.depth != 0)
        return 0;
    cw_thread.depth = 1;
    found = find_device(handle, &device);
    if (found)
        cw_limit_view(device, free_bytes, total_bytes, out);
    cw_call_leave();
    return found;
}

CW_EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct cw_nvml_memory *memory)
{
    int rc = CW_REAL(nvmlDeviceGetMemoryInfo)(device, memory);
    struct cw_memory_view seen;

    if (rc != NVML_SUCCESS || memory == NULL || !view(device, memory->free, memory->total, &seen))
        return rc;
    memory->total = seen.total_bytes;
    memory->free = seen.free_bytes;
    memory->used = seen.total_bytes - seen.free_bytes;
    return rc;
}

/* A limit does not include what the driver keeps for itself. */
CW_EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct cw_nvml_memory_v2 *memory)
{
    int rc = CW_REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    struct cw_memory_view seen;

    if (rc != NVML_SUCCESS || memory == NULL || !view(device, memory->free, memory->total, &seen))
        return rc;
    if (seen.total_bytes < memory->total || seen.total_bytes - seen.free_bytes < memory->reserved)
        memory->reserved = 0;
    memory->total = seen.total_bytes;
    memory->free = seen.free_bytes;
    memory->used = seen.total_bytes - seen.free_bytes - memory->reserved;
    return rc;
}
