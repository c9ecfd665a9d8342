/* SPDX-License-Identifier: MIT */
/* Stream-ordered memory and its pools.
 *
 * A pool's `used` bytes are allocations not yet freed, its `reserved` bytes are those plus what it
 * keeps for reuse; reserved bytes are charged to the device. Freed memory becomes reusable by its
 * own stream at once and by others when the free has been carried out, and leaves the pool down to
 * the release threshold when the program synchronises.
 *
 * Under sim.lock: a block on `cached` is SIM_CACHED, or SIM_FREEING while its free is in flight.
 */
#include "sim.h"
#include "sim_observe.h"

#include <string.h>

static const CUmemPoolProps default_props = {
    .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};

static struct sim_pool *create_pool(const CUmemPoolProps *props)
{
    struct sim_pool *pool = sim_object_create(SIM_POOL);

    if (!pool)
        return NULL;
    pool->props = *props;
    pool->device = props->location.id;
    for (int i = 0; i < 3; i++)
        pool->policies[i] = 1;
    pool->access[pool->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return pool;
}

void sim_pool_init(int device)
{
    CUmemPoolProps props = default_props;

    props.location.id = device;
    sim.devices[device].default_pool = sim.devices[device].pool = create_pool(&props);
    sim.devices[device].default_pool->is_default = true;
}

/* ---- the cache ---- */

static void cache_insert(struct sim_pool *pool, struct sim_block *block)
{
    block->prev = NULL;
    block->next = pool->cached;
    if (pool->cached)
        pool->cached->prev = block;
    pool->cached = block;
}

static void cache_remove(struct sim_pool *pool, struct sim_block *block)
{
    if (block->prev)
        block->prev->next = block->next;
    else
        pool->cached = block->next;
    if (block->next)
        block->next->prev = block->prev;
    block->next = block->prev = NULL;
}

static void drop(struct sim_pool *pool, struct sim_block *block)
{
    cache_remove(pool, block);
    pool->reserved -= block->span;
    sim_block_destroy(block);
}

void sim_pool_trim(struct sim_pool *pool, uint64_t keep)
{
    struct sim_block *next;

    for (struct sim_block *block = pool->cached; block; block = next) {
        next = block->next;
        if (pool->reserved <= keep)
            return;
        if (block->state == SIM_CACHED)
            drop(pool, block);
    }
}

static void bury_if_empty(struct sim_pool *pool)
{
    if (pool->is_dead && pool->used == 0 && !pool->cached)
        sim_object_destroy(pool);
}

struct trim {
    int device;
    bool is_all;
};

static void trim_one(void *object, void *argument)
{
    struct sim_pool *pool = object;
    const struct trim *trim = argument;

    if (pool->device == trim->device)
        sim_pool_trim(pool, trim->is_all || pool->is_dead ? 0 : pool->threshold);
    bury_if_empty(pool);
}

void sim_pool_trim_all(int device)
{
    struct trim trim = {.device = device};

    sim_object_visit(SIM_POOL, trim_one, &trim);
}

bool sim_pool_trim_some(int device)
{
    struct trim trim = {.device = device, .is_all = true};
    size_t before = sim.devices[device].used;

    sim_object_visit(SIM_POOL, trim_one, &trim);
    return sim.devices[device].used < before;
}

static bool may_reuse(const struct sim_block *block, const struct sim_stream *stream, size_t span)
{
    if (block->span != span)
        return false;
    return block->state == SIM_CACHED || (block->state == SIM_FREEING && block->freer == stream);
}

/* The operation that frees the old block still runs; the new owner gets a record of its own. */
static struct sim_block *reuse(struct sim_pool *pool, const struct sim_stream *stream, size_t span)
{
    for (struct sim_block *block = pool->cached; block; block = block->next) {
        if (!may_reuse(block, stream, span))
            continue;
        cache_remove(pool, block);
        sim_op_unref(block->free_op);
        block->free_op = NULL;
        block->freer = NULL;
        block->state = SIM_LIVE;
        block->id = ++sim.next_id;
        return block;
    }
    return NULL;
}

static CUresult take(struct sim_block **out, struct sim_pool *pool, struct sim_stream *stream,
                     size_t bytes)
{
    size_t span = sim_round(bytes, SIM_UNIT);
    struct sim_block *block = reuse(pool, stream, span);

    if (pool->is_default && !pool->is_told) {
        pool->is_told = true;
        sim_observe(&(struct cusim_event){.is_pool = 1, .is_own = 1, .device = pool->device});
    }
    if (block) {
        block->size = bytes;
        sim_block_count(block, 1);
    } else {
        if (pool->props.maxSize && pool->reserved + span > pool->props.maxSize)
            return CUDA_ERROR_OUT_OF_MEMORY;
        block = sim_block_create(SIM_MEM_ASYNC, pool->device, bytes, true);
        if (!block)
            return CUDA_ERROR_OUT_OF_MEMORY;
        block->pool = pool;
        pool->reserved += span;
    }
    pool->used += span;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    *out = block;
    return CUDA_SUCCESS;
}

/* A pool takes the memory back; `used` drops now, the charge stays with the reserve. */
static void end_use(struct sim_block *block)
{
    sim_block_count(block, -1);
    block->pool->used -= block->span;
}

void sim_pool_release(struct sim_block *block)
{
    if (block->skip_frees > 0) {
        block->skip_frees--; /* a newer launch has brought the block back meanwhile */
        return;
    }
    if (block->state != SIM_FREEING)
        return; /* reused by its stream already */
    switch (block->kind) {
    case SIM_MEM_ASYNC:
        if (!block->freer) { /* not in the cache yet */
            end_use(block);
            cache_insert(block->pool, block);
        }
        block->freer = NULL;
        block->state = SIM_CACHED;
        bury_if_empty(block->pool);
        return;
    case SIM_MEM_GRAPH:
        sim_graph_block_release(block);
        return;
    default:
        sim_block_destroy(block);
    }
}

CUresult sim_free_later(struct sim_block *block, struct sim_stream *stream)
{
    struct sim_work work = {.task = SIM_DO_FREE, .block = block};
    struct sim_op *op;

    if (block->kind != SIM_MEM_ASYNC && block->kind != SIM_MEM_GRAPH &&
        block->kind != SIM_MEM_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    block->state = SIM_FREEING;
    if (block->kind == SIM_MEM_ASYNC) {
        end_use(block);
        block->freer = stream;
        cache_insert(block->pool, block);
    }
    op = sim_stream_append(stream, &work);
    sim_op_unref(op);
    return CUDA_SUCCESS;
}

/* ---- entry points: allocation ---- */

static CUresult allocate(CUdeviceptr *out, size_t bytes, struct sim_pool *pool,
                         struct sim_stream *stream)
{
    struct sim_work nothing = {.task = SIM_NOTHING};
    struct sim_block *block;
    CUresult status;

    if (stream->capture)
        return sim_capture_alloc(out, bytes, pool->device, stream);
    status = take(&block, pool, stream, bytes);
    if (status != CUDA_SUCCESS)
        return status;
    sim_op_unref(sim_stream_append(stream, &nothing));
    *out = block->start;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream handle)
{
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!out || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(out, bytes, sim_device(stream->ctx->device)->pool, stream);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool handle,
                                     CUstream stream_handle)
{
    struct sim_pool *pool = (struct sim_pool *)handle;
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, stream_handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (!out || bytes == 0 || !sim_object_is(pool, SIM_POOL) || pool->is_dead)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(out, bytes, pool, stream);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
    struct sim_block *block = sim_block_base(address);
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (stream->capture)
        return sim_capture_free(address, stream);
    if (!block)
        return address ? sim_block_refuse(address, "cuMemFreeAsync") : CUDA_ERROR_INVALID_VALUE;
    return sim_free_later(block, stream);
}

/* ---- entry points: pools ---- */

static CUresult find(struct sim_pool **out, CUmemoryPool handle)
{
    struct sim_pool *pool = (struct sim_pool *)handle;

    if (!sim_object_is(pool, SIM_POOL) || pool->is_dead)
        return CUDA_ERROR_INVALID_VALUE;
    *out = pool;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    struct sim_pool *pool;

    if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sim_device(props->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    pool = create_pool(props);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmemoryPool)pool;
    sim_observe(&(struct cusim_event){.is_pool = 1, .device = pool->device});
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolDestroy(CUmemoryPool handle)
{
    struct sim_pool *pool;
    CUresult status = find(&pool, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (pool->is_default)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (sim.devices[pool->device].pool == pool)
        sim.devices[pool->device].pool = sim.devices[pool->device].default_pool;
    pool->is_dead = true;
    sim_observe(&(struct cusim_event){.is_pool = 1, .is_free = 1, .device = pool->device});
    sim_pool_trim(pool, 0);
    bury_if_empty(pool);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
    struct sim_pool *pool;
    CUresult status = find(&pool, handle);

    if (status == CUDA_SUCCESS)
        sim_pool_trim(pool, keep);
    return status;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    struct sim_pool *pool;
    CUresult status = find(&pool, handle);

    if (status != CUDA_SUCCESS || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->policies[attribute - 1];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = pool->reserved_high;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    struct sim_pool *pool;
    CUresult status = find(&pool, handle);

    if (status != CUDA_SUCCESS || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->policies[attribute - 1] = *(int *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(cuuint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        pool->reserved_high = pool->reserved;
        return *(cuuint64_t *)value ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        pool->used_high = pool->used;
        return *(cuuint64_t *)value ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
    struct sim_pool *pool;
    CUresult status = find(&pool, handle);

    for (size_t i = 0; status == CUDA_SUCCESS && i < count; i++) {
        int device = map[i].location.id;

        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sim_device(device))
            status = CUDA_ERROR_INVALID_DEVICE;
        else
            pool->access[device] = map[i].flags;
    }
    return status;
}

CUresult sim_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                                CUmemLocation *location)
{
    struct sim_pool *pool;
    CUresult status = find(&pool, handle);

    if (status != CUDA_SUCCESS || !flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(location->id))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = pool->access[location->id];
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (CUmemoryPool)sim_device(device)->default_pool;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (CUmemoryPool)sim_device(device)->pool;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle)
{
    struct sim_pool *pool;

    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (find(&pool, handle) != CUDA_SUCCESS || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    sim_device(device)->pool = pool;
    return CUDA_SUCCESS;
}

static CUresult check_location(CUmemLocation *location, CUmemAllocationType type)
{
    if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location,
                                    CUmemAllocationType type)
{
    CUresult status = check_location(location, type);

    return status == CUDA_SUCCESS ? sim_cuDeviceGetDefaultMemPool(out, location->id) : status;
}

CUresult sim_cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult status = check_location(location, type);

    return status == CUDA_SUCCESS ? sim_cuDeviceGetMemPool(out, location->id) : status;
}

CUresult sim_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult status = check_location(location, type);

    return status == CUDA_SUCCESS ? sim_cuDeviceSetMemPool(location->id, pool) : status;
}
