/* SPDX-License-Identifier: MIT */
/* Limits of the control group. See platform.h. */
#include "hook/services/platform.h"

#include <stdatomic.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/compiler.h"
#include "base/options/option_values.h"
#include "base/out.h"
#include "core/device/device.h"
#include "hook/resolve/hook_table.h"
#include "hook/resolve/nvml_types.h"

#define NVML_NO_LIMIT UINT64_MAX /* NVML_DEVICE_MEMORY_LIMIT_MAX */

enum state { UNKNOWN, KNOWN, APART };

static struct device {
    _Atomic int state; /* enum state; APART: an instance, or a device without an address */
    char bus[32], uuid[48];
} devices[CW_MAX_DEVICES];

/* The second form of the query gives a MIG instance its own identity. */
static int is_instance(CUdevice device)
{
    typedef CUresult (*uuid_fn)(CUuuid * uuid, CUdevice dev);
    CUuuid whole, own;

    return cw_real_has(CW_HOOK_cuDeviceGetUuid) && cw_real_has(CW_HOOK_cuDeviceGetUuid_v2) &&
           ((uuid_fn)cw_real_of(CW_HOOK_cuDeviceGetUuid))(&whole, device) == CUDA_SUCCESS &&
           ((uuid_fn)cw_real_of(CW_HOOK_cuDeviceGetUuid_v2))(&own, device) == CUDA_SUCCESS &&
           memcmp(whole.bytes, own.bytes, sizeof(own.bytes)) != 0;
}

static void print_uuid(const uint8_t uuid[16], char *buf, size_t cap)
{
    struct cw_device_size item = {.named_by = CW_DEVICE_UUID};
    struct cw_out out;

    memcpy(item.uuid, uuid, sizeof(item.uuid));
    cw_out_init(&out, -1, buf, cap - 1);
    cw_device_size_print(&item, &out); /* "GPU-...:none" */
    buf[out.len] = '\0';
    buf[strcspn(buf, ":")] = '\0';
}

static enum state describe(uint8_t ordinal, struct device *device)
{
    char bus[sizeof(device->bus)] = "";

    if (!cw_real_has(CW_HOOK_cuDeviceGetPCIBusId) || is_instance((CUdevice)ordinal) ||
        CW_REAL(cuDeviceGetPCIBusId)(bus, (int)sizeof(bus) - 1, (CUdevice)ordinal) != CUDA_SUCCESS)
        return APART;
    memcpy(device->bus, bus, sizeof(bus));
    print_uuid(cw_device_state(ordinal)->uuid, device->uuid, sizeof(device->uuid));
    return KNOWN;
}

static struct device *device_at(uint8_t ordinal)
{
    struct device *device = &devices[ordinal];
    int state = atomic_load_explicit(&device->state, memory_order_acquire);

    if (CW_UNLIKELY(state == UNKNOWN)) {
        state = (int)describe(ordinal, device);
        atomic_store_explicit(&device->state, state, memory_order_release);
    }
    return state == KNOWN ? device : NULL;
}

static void put(struct cw_host_bounds *out, enum cw_bound bound, uint64_t bytes, uint64_t used)
{
    out->bytes[bound] = bytes;
    out->used[bound] = used;
}

/* A soft limit of 0 and a hard one of NVML_NO_LIMIT are none. */
static int ask_nvml(const struct device *device, struct cw_host_bounds *out)
{
    char group[CW_CGROUP_MAX];
    struct cw_nvml_limits limits = {.group = group};
    void *handle = NULL;

    if (!cw_real_has(CW_HOOK_nvmlDeviceGetHandleByUUID) ||
        !cw_real_has(CW_HOOK_nvmlDeviceGetMemoryLimits_v1) ||
        cw_cgroup_path("", group, sizeof(group)) != 0 ||
        CW_REAL(nvmlDeviceGetHandleByUUID)(device->uuid, &handle) != 0 ||
        CW_REAL(nvmlDeviceGetMemoryLimits_v1)(handle, &limits) != 0)
        return 0;
    put(out, CW_BOUND_NVML_HARD, limits.hard != NVML_NO_LIMIT ? limits.hard : 0, limits.used);
    put(out, CW_BOUND_NVML_SOFT, limits.soft, limits.used);
    return 1;
}

/* CU_DEVICE_ATTRIBUTE_MPS_ENABLED, of CUDA 12.4; older drivers do not tell. */
static int is_served(CUdevice device)
{
    int value = 0;

    return cw_real_has(CW_HOOK_cuDeviceGetAttribute) &&
           CW_REAL(cuDeviceGetAttribute)(&value, (CUdevice_attribute)133, device) == CUDA_SUCCESS &&
           value != 0;
}

int cw_platform_bounds(uint8_t ordinal, struct cw_host_bounds *out)
{
    struct device *device = ordinal < CW_MAX_DEVICES ? device_at(ordinal) : NULL;
    struct cw_cgroup_dmem dmem;
    int found;

    memset(out, 0, sizeof(*out));
    out->is_served = is_served((CUdevice)ordinal);
    if (device == NULL)
        return 0;
    found = cw_cgroup_dmem("", device->bus, &dmem);
    if (found <= 0)
        return found < 0 ? -1 : ask_nvml(device, out);
    put(out, CW_BOUND_DMEM_MAX, dmem.hard, dmem.hard_used);
    put(out, CW_BOUND_DMEM_MIN, dmem.soft, dmem.soft_used);
    return 1;
}
