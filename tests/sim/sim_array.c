/* SPDX-License-Identifier: MIT */
/* Arrays and mipmapped arrays: pitched memory behind a handle; levels and planes are parts of it.
 */
#include "sim.h"

#include <string.h>

/* By number what only newer headers name. `bytes` of a channel, or of the whole element where the
 * format says which channels it has; of NV12 in its first plane. Block-compressed formats are not
 * simulated. */
static const struct format {
    unsigned short format;
    unsigned char bytes;
    bool is_whole;
} formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 1, false},
    {CU_AD_FORMAT_UNSIGNED_INT16, 2, false},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4, false},
    {CU_AD_FORMAT_SIGNED_INT8, 1, false},
    {CU_AD_FORMAT_SIGNED_INT16, 2, false},
    {CU_AD_FORMAT_SIGNED_INT32, 4, false},
    {CU_AD_FORMAT_HALF, 2, false},
    {CU_AD_FORMAT_FLOAT, 4, false},
    {CU_AD_FORMAT_NV12, 1, true},
    {0x50, 4, true}, /* 10:10:10:2 */
    {0x9f, 3, true}, /* 4:2:0 of 16 bits, P010 and P016 */
    {0xa1, 3, true},
    {0xa2, 2, true}, /* 4:2:2 of 8 and of 16 bits, in planes */
    {0xa3, 4, true},
    {0xa4, 4, true},
    {0xa5, 2, true}, /* the same, packed */
    {0xa6, 4, true},
    {0xa7, 4, true},
    {0xa8, 4, true}, /* 4:4:4, packed */
    {0xa9, 4, true},
    {0xb1, 8, true},
    {0xb2, 3, true}, /* 4:4:4, in planes */
    {0xb3, 6, true},
    {0xb4, 3, true},
    {0xb5, 6, true},
    {0xc0, 1, true}, /* normalized: unsigned and signed; 8 and 16 bits; 1, 2 and 4 channels */
    {0xc1, 2, true},
    {0xc2, 4, true},
    {0xc3, 2, true},
    {0xc4, 4, true},
    {0xc5, 8, true},
    {0xc6, 1, true},
    {0xc7, 2, true},
    {0xc8, 4, true},
    {0xc9, 2, true},
    {0xca, 4, true},
    {0xcb, 8, true},
};

static const struct format *format_of(const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].format == (unsigned)desc->Format)
            return &formats[i];
    return NULL;
}

static size_t element_size(const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc)
{
    const struct format *format = format_of(desc);

    if (!format)
        return 0;
    return format->is_whole || !desc->NumChannels ? format->bytes
                                                  : (size_t)format->bytes * desc->NumChannels;
}

static bool is_legal(const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc)
{
    const struct format *format = format_of(desc);
    unsigned n = desc->NumChannels;

    if (desc->Width == 0 || desc->Width > 131072 || desc->Height > 131072 || desc->Depth > 16384)
        return false;
    return format && (n == 1 || n == 2 || n == 4 || format->is_whole);
}

static void shape(struct sim_array *array, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc)
{
    array->desc = *desc;
    array->element = element_size(desc);
    array->pitch = desc->Width * array->element;
    array->height = desc->Height ? desc->Height : 1;
    array->depth = desc->Depth ? desc->Depth : 1;
    if (desc->Format == CU_AD_FORMAT_NV12)
        array->height += array->height / 2;
}

static size_t bytes_of(const struct sim_array *array)
{
    return array->pitch * array->height * array->depth;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc)
{
    struct sim_context *ctx = sim_context_current();
    struct sim_array *array;

    if (!out || !is_legal(desc))
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->Flags & CUDA_ARRAY3D_SPARSE)
        return CUDA_ERROR_NOT_SUPPORTED;
    array = sim_object_create(SIM_ARRAY);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    shape(array, desc);
    array->ctx = ctx;
    array->block = sim_block_create(SIM_MEM_ARRAY, ctx->device, bytes_of(array), true);
    if (!array->block) {
        sim_object_destroy(array);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_block_own(array->block, ctx);
    array->base = array->block->start;
    *out = (CUarray)array;
    return CUDA_SUCCESS;
}

CUresult sim_cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc)
{
    return desc ? create(out, desc) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v2 *desc)
{
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    return create(out, &(CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = desc->Width,
                                                     .Height = desc->Height,
                                                     .Format = desc->Format,
                                                     .NumChannels = desc->NumChannels});
}

CUresult sim_cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    return create(out, &(CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = desc->Width,
                                                     .Height = desc->Height,
                                                     .Depth = desc->Depth,
                                                     .Format = desc->Format,
                                                     .NumChannels = desc->NumChannels,
                                                     .Flags = desc->Flags});
}

