/* SPDX-License-Identifier: MIT */
/* The memcpy and memset families: every spelling becomes one struct sim_copy or struct sim_set.
 *
 * As with a real driver, a copy from pageable memory reads it before the call returns and a copy to
 * pageable memory is finished when the call returns, whatever the name of the function says.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER differ only in the type of two members ignored here. */
typedef CUDA_MEMCPY3D_v2 Region;

static bool is_pinned(uintptr_t address)
{
    return sim_block_find(address) != NULL;
}

static void flat_side(struct sim_side *side, enum sim_place place, uintptr_t address)
{
    memset(side, 0, sizeof *side);
    side->place = place;
    side->base = address;
    side->height = 1;
}

static struct sim_copy flat_copy(enum sim_place to_place, uintptr_t to, enum sim_place from_place,
                                 uintptr_t from, size_t bytes)
{
    struct sim_copy copy = {.width = bytes, .height = 1, .depth = 1};

    flat_side(&copy.to, to_place, to);
    flat_side(&copy.from, from_place, from);
    return copy;
}

static enum sim_place unified_place(uintptr_t address)
{
    return is_pinned(address) ? SIM_PLACE_DEVICE : SIM_PLACE_HOST;
}

static CUresult set_side(struct sim_side *side, CUmemorytype type, uintptr_t host, uintptr_t device,
                         CUarray array, const Region *region)
{
    side->base = type == CU_MEMORYTYPE_HOST ? host : device;
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        side->place = SIM_PLACE_HOST;
        break;
    case CU_MEMORYTYPE_DEVICE:
        side->place = SIM_PLACE_DEVICE;
        break;
    case CU_MEMORYTYPE_UNIFIED:
        side->place = unified_place(device);
        break;
    case CU_MEMORYTYPE_ARRAY:
        side->place = SIM_PLACE_ARRAY;
        side->array = (struct sim_array *)array;
        if (!sim_object_is(side->array, SIM_ARRAY))
            return CUDA_ERROR_INVALID_HANDLE;
        side->base = side->array->base;
        side->pitch = side->array->pitch;
        side->height = side->array->height;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (side->pitch == 0)
        side->pitch = region->WidthInBytes + side->x;
    if (side->height == 0)
        side->height = region->Height + side->y;
    if (side->pitch < region->WidthInBytes && region->Height * region->Depth > 1)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult parse_region(struct sim_copy *copy, const Region *region)
{
    struct sim_copy result = {
        .from = {.pitch = region->srcPitch,
                 .height = region->srcHeight,
                 .x = region->srcXInBytes,
                 .y = region->srcY,
                 .z = region->srcZ},
        .to = {.pitch = region->dstPitch,
               .height = region->dstHeight,
               .x = region->dstXInBytes,
               .y = region->dstY,
               .z = region->dstZ},
        .width = region->WidthInBytes,
        .height = region->Height,
        .depth = region->Depth,
    };
    CUresult status = set_side(&result.from, region->srcMemoryType, (uintptr_t)region->srcHost,
                               region->srcDevice, region->srcArray, region);

    if (status == CUDA_SUCCESS)
        status = set_side(&result.to, region->dstMemoryType, (uintptr_t)region->dstHost,
                          region->dstDevice, region->dstArray, region);
    *copy = result;
    return status;
}

static Region region_of_2d(const CUDA_MEMCPY2D_v2 *plane)
{
    Region region = {
        .srcXInBytes = plane->srcXInBytes,
        .srcY = plane->srcY,
        .srcMemoryType = plane->srcMemoryType,
        .srcHost = plane->srcHost,
        .srcDevice = plane->srcDevice,
        .srcArray = plane->srcArray,
        .srcPitch = plane->srcPitch,
        .dstXInBytes = plane->dstXInBytes,
        .dstY = plane->dstY,
        .dstMemoryType = plane->dstMemoryType,
        .dstHost = plane->dstHost,
        .dstDevice = plane->dstDevice,
        .dstArray = plane->dstArray,
        .dstPitch = plane->dstPitch,
        .WidthInBytes = plane->WidthInBytes,
        .Height = plane->Height,
        .Depth = 1,
    };

    return region;
}

static bool is_pageable(const struct sim_side *side)
{
    return side->place == SIM_PLACE_HOST && !is_pinned(side->base);
}

/* Packs the source into memory of the operation, which frees it. */
static CUresult stage(struct sim_work *work)
{
    struct sim_copy *copy = &work->copy;
    struct sim_side packed = {.pitch = copy->width, .height = copy->height};
    struct sim_op op = {.work = {.task = SIM_DO_COPY, .copy = *copy}};

    work->owned = malloc(copy->width * copy->height * copy->depth + 1);
    if (!work->owned)
        return CUDA_ERROR_OUT_OF_MEMORY;
    packed.base = (uintptr_t)work->owned;
    op.work.copy.to = packed;
    sim_work_identify(&op.work, op.ids);
    sim_work_execute(&op);
    copy->from = packed;
    return CUDA_SUCCESS;
}

static bool is_between_devices(const struct sim_copy *copy)
{
    return copy->from.place != SIM_PLACE_HOST && copy->to.place != SIM_PLACE_HOST;
}

static CUresult copy_now(const struct sim_copy *copy)
{
    struct sim_work work = {.task = SIM_DO_COPY, .copy = *copy};
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, NULL);

    if (status != CUDA_SUCCESS)
        return status;
    /* Not even a synchronous copy makes the host wait for device-to-device work. */
    if (is_between_devices(copy) && (sim.config.delay_us > 0 || sim.config.is_lazy))
        return sim_stream_submit(stream, &work);
    return sim_stream_run(stream, &work);
}

