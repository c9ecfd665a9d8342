/* SPDX-License-Identifier: MIT */
/* Arrays of one, two and three dimensions, in layers and with mipmaps: what the host copied in is
 * what a kernel reads through a texture, and what a kernel wrote through a surface is what the host
 * copies out. One array is forgotten. */
#include "contents.h"

enum shape { LINE, PLANE, LAYERS, MIPMAP, CUBE };

#define LEVELS 3

static unsigned *wrong;

/* Kernels of the host look into the array instead. */
[[maybe_unused]] static unsigned *element_at(unsigned long long object, unsigned level, size_t x,
                                             size_t y, size_t z)
{
    static decltype(cusim_texel) *const texel = control<decltype(cusim_texel)>("cusim_texel");

    return texel != NULL ? (unsigned *)texel(object, level, x, y, z) : NULL;
}

/* One element through a texture. */
static __host__ __device__ unsigned fetch(enum shape shape, cudaTextureObject_t texture,
                                          unsigned level, size_t x, size_t y, size_t z, float width,
                                          float height)
{
#ifdef __CUDA_ARCH__
    float at = (float)x + 0.5f, row = (float)y + 0.5f;

    switch (shape) {
    case LINE:
        return tex1D<unsigned>(texture, at);
    case PLANE:
        return tex2D<unsigned>(texture, at, row);
    case LAYERS:
        return tex2DLayered<unsigned>(texture, at, row, (int)z);
    case MIPMAP:
        return tex2DLod<unsigned>(texture, at / width, row / height, (float)level);
    default:
        return tex3D<unsigned>(texture, at, row, (float)z + 0.5f);
    }
#else
    const unsigned *element = element_at(texture, level, x, y, z);

    (void)shape, (void)width, (void)height;
    return element != NULL ? *element : 0;
#endif
}

static __host__ __device__ void look_body(size_t thread, size_t threads, enum shape shape,
                                          cudaTextureObject_t texture, unsigned level,
                                          unsigned width, unsigned height, unsigned depth,
                                          unsigned seed, unsigned *wrong)
{
    for (size_t i = thread; i < (size_t)width * height * depth; i += threads) {
        size_t x = i % width, y = i / width % height, z = i / width / height;

        if (fetch(shape, texture, level, x, y, z, (float)width, (float)height) !=
            expected_at(i, seed))
            count_one(wrong);
    }
}

static __global__ void look(enum shape shape, cudaTextureObject_t texture, unsigned level,
                            unsigned width, unsigned height, unsigned depth, unsigned seed,
                            unsigned *wrong)
{
    look_body(PLACE, shape, texture, level, width, height, depth, seed, wrong);
}
EMULATED(look, look_body);

static __host__ __device__ void paint_body(size_t thread, size_t threads,
                                           cudaSurfaceObject_t surface, unsigned width,
                                           unsigned height, unsigned seed)
{
    for (size_t i = thread; i < (size_t)width * height; i += threads) {
#ifdef __CUDA_ARCH__
        surf2Dwrite(expected_at(i, seed), surface, (int)(i % width * sizeof(unsigned)),
                    (int)(i / width));
#else
        unsigned *element = element_at(surface, 0, i % width, i / width, 0);

        if (element != NULL)
            *element = expected_at(i, seed);
#endif
    }
}

static __global__ void paint(cudaSurfaceObject_t surface, unsigned width, unsigned height,
                             unsigned seed)
{
    paint_body(PLACE, surface, width, height, seed);
}
EMULATED(paint, paint_body);

static cudaTextureObject_t texture_of(const cudaResourceDesc *resource, bool has_levels)
{
    cudaTextureObject_t texture;
    cudaTextureDesc how;

    memset(&how, 0, sizeof(how));
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModePoint;
    how.readMode = cudaReadModeElementType;
    how.normalizedCoords = has_levels;
    how.mipmapFilterMode = cudaFilterModePoint;
    how.maxMipmapLevelClamp = has_levels ? LEVELS - 1 : 0;
    MUST(cudaCreateTextureObject(&texture, resource, &how, NULL));
    return texture;
}

static cudaResourceDesc resource_of(cudaArray_t array)
{
    cudaResourceDesc resource;

    memset(&resource, 0, sizeof(resource));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

static void look_at(enum shape shape, cudaArray_t array, unsigned width, unsigned height,
                    unsigned depth, unsigned seed)
{
    cudaResourceDesc resource = resource_of(array);
    cudaTextureObject_t texture = texture_of(&resource, false);

    look<<<8, 64>>>(shape, texture, 0, width, height, depth, seed, wrong);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaDestroyTextureObject(texture));
}

/* What the host thinks of it; stays until the next call. */
static unsigned *picture(size_t count, unsigned seed)
{
    static unsigned elements[1 << 16];

    for (size_t i = 0; i < count; i++)
        elements[i] = expected_at(i, seed);
    return elements;
}