CUresult sim_cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    return create(out, &(CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = desc->Width,
                                                     .Height = desc->Height,
                                                     .Format = desc->Format,
                                                     .NumChannels = desc->NumChannels});
}

static struct sim_array *find(const void *handle, enum sim_type type)
{
    return sim_object_is(handle, type) ? (struct sim_array *)handle : NULL;
}

static void free_part(void *object, void *argument)
{
    struct sim_array *part = object;

    if (part->is_part && part->whole == argument)
        sim_object_destroy(part);
}

static void destroy(struct sim_array *array)
{
    if (sim.config.free_waits)
        sim_context_wait(array->ctx);
    sim_object_visit(SIM_ARRAY, free_part, array);
    if (array->block)
        sim_block_destroy(array->block);
    sim_object_destroy(array);
}

CUresult sim_cuArrayDestroy(CUarray handle)
{
    struct sim_array *array = find(handle, SIM_ARRAY);

    if (!array || array->is_part) {
        sim_misuse(array ? "wrong_free" : "double_free", "cuArrayDestroy of no array of its own");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    destroy(array);
    return CUDA_SUCCESS;
}

CUresult sim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR_v2 *out, CUarray handle)
{
    struct sim_array *array = find(handle, SIM_ARRAY);

    if (!out || !array)
        return out ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *out = array->desc;
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR_v2 *out, CUarray handle)
{
    struct sim_array *array = find(handle, SIM_ARRAY);

    if (!out || !array)
        return out ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    out->Width = array->desc.Width;
    out->Height = array->desc.Height;
    out->Format = array->desc.Format;
    out->NumChannels = array->desc.NumChannels;
    return CUDA_SUCCESS;
}

static struct sim_array *part_of(struct sim_array *whole, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc,
                                 size_t offset)
{
    struct sim_array *part = sim_object_create(SIM_ARRAY);

    if (!part)
        return NULL;
    shape(part, desc);
    part->whole = whole;
    part->ctx = whole->ctx;
    part->base = whole->base + offset;
    part->is_part = true;
    return part;
}

CUresult sim_cuArrayGetPlane(CUarray *out, CUarray handle, unsigned int plane)
{
    struct sim_array *array = find(handle, SIM_ARRAY);
    CUDA_ARRAY3D_DESCRIPTOR_v2 desc;

    if (!out || !array || plane > 1 || array->desc.Format != CU_AD_FORMAT_NV12)
        return CUDA_ERROR_INVALID_VALUE;
    desc = array->desc;
    desc.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    desc.NumChannels = plane + 1;
    desc.Width >>= plane;
    desc.Height >>= plane;
    *out = (CUarray)part_of(array, &desc, plane ? array->desc.Height * array->pitch : 0);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const struct sim_array *array)
{
    if (!out || !array)
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    out->size = array->block ? array->block->span : bytes_of(array);
    out->alignment = SIM_UNIT;
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle,
                                          CUdevice device)
{
    (void)device;
    return requirements(out, find(handle, SIM_ARRAY));
}

CUresult sim_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out,
                                                   CUmipmappedArray handle, CUdevice device)
{
    (void)device;
    return requirements(out, find(handle, SIM_MIPMAP));
}

/* ---- mipmaps ---- */

static CUDA_ARRAY3D_DESCRIPTOR_v2 level_desc(const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 result = *desc;

    result.Width = desc->Width >> level ? desc->Width >> level : 1;
    result.Height = desc->Height && !(desc->Height >> level) ? 1 : desc->Height >> level;
    result.Depth = desc->Depth && !(desc->Depth >> level) ? 1 : desc->Depth >> level;
    return result;
}

static size_t level_offset(const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc, unsigned level)
{
    size_t offset = 0;

    for (unsigned i = 0; i < level; i++) {
        CUDA_ARRAY3D_DESCRIPTOR_v2 one = level_desc(desc, i);
        struct sim_array array;

        shape(&array, &one);
        offset += sim_round(bytes_of(&array), SIM_UNIT);
    }
    return offset;
}

CUresult sim_cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc,
                                    unsigned int levels)
{
    struct sim_context *ctx = sim_context_current();
    struct sim_array *array;

    if (!out || !desc || !levels || levels > 17 || !is_legal(desc))
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->Flags & CUDA_ARRAY3D_SPARSE)
        return CUDA_ERROR_NOT_SUPPORTED;
    array = sim_object_create(SIM_MIPMAP);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    shape(array, desc);
    array->ctx = ctx;
    array->block = sim_block_create(SIM_MEM_ARRAY, ctx->device, level_offset(desc, levels), true);
    if (!array->block) {
        sim_object_destroy(array);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_block_own(array->block, ctx);
    array->base = array->block->start;
    *out = (CUmipmappedArray)array;
    return CUDA_SUCCESS;
}

