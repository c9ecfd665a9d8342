/* SPDX-License-Identifier: MIT */
/* Bodies of families ALLOC and FREE: arrays and mipmapped arrays. */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/observe.h"

/* Bits of a texel in formats that say themselves which channels there are; by number, as older
 * headers have no names. Of planar ones, all planes together. The block-compressed ones, 0x91 to
 * 0x9e, are not here: 8 bits a channel are an upper bound if their dimensions are in texels, which
 * is not documented. */
static const uint8_t texel_bits[] = {
    [0x50] = 32,                           /* UNORM_INT_101010_2 */
    [0x9f] = 24, [0xa1] = 24,              /* P010, P016 */
    [0xa2] = 16, [0xa3] = 32, [0xa4] = 32, /* NV16, P210, P216 */
    [0xa5] = 16, [0xa6] = 32, [0xa7] = 32, /* YUY2, Y210, Y216 */
    [0xa8] = 32, [0xa9] = 32, [0xb1] = 64, /* AYUV, Y410, Y416 */
    [0xb0] = 12,                           /* NV12 */
    [0xb2] = 24, [0xb3] = 48,              /* Y444_PLANAR8, Y444_PLANAR10 */
    [0xb4] = 24, [0xb5] = 48,              /* YUV444_8bit_SemiPlanar, YUV444_16bit_SemiPlanar */
    [0xc0] = 8,  [0xc1] = 16, [0xc2] = 32, /* UNORM_INT8X1, X2, X4 */
    [0xc3] = 16, [0xc4] = 32, [0xc5] = 64, /* UNORM_INT16X1, X2, X4 */
    [0xc6] = 8,  [0xc7] = 16, [0xc8] = 32, /* SNORM_INT8X1, X2, X4 */
    [0xc9] = 16, [0xca] = 32, [0xcb] = 64, /* SNORM_INT16X1, X2, X4 */
};

static unsigned channel_bits(CUarray_format format)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 32;
    default:
        return 8;
    }
}

static uint64_t bytes_of(uint64_t texels, CUarray_format format, unsigned channels)
{
    uint64_t bits = (unsigned)format < CW_ARRAY_LEN(texel_bits) ? texel_bits[(unsigned)format] : 0;

    if (bits == 0)
        bits = channel_bits(format) * (uint64_t)(channels ? channels : 1);
    return (texels * bits + 7) / 8;
}

static uint64_t at_least_one(uint64_t n)
{
    return n ? n : 1;
}

static uint64_t size_3d(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
#ifdef CUDA_ARRAY3D_DEFERRED_MAPPING
    /* Memory comes later, from virtual memory handles that are counted themselves. */
    if (d->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        return 0;
#endif
    if (d->Flags & CUDA_ARRAY3D_SPARSE)
        return 0;
    return bytes_of(d->Width * at_least_one(d->Height) * at_least_one(d->Depth), d->Format,
                    d->NumChannels);
}

static unsigned max_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    uint64_t largest = d->Width | d->Height | 1;

    if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        largest |= d->Depth;
    return 64 - (unsigned)__builtin_clzll(largest);
}

static uint64_t size_mipmapped(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
    CUDA_ARRAY3D_DESCRIPTOR level = *d;
    uint64_t sum = 0;

    /* The driver clamps to 1 + floor(log2(largest dimension)) (cuda.h, cuMipmappedArrayCreate). */
    if (levels > max_levels(d))
        levels = max_levels(d);
    for (unsigned i = 0; i < levels; i++) {
        sum += size_3d(&level);
        level.Width = at_least_one(level.Width / 2);
        level.Height = level.Height ? at_least_one(level.Height / 2) : 0;
        /* The depth of layered arrays and cubemaps counts layers, which do not shrink. */
        if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
            level.Depth = level.Depth ? at_least_one(level.Depth / 2) : 0;
    }
    return sum;
}

static uint64_t handle_of(CUresult rc, const void *p)
{
    return rc == CUDA_SUCCESS && p != NULL ? (uint64_t)(uintptr_t) * (void *const *)p : 0;
}

/* ---- Arrays and mipmapped arrays: the handle comes in a1, the description in a2 ---- */

#define CREATED(symbol, of_kind, size)                                                             \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_request request = {.space = CW_SPACE_ARRAY, .kind = (of_kind)};                  \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        request.bytes = a2 != NULL ? (size) : 0;                                                   \
        do                                                                                         \
            rc = cw_call_may_here(&call, request.bytes) ? CW_REAL(symbol) CW_ARGS_##symbol         \
                                                        : CUDA_ERROR_OUT_OF_MEMORY;                \
        while (cw_call_again(&call, rc));                                                          \
        request.key = handle_of(rc, a1);                                                           \
        cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &request);                                  \
        return rc;                                                                                 \
    }

/* The two ABIs of a descriptor differ in the width of their sizes only. The flags of the first
 * one of 3D arrays are not looked at. */
#define TEXELS_2D ((uint64_t)a2->Width * at_least_one(a2->Height))
#define BYTES_2D  bytes_of(TEXELS_2D, a2->Format, a2->NumChannels)
#define BYTES_3D  bytes_of(TEXELS_2D *at_least_one(a2->Depth), a2->Format, a2->NumChannels)

CREATED(cuArrayCreate, CW_KIND_ARRAY, BYTES_2D)
CREATED(cuArrayCreate_v2, CW_KIND_ARRAY, BYTES_2D)
CREATED(cuArray3DCreate, CW_KIND_ARRAY, BYTES_3D)
CREATED(cuArray3DCreate_v2, CW_KIND_ARRAY, size_3d(a2))
CREATED(cuMipmappedArrayCreate, CW_KIND_MIPMAP, size_mipmapped(a2, a3))
CW_FREES(cuArrayDestroy, CW_SPACE_ARRAY)
CW_FREES(cuMipmappedArrayDestroy, CW_SPACE_ARRAY)