static void copy_in(cudaArray_t array, unsigned width, unsigned height, unsigned seed)
{
    size_t row = width * sizeof(unsigned);

    MUST(cudaMemcpy2DToArray(array, 0, 0, picture((size_t)width * height, seed), row, row, height,
                             cudaMemcpyHostToDevice));
}

static void copy_in_slices(cudaArray_t array, unsigned width, unsigned height, unsigned depth,
                           unsigned seed)
{
    cudaMemcpy3DParms copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcPtr = make_cudaPitchedPtr(picture((size_t)width * height * depth, seed),
                                      width * sizeof(unsigned), width, height);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(width, height, depth);
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
}

static void say_gone(const char *site, size_t bytes)
{
    say("json live('%s') == (0, 0) and site('%s')['total'] == {'count': 1, 'bytes': %zu}", site,
        site, bytes);
}

SITE void read_line(const cudaChannelFormatDesc *format)
{
    cudaArray_t array;

    MUST(cudaMallocArray(&array, format, 1000, 0));
    copy_in(array, 1000, 1, 31);
    look_at(LINE, array, 1000, 1, 1, 31);
    MUST(cudaFreeArray(array));
    say_gone(__func__, 4000);
}

SITE void write_plane(const cudaChannelFormatDesc *format)
{
    static unsigned back[40][100];
    cudaSurfaceObject_t surface;
    cudaResourceDesc resource;
    cudaArray_t array;
    unsigned bad = 0;

    MUST(cudaMallocArray(&array, format, 100, 40, cudaArraySurfaceLoadStore));
    resource = resource_of(array);
    MUST(cudaCreateSurfaceObject(&surface, &resource));
    paint<<<8, 64>>>(surface, 100, 40, 32);
    MUST(cudaGetLastError());
    MUST(cudaMemcpy2DFromArray(back, 400, array, 0, 0, 400, 40, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < 4000; i++)
        bad += back[i / 100][i % 100] != expected_at(i, 32);
    say("surface: %u elements are wrong on the host", bad);
    look_at(PLANE, array, 100, 40, 1, 32);
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
    say_gone(__func__, 16000);
}

SITE void forget_layers(const cudaChannelFormatDesc *format)
{
    cudaArray_t array;

    MUST(cudaMalloc3DArray(&array, format, make_cudaExtent(32, 16, 5), cudaArrayLayered));
    copy_in_slices(array, 32, 16, 5, 33);
    look_at(LAYERS, array, 32, 16, 5, 33);
    say("json live('%s') == (1, %d) and site('%s')['kind'] == 'array'", __func__, 32 * 16 * 5 * 4,
        __func__);
}

SITE void read_cube(const cudaChannelFormatDesc *format)
{
    cudaArray_t array;

    MUST(cudaMalloc3DArray(&array, format, make_cudaExtent(20, 10, 6)));
    copy_in_slices(array, 20, 10, 6, 34);
    look_at(CUBE, array, 20, 10, 6, 34);
    MUST(cudaFreeArray(array));
    say_gone(__func__, 20 * 10 * 6 * 4);
}

SITE void read_levels(const cudaChannelFormatDesc *format)
{
    cudaMipmappedArray_t pyramid;
    cudaTextureObject_t texture;
    cudaResourceDesc resource;
    cudaArray_t array;

    MUST(cudaMallocMipmappedArray(&pyramid, format, make_cudaExtent(64, 32, 0), LEVELS));
    for (unsigned level = 0; level < LEVELS; level++) {
        MUST(cudaGetMipmappedArrayLevel(&array, pyramid, level));
        copy_in(array, 64 >> level, 32 >> level, 40 + level);
    }
    memset(&resource, 0, sizeof(resource));
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = pyramid;
    texture = texture_of(&resource, true);
    for (unsigned level = 0; level < LEVELS; level++)
        look<<<8, 64>>>(MIPMAP, texture, level, 64 >> level, 32 >> level, 1, 40 + level, wrong);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeMipmappedArray(pyramid));
    say_gone(__func__, (64 * 32 + 32 * 16 + 16 * 8) * 4);
}

int main(void)
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    unsigned found;

    MUST(cudaMalloc(&wrong, sizeof(*wrong)));
    start_counter(wrong, 0);
    read_line(&format);
    write_plane(&format);
    forget_layers(&format);
    read_cube(&format);
    read_levels(&format);
    MUST(cudaMemcpy(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost));
    MUST(cudaFree(wrong));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", found);
    say("expect allocs=6 frees=5 failed=0 leaked_blocks=1 leaked_bytes=%d", 32 * 16 * 5 * 4);
    say("no report INVALID FREES");
    return found != 0;
}
