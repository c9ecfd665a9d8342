/* SPDX-License-Identifier: MIT */
/* The properties of a device: the driver's attributes under other names. */
#include "rt.h"

#include <string.h>

#define INT(member, attribute)                                                                     \
    {                                                                                              \
        offsetof(struct cudaDeviceProp, member), CU_DEVICE_ATTRIBUTE_##attribute, false            \
    }
#define SIZE(member, attribute)                                                                    \
    {                                                                                              \
        offsetof(struct cudaDeviceProp, member), CU_DEVICE_ATTRIBUTE_##attribute, true             \
    }

static const struct {
    size_t offset;
    CUdevice_attribute attribute;
    bool is_size;
} properties[] = {
    INT(major, COMPUTE_CAPABILITY_MAJOR),
    INT(minor, COMPUTE_CAPABILITY_MINOR),
    INT(warpSize, WARP_SIZE),
    INT(multiProcessorCount, MULTIPROCESSOR_COUNT),
    INT(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    INT(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    INT(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    INT(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    INT(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    INT(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    INT(maxGridSize[0], MAX_GRID_DIM_X),
    INT(maxGridSize[1], MAX_GRID_DIM_Y),
    INT(maxGridSize[2], MAX_GRID_DIM_Z),
    INT(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    INT(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    INT(pciBusID, PCI_BUS_ID),
    INT(pciDeviceID, PCI_DEVICE_ID),
    INT(pciDomainID, PCI_DOMAIN_ID),
    INT(l2CacheSize, L2_CACHE_SIZE),
    INT(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    INT(integrated, INTEGRATED),
    INT(asyncEngineCount, ASYNC_ENGINE_COUNT),
    INT(concurrentKernels, CONCURRENT_KERNELS),
    INT(cooperativeLaunch, COOPERATIVE_LAUNCH),
    INT(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    INT(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    INT(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    INT(unifiedAddressing, UNIFIED_ADDRESSING),
    INT(managedMemory, MANAGED_MEMORY),
    INT(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    INT(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    INT(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    INT(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    INT(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    SIZE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    SIZE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    SIZE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    SIZE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    SIZE(totalConstMem, TOTAL_CONSTANT_MEMORY),
    SIZE(memPitch, MAX_PITCH),
    SIZE(textureAlignment, TEXTURE_ALIGNMENT),
    SIZE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    SIZE(surfaceAlignment, SURFACE_ALIGNMENT),
};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    cudaError_t status = rt_load();

    if (status != cudaSuccess || !prop)
        return rt_note(prop ? status : cudaErrorInvalidValue);
    memset(prop, 0, sizeof *prop);
    status = (cudaError_t)RT->cuDeviceGetName(prop->name, sizeof prop->name, device);
    if (status != cudaSuccess)
        return rt_note(cudaErrorInvalidDevice);
    RT->cuDeviceTotalMem_v2(&prop->totalGlobalMem, device);
    RT->cuDeviceGetUuid_v2((CUuuid *)&prop->uuid, device);
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        char *member = (char *)prop + properties[i].offset;
        int value = 0;

        RT->cuDeviceGetAttribute(&value, properties[i].attribute, device);
        if (properties[i].is_size)
            memcpy(member, &(size_t){(size_t)value}, sizeof(size_t));
        else
            memcpy(member, &value, sizeof value);
    }
    return cudaSuccess;
}