struct search {
    struct sim_array *whole, *found;
    uintptr_t base;
};

static void search_part(void *object, void *argument)
{
    struct sim_array *part = object;
    struct search *search = argument;

    if (part->is_part && part->whole == search->whole && part->base == search->base)
        search->found = part;
}

CUresult sim_cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray handle, unsigned int level)
{
    struct sim_array *array = find(handle, SIM_MIPMAP);
    struct search search = {.whole = array};
    CUDA_ARRAY3D_DESCRIPTOR_v2 desc;
    size_t offset;

    if (!out || !array || level > 16)
        return CUDA_ERROR_INVALID_VALUE;
    desc = level_desc(&array->desc, level);
    offset = level_offset(&array->desc, level);
    if (array->block && offset >= array->block->span)
        return CUDA_ERROR_INVALID_VALUE;
    search.base = array->base + offset;
    sim_object_visit(SIM_ARRAY, search_part, &search);
    *out = (CUarray)(search.found ? search.found : part_of(array, &desc, offset));
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
    struct sim_array *array = find(handle, SIM_MIPMAP);

    if (!array) {
        sim_misuse("double_free", "cuMipmappedArrayDestroy of no mipmapped array");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    destroy(array);
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray handle)
{
    (void)out;
    return find(handle, SIM_ARRAY) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out,
                                                 CUmipmappedArray handle)
{
    (void)out;
    return find(handle, SIM_MIPMAP) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- texture and surface objects: they remember what they were made of ---- */

struct texture {
    struct sim_object head;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
};

static CUresult create_texture(unsigned long long *out, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *texture)
{
    struct texture *object;

    if (!out || !resource)
        return CUDA_ERROR_INVALID_VALUE;
    object = sim_object_create(SIM_TEXTURE);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    object->resource = *resource;
    if (texture)
        object->texture = *texture;
    *out = (unsigned long long)(uintptr_t)object;
    return CUDA_SUCCESS;
}

static struct texture *find_texture(unsigned long long handle)
{
    void *object = (void *)(uintptr_t)handle;

    return sim_object_is(object, SIM_TEXTURE) ? object : NULL;
}

void *cusim_texel(unsigned long long handle, unsigned level, size_t x, size_t y, size_t z)
{
    const struct texture *object = find_texture(handle);
    const struct sim_array *array = NULL;
    struct sim_array one;
    CUDA_ARRAY3D_DESCRIPTOR_v2 desc;
    size_t offset;

    if (object && object->resource.resType == CU_RESOURCE_TYPE_ARRAY)
        array = find(object->resource.res.array.hArray, SIM_ARRAY);
    else if (object && object->resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        array = find(object->resource.res.mipmap.hMipmappedArray, SIM_MIPMAP);
    if (!array) {
        sim_misuse("stale_handle", "a kernel used a texture or an array that is no more");
        return NULL;
    }
    desc = level_desc(&array->desc, level);
    offset = level_offset(&array->desc, level);
    shape(&one, &desc);
    if ((level > 0 && (!array->block || offset >= array->block->size)) || x >= desc.Width ||
        y >= one.height || z >= one.depth) {
        sim_misuse("out_of_bounds", "a kernel used an element that its array has not");
        return NULL;
    }
    return (char *)array->base + offset + (z * one.height + y) * one.pitch + x * one.element;
}

CUresult sim_cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *texture,
                               const CUDA_RESOURCE_VIEW_DESC *view)
{
    (void)view;
    return texture ? create_texture(out, resource, texture) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuTexObjectDestroy(CUtexObject handle)
{
    if (!find_texture(handle))
        return CUDA_ERROR_INVALID_VALUE;
    sim_object_destroy(find_texture(handle));
    return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject handle)
{
    if (!out || !find_texture(handle))
        return CUDA_ERROR_INVALID_VALUE;
    *out = find_texture(handle)->resource;
    return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject handle)
{
    if (!out || !find_texture(handle))
        return CUDA_ERROR_INVALID_VALUE;
    *out = find_texture(handle)->texture;
    return CUDA_SUCCESS;
}

CUresult sim_cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *resource)
{
    return create_texture(out, resource, NULL);
}

CUresult sim_cuSurfObjectDestroy(CUsurfObject handle)
{
    return sim_cuTexObjectDestroy(handle);
}

CUresult sim_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject handle)
{
    return sim_cuTexObjectGetResourceDesc(out, handle);
}
