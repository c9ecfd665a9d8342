/* SPDX-License-Identifier: MIT */
/* What the driver tells about an address. */
#include "sim.h"

#include <string.h>
#include <unistd.h>

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    struct sim_block *block = sim_block_live(address);

    if (!block || block->state != SIM_LIVE)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = block->start;
    if (size)
        *size = block->size;
    return CUDA_SUCCESS;
}

static bool is_host(const struct sim_block *block)
{
    return block->kind == SIM_MEM_HOST || block->kind == SIM_MEM_REGISTERED;
}

static struct sim_context *context_of(const struct sim_block *block)
{
    return block->ctx && sim_object_is(block->ctx, SIM_CONTEXT) ? block->ctx : NULL;
}

static CUresult get_tokens(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *tokens, const struct sim_block *block)
{
    tokens->p2pToken = block->id;
    tokens->vaSpaceToken = 1;
    return block->kind == SIM_MEM_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get(void *data, CUpointer_attribute attribute, const struct sim_block *block,
                    CUdeviceptr address)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)context_of(block);
        return context_of(block) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = is_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = (void *)address;
        return is_host(block) || block->kind == SIM_MEM_MANAGED ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return get_tokens(data, block);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = block->sync_memops;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = block->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = block->kind == SIM_MEM_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = block->device >= 0  ? block->device
                       : context_of(block) ? context_of(block)->device
                                           : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)data = block->kind == SIM_MEM_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = block->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = block->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(cuuint64_t *)data =
            block->handle ? (cuuint64_t)block->handle->prop.requestedHandleTypes : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = (CUmemoryPool)block->pool;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(int *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct sim_block *block = sim_block_live(address);

    if (!data || !block)
        return CUDA_ERROR_INVALID_VALUE;
    return get(data, attribute, block, address);
}

/* How much of the caller's memory an attribute of unknown memory clears. */
static size_t width_of(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return 4;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    default:
        return 8;
    }
}

/* Unlike the single query this one answers for unknown addresses, with zeros. */
CUresult sim_cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **data,
                                    CUdeviceptr address)
{
    struct sim_block *block = sim_block_live(address);

    if (!attributes || !data || n == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        memset(data[i], 0, width_of(attributes[i]));
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data[i] = -2; /* CU_DEVICE_INVALID */
        if (block && get(data[i], attributes[i], block, address) == CUDA_ERROR_NOT_SUPPORTED)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                   CUdeviceptr address)
{
    struct sim_block *block = sim_block_live(address);

    if (!value || !block || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    block->sync_memops = *(const int *)value != 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t size,
                                           CUmemRangeHandleType type, unsigned long long flags)
{
    struct sim_block *block = sim_block_live(address);

    (void)flags;
    if (!handle || !block || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
        return CUDA_ERROR_INVALID_VALUE;
    if (address % 4096 || size % 4096 || address + size > block->start + block->span)
        return CUDA_ERROR_INVALID_VALUE;
    if (!block->arena)
        return CUDA_ERROR_NOT_SUPPORTED;
    *(int *)handle = dup(block->arena->fd);
    return *(int *)handle < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult sim_cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
                                    CUdeviceptr address, size_t count)
{
    struct sim_block *block = sim_block_live(address);

    (void)attribute, (void)count;
    if (!data || !block || block->kind != SIM_MEM_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    memset(data, 0, size);
    return CUDA_SUCCESS;
}
