/* SPDX-License-Identifier: MIT */
/* An array of each format that cuda.h has, each from a function of its own, counts the bytes that
 * its elements take; where the driver says what an array needs, that is no less, nor much more. A
 * format that the driver refuses is left out. */
#include "victim.h"

static int failed;

#define WIDTH  2048
#define HEIGHT 1024

/* Name, number, channels, bits of an element; of a block-compressed format at most. */
#define FORMATS(ROW)                                                                               \
    ROW(UNSIGNED_INT8, 0x01, 4, 32)                                                                \
    ROW(UNSIGNED_INT16, 0x02, 4, 64)                                                               \
    ROW(UNSIGNED_INT32, 0x03, 2, 64)                                                               \
    ROW(SIGNED_INT8, 0x08, 1, 8)                                                                   \
    ROW(SIGNED_INT16, 0x09, 1, 16)                                                                 \
    ROW(SIGNED_INT32, 0x0a, 1, 32)                                                                 \
    ROW(HALF, 0x10, 2, 32)                                                                         \
    ROW(FLOAT, 0x20, 1, 32)                                                                        \
    ROW(UNORM_INT_101010_2, 0x50, 4, 32)                                                           \
    ROW(BC1_UNORM, 0x91, 4, 32)                                                                    \
    ROW(BC1_UNORM_SRGB, 0x92, 4, 32)                                                               \
    ROW(BC2_UNORM, 0x93, 4, 32)                                                                    \
    ROW(BC2_UNORM_SRGB, 0x94, 4, 32)                                                               \
    ROW(BC3_UNORM, 0x95, 4, 32)                                                                    \
    ROW(BC3_UNORM_SRGB, 0x96, 4, 32)                                                               \
    ROW(BC4_UNORM, 0x97, 1, 8)                                                                     \
    ROW(BC4_SNORM, 0x98, 1, 8)                                                                     \
    ROW(BC5_UNORM, 0x99, 2, 16)                                                                    \
    ROW(BC5_SNORM, 0x9a, 2, 16)                                                                    \
    ROW(BC6H_UF16, 0x9b, 3, 24)                                                                    \
    ROW(BC6H_SF16, 0x9c, 3, 24)                                                                    \
    ROW(BC7_UNORM, 0x9d, 4, 32)                                                                    \
    ROW(BC7_UNORM_SRGB, 0x9e, 4, 32)                                                               \
    ROW(P010, 0x9f, 3, 24)                                                                         \
    ROW(P016, 0xa1, 3, 24)                                                                         \
    ROW(NV16, 0xa2, 3, 16)                                                                         \
    ROW(P210, 0xa3, 3, 32)                                                                         \
    ROW(P216, 0xa4, 3, 32)                                                                         \
    ROW(YUY2, 0xa5, 2, 16)                                                                         \
    ROW(Y210, 0xa6, 2, 32)                                                                         \
    ROW(Y216, 0xa7, 2, 32)                                                                         \
    ROW(AYUV, 0xa8, 4, 32)                                                                         \
    ROW(Y410, 0xa9, 4, 32)                                                                         \
    ROW(NV12, 0xb0, 3, 12)                                                                         \
    ROW(Y416, 0xb1, 4, 64)                                                                         \
    ROW(Y444_PLANAR8, 0xb2, 3, 24)                                                                 \
    ROW(Y444_PLANAR10, 0xb3, 3, 48)                                                                \
    ROW(YUV444_8bit_SemiPlanar, 0xb4, 3, 24)                                                       \
    ROW(YUV444_16bit_SemiPlanar, 0xb5, 3, 48)                                                      \
    ROW(UNORM_INT8X1, 0xc0, 1, 8)                                                                  \
    ROW(UNORM_INT8X2, 0xc1, 2, 16)                                                                 \
    ROW(UNORM_INT8X4, 0xc2, 4, 32)                                                                 \
    ROW(UNORM_INT16X1, 0xc3, 1, 16)                                                                \
    ROW(UNORM_INT16X2, 0xc4, 2, 32)                                                                \
    ROW(UNORM_INT16X4, 0xc5, 4, 64)                                                                \
    ROW(SNORM_INT8X1, 0xc6, 1, 8)                                                                  \
    ROW(SNORM_INT8X2, 0xc7, 2, 16)                                                                 \
    ROW(SNORM_INT8X4, 0xc8, 4, 32)                                                                 \
    ROW(SNORM_INT16X1, 0xc9, 1, 16)                                                                \
    ROW(SNORM_INT16X2, 0xca, 2, 32)                                                                \
    ROW(SNORM_INT16X4, 0xcb, 4, 64)

#if CUDA_VERSION >= 13000
#define SAME_NUMBER(name, number, channels, bits)                                                  \
    _Static_assert(CU_AD_FORMAT_##name == (number), #name);
FORMATS(SAME_NUMBER)
#endif

static CUDA_ARRAY3D_DESCRIPTOR shape_of(unsigned format, unsigned channels, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = WIDTH,
                                     .Height = HEIGHT,
                                     .Format = (CUarray_format)format,
                                     .NumChannels = channels,
                                     .Flags = flags};
}

static void take(const char *function, unsigned format, unsigned channels, size_t bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(format, channels, 0);
    CUarray array;
    CUresult rc = cuArray3DCreate(&array, &shape);

    say("%s: %d", function, rc);
    if (rc != CUDA_SUCCESS)
        return;
    MUST(cuArrayDestroy(array));
    say("json site('%s')['total'] == {'count': 1, 'bytes': %zu}", function, bytes);
}

/* Only an array that is mapped later tells. */
static void measure(const char *name, unsigned format, unsigned channels, size_t bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(format, channels, CUDA_ARRAY3D_DEFERRED_MAPPING);
    int is_compressed = format >= 0x91 && format <= 0x9e;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CUarray array;

    if (cuArray3DCreate(&array, &shape) != CUDA_SUCCESS)
        return;
    if (cuArrayGetMemoryRequirements(&needs, array, 0) == CUDA_SUCCESS &&
        (needs.size > bytes + bytes / 2 || (needs.size < bytes && !is_compressed))) {
        say("%s needs %zu bytes, not %zu", name, needs.size, bytes);
        failed = 1;
    }
    MUST(cuArrayDestroy(array));
}

#define BYTES(bits) ((size_t)WIDTH * HEIGHT * (bits) / 8)
#define TAKE(name, number, channels, bits)                                                         \
    static NOINLINE void take_##name(void)                                                         \
    {                                                                                              \
        take(__func__, number, channels, BYTES(bits));                                             \
        __asm__ volatile(""); /* no tail call */                                                   \
    }
FORMATS(TAKE)

#define CALL(name, number, channels, bits)    take_##name();
#define MEASURE(name, number, channels, bits) measure(#name, number, channels, BYTES(bits));

int main(void)
{
    use_device(0);
    FORMATS(CALL)
    FORMATS(MEASURE)
    MUST(cuCtxSynchronize());
    say("expect leaked_bytes=0 leaked_blocks=0");
    return failed;
}