static CUresult copy_later(const struct sim_copy *copy, CUstream handle)
{
    struct sim_work work = {.task = SIM_DO_COPY, .copy = *copy};
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status != CUDA_SUCCESS)
        return status;
    if (stream->capture)
        return sim_stream_submit(stream, &work);
    if (is_pageable(&copy->to))
        return sim_stream_run(stream, &work);
    if (is_pageable(&copy->from)) {
        status = sim_work_check(&work);
        if (status == CUDA_SUCCESS)
            status = stage(&work);
    }
    return status == CUDA_SUCCESS ? sim_stream_submit(stream, &work) : status;
}

static CUresult copy_region_now(const Region *region)
{
    struct sim_copy copy;
    CUresult status = region ? parse_region(&copy, region) : CUDA_ERROR_INVALID_VALUE;

    return status == CUDA_SUCCESS ? copy_now(&copy) : status;
}

static CUresult copy_region_later(const Region *region, CUstream stream)
{
    struct sim_copy copy;
    CUresult status = region ? parse_region(&copy, region) : CUDA_ERROR_INVALID_VALUE;

    return status == CUDA_SUCCESS ? copy_later(&copy, stream) : status;
}

CUresult sim_copy_parse(struct sim_copy *copy, const CUDA_MEMCPY3D_v2 *region)
{
    return parse_region(copy, region);
}

/* ---- one-dimensional copies ---- */

CUresult sim_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    struct sim_copy copy = flat_copy(unified_place(to), to, unified_place(from), from, bytes);

    return copy_now(&copy);
}

CUresult sim_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct sim_copy copy = flat_copy(unified_place(to), to, unified_place(from), from, bytes);

    return copy_later(&copy, stream);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx,
                          size_t bytes)
{
    (void)to_ctx, (void)from_ctx;
    return sim_cuMemcpy(to, from, bytes);
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
                               CUcontext from_ctx, size_t bytes, CUstream stream)
{
    (void)to_ctx, (void)from_ctx;
    return sim_cuMemcpyAsync(to, from, bytes, stream);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, to, SIM_PLACE_HOST, (uintptr_t)from, bytes);

    return copy_now(&copy);
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, to, SIM_PLACE_HOST, (uintptr_t)from, bytes);

    return copy_later(&copy, stream);
}

CUresult sim_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_HOST, (uintptr_t)to, SIM_PLACE_DEVICE, from, bytes);

    return copy_now(&copy);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_HOST, (uintptr_t)to, SIM_PLACE_DEVICE, from, bytes);

    return copy_later(&copy, stream);
}

CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, to, SIM_PLACE_DEVICE, from, bytes);

    return copy_now(&copy);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, to, SIM_PLACE_DEVICE, from, bytes);

    return copy_later(&copy, stream);
}

/* ---- one-dimensional copies of arrays ---- */

static CUresult array_side(struct sim_side *side, CUarray handle, size_t offset)
{
    struct sim_array *array = (struct sim_array *)handle;

    if (!sim_object_is(array, SIM_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    memset(side, 0, sizeof *side);
    side->place = SIM_PLACE_ARRAY;
    side->array = array;
    side->base = array->base;
    side->pitch = array->pitch;
    side->height = array->height;
    side->x = offset;
    return CUDA_SUCCESS;
}

static CUresult array_copy(struct sim_copy *copy, CUarray to, size_t to_offset, CUarray from,
                           size_t from_offset)
{
    CUresult status = to ? array_side(&copy->to, to, to_offset) : CUDA_SUCCESS;

    if (status == CUDA_SUCCESS && from)
        status = array_side(&copy->from, from, from_offset);
    return status;
}

static CUresult with_array(struct sim_copy *copy, CUarray to, size_t to_offset, CUarray from,
                           size_t from_offset)
{
    CUresult status = array_copy(copy, to, to_offset, from, from_offset);

    return status == CUDA_SUCCESS ? copy_now(copy) : status;
}

CUresult sim_cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, 0, SIM_PLACE_DEVICE, from, bytes);

    return with_array(&copy, to, offset, NULL, 0);
}

CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, to, SIM_PLACE_DEVICE, 0, bytes);

    return with_array(&copy, NULL, 0, from, offset);
}

CUresult sim_cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, 0, SIM_PLACE_HOST, (uintptr_t)from, bytes);

    return with_array(&copy, to, offset, NULL, 0);
}

CUresult sim_cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_HOST, (uintptr_t)to, SIM_PLACE_DEVICE, 0, bytes);

    return with_array(&copy, NULL, 0, from, offset);
}

CUresult sim_cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                             size_t bytes)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, 0, SIM_PLACE_DEVICE, 0, bytes);

    return with_array(&copy, to, to_offset, from, from_offset);
}

CUresult sim_cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes,
                                  CUstream stream)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_DEVICE, 0, SIM_PLACE_HOST, (uintptr_t)from, bytes);
    CUresult status = array_copy(&copy, to, offset, NULL, 0);

    return status == CUDA_SUCCESS ? copy_later(&copy, stream) : status;
}

CUresult sim_cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes,
                                  CUstream stream)
{
    struct sim_copy copy = flat_copy(SIM_PLACE_HOST, (uintptr_t)to, SIM_PLACE_DEVICE, 0, bytes);
    CUresult status = array_copy(&copy, NULL, 0, from, offset);

    return status == CUDA_SUCCESS ? copy_later(&copy, stream) : status;
}

/* ---- two and three dimensions ---- */

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D_v2 *plane)
{
    Region region;

    if (!plane)
        return CUDA_ERROR_INVALID_VALUE;
    region = region_of_2d(plane);
    return copy_region_now(&region);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D_v2 *plane, CUstream stream)
{
    Region region;

    if (!plane)
        return CUDA_ERROR_INVALID_VALUE;
    region = region_of_2d(plane);
    return copy_region_later(&region, stream);
}

CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D_v2 *region)
{
    return copy_region_now(region);
}

CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D_v2 *region, CUstream stream)
{
    return copy_region_later(region, stream);
}

CUresult sim_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *region)
{
    return copy_region_now((const Region *)region);
}

CUresult sim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *region, CUstream stream)
{
    return copy_region_later((const Region *)region, stream);
}

/* ---- batches ---- */

CUresult sim_cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                   CUmemcpyAttributes *attributes, size_t *indices,
                                   size_t nattributes, CUstream stream)
{
    CUresult status = CUDA_SUCCESS;

    (void)attributes, (void)indices, (void)nattributes;
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = sim_cuMemcpyAsync(to[i], from[i], sizes[i], stream);
    return status;
}

