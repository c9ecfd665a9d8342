/* SPDX-License-Identifier: MIT */
/* Devices: their identity, their attributes, and how many of their bytes are taken.
 *
 * `used` is what this process has of a device; whoever takes memory of it charges it here and
 * nowhere else. What cuMemGetInfo subtracts from the total is that, or, where devices are shared,
 * what all processes have. Guarded by sim.lock.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct attribute {
    CUdevice_attribute attribute;
    int value;
};

static const struct attribute attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1500000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4194304},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102400},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101376},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24},
    {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1},
};

struct sim_device *sim_device(int device)
{
    return device >= 0 && device < sim.config.ndevices ? &sim.devices[device] : NULL;
}

/* What nobody has; under sim_share_lock(). */
static size_t available(int device)
{
    size_t total = sim.config.memory[device];
    uint64_t used =
        sim_share_is_on() ? sim_share_sum(sim.config.number[device]) : sim.devices[device].used;

    return used < total ? total - used : 0;
}

static size_t free_bytes(int device)
{
    size_t bytes;

    sim_share_lock();
    bytes = available(device);
    sim_share_unlock();
    return bytes;
}

/* The check and the charge are one step for all processes. */
static bool charge(int device, size_t bytes)
{
    struct sim_device *self = &sim.devices[device];
    bool fits;

    sim_share_lock();
    fits = bytes <= available(device);
    if (fits) {
        self->used += bytes;
        sim_share_tell(sim.config.number[device], self->used);
    }
    sim_share_unlock();
    if (self->used > self->peak)
        self->peak = self->used;
    return fits;
}

bool sim_device_charge(int device, size_t bytes)
{
    return bytes == 0 || charge(device, bytes) ||
           (sim_pool_trim_some(device) && charge(device, bytes));
}

void sim_device_discharge(int device, size_t bytes)
{
    sim_share_lock();
    sim.devices[device].used -= bytes;
    sim_share_tell(sim.config.number[device], sim.devices[device].used);
    sim_share_unlock();
}

/* ---- controls ---- */

int cusim_memory(int device, unsigned long long *used, unsigned long long *total)
{
    bool is_known;

    pthread_mutex_lock(&sim.lock);
    if (!sim.is_configured)
        sim_config_load();
    sim_share_open();
    is_known = sim_device(device) != NULL;
    if (is_known) {
        *total = sim.config.memory[device];
        *used = *total - free_bytes(device);
    }
    pthread_mutex_unlock(&sim.lock);
    return is_known ? 0 : -1;
}

int cusim_uuid(int device, unsigned char uuid[16])
{
    bool is_known;

    pthread_mutex_lock(&sim.lock);
    if (!sim.is_configured)
        sim_config_load();
    is_known = sim_device(device) != NULL;
    pthread_mutex_unlock(&sim.lock);
    if (is_known)
        sim_world_uuid(sim.config.number[device], uuid);
    return is_known ? 0 : -1;
}

/* ---- entry points ---- */

static void init_devices(void)
{
    sim_share_open();
    sim_share_join();
    for (int i = 0; i < sim.config.ndevices; i++) {
        struct sim_device *device = &sim.devices[i];

        device->total = sim.config.memory[i];
        sim_world_name(sim.config.number[i], device->name, sizeof device->name);
        sim_pool_init(i);
    }
}

CUresult sim_cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim.is_forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (sim.is_down)
        return CUDA_ERROR_DEINITIALIZED;
    if (sim.config.ndevices <= 0)
        return CUDA_ERROR_NO_DEVICE;
    if (!sim.is_initialised)
        init_devices();
    sim.is_initialised = true;
    return CUDA_SUCCESS;
}

CUresult sim_cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sim.config.driver_version;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sim.config.ndevices;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *name, int length, CUdevice device)
{
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", sim_device(device)->name);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_world_uuid(sim.config.number[device], (unsigned char *)uuid->bytes);
    return CUDA_SUCCESS;
}

/* An instance of device 0 has a UUID of its own, which differs in its first byte. */
CUresult sim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    const char *word = getenv("CUDA_VISIBLE_DEVICES");
    CUresult status = sim_cuDeviceGetUuid(uuid, device);
    unsigned first;

    if (status == CUDA_SUCCESS && word && sscanf(word, "MIG-%2x", &first) == 1)
        uuid->bytes[0] = (char)first;
    return status;
}

CUresult sim_cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice device)
{
    (void)luid, (void)mask;
    return sim_device(device) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = sim_device(device)->total;
    return CUDA_SUCCESS;
}

static unsigned clamp32(size_t bytes)
{
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

CUresult sim_cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t wide;
    CUresult status = bytes ? sim_cuDeviceTotalMem_v2(&wide, device) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *bytes = clamp32(wide);
    return status;
}

CUresult sim_cuMemGetInfo_v2(size_t *available_bytes, size_t *total)
{
    int device = sim_context_current()->device;

    if (available_bytes)
        *available_bytes = free_bytes(device);
    if (total)
        *total = sim_device(device)->total;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetInfo(unsigned int *available_bytes, unsigned int *total)
{
    size_t wide_free, wide_total;

    sim_cuMemGetInfo_v2(&wide_free, &wide_total);
    if (available_bytes)
        *available_bytes = clamp32(wide_free);
    if (total)
        *total = clamp32(wide_total);
    return CUDA_SUCCESS;
}

/* Where the machine has the device, whatever the driver's order. */
static int bus_of(CUdevice device)
{
    return sim.config.number[device] + 1;
}

CUresult sim_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    if (!value || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? bus_of(device) : 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY ||
        attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
        *value = sim.config.is_managed;
    if (attribute == CU_DEVICE_ATTRIBUTE_INTEGRATED)
        *value = sim.config.is_integrated;
    if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
        *value = sim.config.has_vmm;
    if (attribute == (CUdevice_attribute)133) /* MPS_ENABLED, which older headers do not have */
        *value = (int)sim_option_number("CUSIM_MPS", 0);
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].attribute == attribute)
            *value = attributes[i].value;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetProperties(CUdevprop *prop, CUdevice device)
{
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(prop, 0, sizeof *prop);
    prop->maxThreadsPerBlock = 1024;
    prop->sharedMemPerBlock = 49152;
    prop->SIMDWidth = 32;
    prop->memPitch = 2147483647;
    prop->textureAlign = 512;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    if (!text || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(text, (size_t)length, "0000:%02X:00.0", bus_of(device));
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    unsigned domain = 0, bus = 0, slot = 0;

    if (!device || !text)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
        (domain = 0, sscanf(text, "%x:%x", &bus, &slot) != 2))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; domain == 0 && i < sim.config.ndevices; i++)
        if (bus_of(i) == (int)bus) {
            *device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device) || !sim_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && sim.config.has_peers;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source,
                                     CUdevice target)
{
    if (!value || source == target)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(source) || !sim_device(target))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetExecAffinitySupport(int *value, CUexecAffinityType type, CUdevice device)
{
    (void)type;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format,
                                                unsigned channels, CUdevice device)
{
    (void)format, (void)channels;
    if (!width)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *width = (size_t)1 << 27;
    return CUDA_SUCCESS;
}
