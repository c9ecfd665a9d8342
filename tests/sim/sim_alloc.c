/* SPDX-License-Identifier: MIT */
/* cuMemAlloc and its kin, cuMemFree, pinned and registered host memory. */
#include "sim.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#define PITCH_UNIT 512

static CUresult allocate(CUdeviceptr *out, enum sim_kind kind, size_t bytes)
{
    struct sim_context *ctx = sim_context_current();
    struct sim_block *block;

    if (!out || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    block = sim_block_create(kind, ctx->device, bytes, kind == SIM_MEM_DEVICE);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_block_own(block, ctx);
    *out = block->start;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    return allocate(out, SIM_MEM_DEVICE, bytes);
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                unsigned int element)
{
    size_t row = sim_round(width, PITCH_UNIT);
    CUresult status;

    if (!pitch || width == 0 || height == 0 || row < width || row > SIZE_MAX / height)
        return CUDA_ERROR_INVALID_VALUE;
    if (element != 4 && element != 8 && element != 16)
        return CUDA_ERROR_INVALID_VALUE;
    status = allocate(out, SIM_MEM_DEVICE, row * height);
    if (status == CUDA_SUCCESS)
        *pitch = row;
    return status;
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(out, SIM_MEM_MANAGED, bytes);
}

static void wait_for_context(void *ctx, void *unused)
{
    (void)unused;
    sim_context_wait(ctx);
}

/* cuCtxRecordEvent in another thread waits until this is over, as on an H100. */
static void wait_for_work(struct sim_context *ctx)
{
    struct sim_op *join;

    if (ctx->live_ops == 0)
        return;
    join = ctx->freeing = sim_context_join(ctx);
    sim_op_wait(join);
    if (ctx->freeing == join)
        ctx->freeing = NULL;
    sim_op_unref(join);
}

/* Waiting is what real drivers do and what programs came to rely on; the manual only allows it. */
static void wait_for_users(const struct sim_block *block)
{
    struct sim_context *ctx = block->ctx ? block->ctx : sim_context_current();

    if (block->size < sim.config.free_waits_from)
        return;
    if (sim.config.free_waits > 1)
        sim_object_visit(SIM_CONTEXT, wait_for_context, NULL);
    else if (sim.config.free_waits && ctx)
        wait_for_work(ctx);
}

CUresult sim_free_now(struct sim_block *block)
{
    switch (block->kind) {
    case SIM_MEM_DEVICE:
    case SIM_MEM_MANAGED:
        /* Marked first: the wait gives the lock away, and a second free must not get here. */
        block->state = SIM_FREEING;
        wait_for_users(block);
        if (block->state == SIM_FREEING)
            sim_block_destroy(block);
        return CUDA_SUCCESS;
    case SIM_MEM_ASYNC:
        block->state = SIM_FREEING;
        sim_pool_release(block);
        return CUDA_SUCCESS;
    case SIM_MEM_GRAPH:
        sim_graph_block_release(block);
        return CUDA_SUCCESS;
    case SIM_MEM_EXTERNAL:
        sim_block_count(block, -1);
        munmap((void *)(block->start & ~4095ul), block->span + block->start % 4096);
        sim_block_remove(block);
        return CUDA_SUCCESS;
    default:
        return sim_block_refuse(block->start, "cuMemFree");
    }
}

CUresult sim_cuMemFree_v2(CUdeviceptr address)
{
    struct sim_block *block = sim_block_base(address);

    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    return block ? sim_free_now(block) : sim_block_refuse(address, "cuMemFree");
}

/* ---- host memory ---- */

CUresult sim_cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    struct sim_block *block;

    if (!out || bytes == 0 || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    block = sim_block_create(SIM_MEM_HOST, -1, bytes, false);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_block_own(block, sim_context_current());
    block->flags = flags;
    *out = (void *)block->start;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocHost_v2(void **out, size_t bytes)
{
    return sim_cuMemHostAlloc(out, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult sim_cuMemAllocHost(void **out, unsigned int bytes)
{
    return sim_cuMemAllocHost_v2(out, bytes);
}

CUresult sim_cuMemFreeHost(void *pointer)
{
    struct sim_block *block = sim_block_base((uintptr_t)pointer);

    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!block || block->kind != SIM_MEM_HOST)
        return sim_block_refuse((uintptr_t)pointer, "cuMemFreeHost");
    block->state = SIM_FREEING;
    wait_for_users(block);
    if (block->state == SIM_FREEING)
        sim_block_destroy(block);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
    struct sim_block *block;

    if (!pointer || bytes == 0 || (flags & ~15u))
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_block_live((uintptr_t)pointer))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    block = sim_block_insert(SIM_MEM_REGISTERED, (uintptr_t)pointer, bytes);
    if (!block)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    block->flags = flags;
    sim_block_own(block, sim_context_current());
    sim_block_count(block, 1);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostUnregister(void *pointer)
{
    struct sim_block *block = sim_block_base((uintptr_t)pointer);

    if (!block || block->kind != SIM_MEM_REGISTERED)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    block->state = SIM_FREEING;
    wait_for_users(block);
    sim_block_count(block, -1);
    sim_block_remove(block);
    return CUDA_SUCCESS;
}

static struct sim_block *host_block(void *pointer)
{
    struct sim_block *block = sim_block_live((uintptr_t)pointer);

    if (!block || (block->kind != SIM_MEM_HOST && block->kind != SIM_MEM_REGISTERED &&
                   block->kind != SIM_MEM_MANAGED))
        return NULL;
    return block;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned int flags)
{
    if (!out || flags || !host_block(pointer))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)pointer;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(unsigned int *flags, void *pointer)
{
    struct sim_block *block = host_block(pointer);

    if (!flags || !block)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = block->flags;
    return CUDA_SUCCESS;
}

/* ---- hints, which are accepted and change nothing ---- */

static CUresult check_hint(CUdeviceptr address, size_t bytes)
{
    return sim_block_live(address) && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    (void)device, (void)stream;
    return check_hint(address, bytes);
}

CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                   unsigned int flags, CUstream stream)
{
    (void)location, (void)flags, (void)stream;
    return check_hint(address, bytes);
}

/* ---- advice on managed memory, which is remembered for the block as a whole ---- */

/* A bit per device, and one for the host. */
static uint64_t access_bit(int device)
{
    return device < 0 ? CUSIM_HOST_BIT : 1ull << device;
}

static CUresult remember(struct sim_block *block, CUmem_advise advice, int device)
{
    switch (advice) {
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        block->preferred = device;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        block->preferred = CUSIM_NOWHERE;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        block->access |= access_bit(device);
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        block->access &= ~access_bit(device);
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static bool names_device(CUmem_advise advice)
{
    return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
           advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

CUresult sim_cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    struct sim_block *block = sim_block_live(address);

    if (!block || block->kind != SIM_MEM_MANAGED || !bytes ||
        bytes > block->start + block->span - address)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim.config.is_managed)
        return CUDA_ERROR_INVALID_DEVICE;
    if (names_device(advice) && device != CU_DEVICE_CPU && !sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return remember(block, advice, device);
}

CUresult sim_cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                            CUmemLocation location)
{
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_cuMemAdvise(address, bytes, advice, location.id < 0 ? INT_MAX : location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return sim_cuMemAdvise(address, bytes, advice, CU_DEVICE_CPU);
    default:
        return names_device(advice) ? CUDA_ERROR_INVALID_VALUE
                                    : sim_cuMemAdvise(address, bytes, advice, CU_DEVICE_CPU);
    }
}

int cusim_managed_advice(unsigned long long address, int *preferred, unsigned long long *accessed)
{
    const struct sim_block *block;
    bool is_managed;

    pthread_mutex_lock(&sim.lock);
    block = sim_block_live(address);
    is_managed = block && block->kind == SIM_MEM_MANAGED;
    if (is_managed) {
        *preferred = block->preferred;
        *accessed = block->access;
    }
    pthread_mutex_unlock(&sim.lock);
    return is_managed ? 0 : -1;
}