CUresult sim_cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attributes, size_t *indices, size_t nattributes,
                                size_t *failed, CUstream stream)
{
    if (failed)
        *failed = SIZE_MAX;
    return sim_cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, indices, nattributes,
                                     stream);
}

/* ---- memset ---- */

static CUresult set_now(const struct sim_set *set)
{
    struct sim_work work = {.task = SIM_DO_SET, .set = *set};
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, NULL);

    if (status != CUDA_SUCCESS)
        return status;
    if (sim.config.delay_us > 0 || sim.config.is_lazy)
        return sim_stream_submit(stream, &work);
    return sim_stream_run(stream, &work);
}

static CUresult set_later(const struct sim_set *set, CUstream handle)
{
    struct sim_work work = {.task = SIM_DO_SET, .set = *set};
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    return status == CUDA_SUCCESS ? sim_stream_submit(stream, &work) : status;
}

static struct sim_set plane_set(CUdeviceptr at, size_t pitch, unsigned element, unsigned value,
                                size_t width, size_t height)
{
    struct sim_set set = {
        .address = at,
        .pitch = pitch,
        .width = width,
        .height = height,
        .element = element,
        .value = value,
    };

    return set;
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t n)
{
    struct sim_set set = plane_set(at, 0, 1, value, n, 1);

    return set_now(&set);
}

CUresult sim_cuMemsetD16_v2(CUdeviceptr at, unsigned short value, size_t n)
{
    struct sim_set set = plane_set(at, 0, 2, value, n, 1);

    return at % 2 ? CUDA_ERROR_INVALID_VALUE : set_now(&set);
}

CUresult sim_cuMemsetD32_v2(CUdeviceptr at, unsigned int value, size_t n)
{
    struct sim_set set = plane_set(at, 0, 4, value, n, 1);

    return at % 4 ? CUDA_ERROR_INVALID_VALUE : set_now(&set);
}

CUresult sim_cuMemsetD2D8_v2(CUdeviceptr at, size_t pitch, unsigned char value, size_t width,
                             size_t height)
{
    struct sim_set set = plane_set(at, pitch, 1, value, width, height);

    return set_now(&set);
}

CUresult sim_cuMemsetD2D16_v2(CUdeviceptr at, size_t pitch, unsigned short value, size_t width,
                              size_t height)
{
    struct sim_set set = plane_set(at, pitch, 2, value, width, height);

    return set_now(&set);
}

CUresult sim_cuMemsetD2D32_v2(CUdeviceptr at, size_t pitch, unsigned int value, size_t width,
                              size_t height)
{
    struct sim_set set = plane_set(at, pitch, 4, value, width, height);

    return set_now(&set);
}

CUresult sim_cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream)
{
    struct sim_set set = plane_set(at, 0, 1, value, n, 1);

    return set_later(&set, stream);
}

CUresult sim_cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t n, CUstream stream)
{
    struct sim_set set = plane_set(at, 0, 2, value, n, 1);

    return at % 2 ? CUDA_ERROR_INVALID_VALUE : set_later(&set, stream);
}

CUresult sim_cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t n, CUstream stream)
{
    struct sim_set set = plane_set(at, 0, 4, value, n, 1);

    return at % 4 ? CUDA_ERROR_INVALID_VALUE : set_later(&set, stream);
}

CUresult sim_cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream stream)
{
    struct sim_set set = plane_set(at, pitch, 1, value, width, height);

    return set_later(&set, stream);
}

CUresult sim_cuMemsetD2D16Async(CUdeviceptr at, size_t pitch, unsigned short value, size_t width,
                                size_t height, CUstream stream)
{
    struct sim_set set = plane_set(at, pitch, 2, value, width, height);

    return set_later(&set, stream);
}

CUresult sim_cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned int value, size_t width,
                                size_t height, CUstream stream)
{
    struct sim_set set = plane_set(at, pitch, 4, value, width, height);

    return set_later(&set, stream);
}
