/* SPDX-License-Identifier: MIT */
/* Takes one block with every allocating function of the runtime, each from a function of its own,
 * and keeps them all, or frees them all. */
#include "victim_rt.h"

#include <dlfcn.h>
#include <string.h>

/* cuda_gl_interop.h needs OpenGL's headers. */
cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t *out, unsigned int buffer,
                                         unsigned int flags);

static int keeps, is_static;

/* A static runtime is not seen: there the driver's function is the API. */
static void took(const char *function, const char *api, const char *kind, unsigned long long bytes)
{
    if (keeps)
        say("json live('%s') == (1, %llu)", function, bytes);
    else
        say("json live('%s') == (0, 0)", function);
    say("json site('%s')['kind'] == '%s'", function, kind);
    if (is_static)
        say("json site('%s')['api'][:3] in ('cuM', 'cuA', 'cuG')", function);
    else
        say("json site('%s')['api'] == '%s'", function, api);
}

static const struct cudaChannelFormatDesc texel = {
    .x = 32, .y = 32, .f = cudaChannelFormatKindFloat}; /* 8 bytes */
static const struct cudaExtent box = {.width = 100, .height = 20, .depth = 3};
static const struct cudaExtent cube = {.width = 16, .height = 8, .depth = 4};
static const struct cudaExtent square = {.width = 32, .height = 32};
static char pages[8192] __attribute__((aligned(4096)));
static cudaMemPool_t pool;
static size_t pitch;

/* A buffer of OpenGL without OpenGL: the simulated driver's alone. */
static unsigned (*make_buffer)(size_t bytes);

static cudaGraphicsResource_t *register_buffer(cudaGraphicsResource_t *out)
{
    MUST(cudaGraphicsGLRegisterBuffer(out, make_buffer(10000), 0));
    return out;
}

static size_t size_of(cudaGraphicsResource_t resource)
{
    void *start;
    size_t bytes;

    MUST(cudaGraphicsResourceGetMappedPointer(&start, &bytes, resource));
    return bytes;
}

/* What each takes by which function, in a variable `block` of its type. */
#define FUNCTIONS(ROW)                                                                             \
    ROW(plain, device, 4097, void *, cudaMalloc, (&block, 4097), cudaFree(block))                  \
    ROW(pitched, pitched, pitch * 30, void *, cudaMallocPitch, (&block, &pitch, 1000, 30),         \
        cudaFree(block))                                                                           \
    ROW(managed, managed, 70000, void *, cudaMallocManaged, (&block, 70000, cudaMemAttachGlobal),  \
        cudaFree(block))                                                                           \
    ROW(pinned, pinned, 6000, void *, cudaMallocHost, (&block, 6000), cudaFreeHost(block))         \
    ROW(portable, pinned, 7000, void *, cudaHostAlloc, (&block, 7000, cudaHostAllocPortable),      \
        cudaFreeHost(block))                                                                       \
    ROW(registered, registered, sizeof(pages), char *, cudaHostRegister,                           \
        (block = pages, sizeof(pages), cudaHostRegisterDefault), cudaHostUnregister(block))        \
    ROW(async, async, 9001, void *, cudaMallocAsync, (&block, 9001, NULL),                         \
        cudaFreeAsync(block, NULL))                                                                \
    ROW(3d, pitched, block.pitch * 20 * 3, struct cudaPitchedPtr, cudaMalloc3D, (&block, box),     \
        cudaFree(block.ptr))                                                                       \
    ROW(array, array, 64 * 10 * 8, cudaArray_t, cudaMallocArray,                                   \
        (&block, &texel, 64, 10, cudaArrayDefault), cudaFreeArray(block))                          \
    ROW(3d_array, array, 16 * 8 * 4 * 8, cudaArray_t, cudaMalloc3DArray,                           \
        (&block, &texel, cube, cudaArrayDefault), cudaFreeArray(block))                            \
    ROW(mipmap, mipmap, (32 * 32 + 16 * 16) * 8, cudaMipmappedArray_t, cudaMallocMipmappedArray,   \
        (&block, &texel, square, 2, 0), cudaFreeMipmappedArray(block))                             \
    ROW(from_pool, async, 9002, void *, cudaMallocFromPoolAsync, (&block, 9002, pool, NULL),       \
        cudaFreeAsync(block, NULL))

#define SIMULATED(ROW)                                                                             \
    ROW(graphics, graphics, size_of(block), cudaGraphicsResource_t, cudaGraphicsMapResources,      \
        (1, register_buffer(&block), NULL), cudaGraphicsUnmapResources(1, &block, NULL))

#define TAKE(name, kind, bytes, type, function, arguments, give)                                   \
    static NOINLINE void take_##name(void)                                                         \
    {                                                                                              \
        type block;                                                                                \
        MUST(function arguments);                                                                  \
        took(__func__, #function, #kind, bytes);                                                   \
        if (!keeps)                                                                                \
            MUST(give);                                                                            \
    }
FUNCTIONS(TAKE)
SIMULATED(TAKE)

#define CALL(name, ...) take_##name();

int main(int argc, char **argv)
{
    is_static = strstr(argv[0], "rts_") != NULL;
    keeps = argc > 1 && strcmp(argv[1], "keep") == 0;
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    FUNCTIONS(CALL)
    make_buffer = (unsigned (*)(size_t))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cusim_gl_buffer");
    if (make_buffer) {
        SIMULATED(CALL)
    }
    MUST(cudaDeviceSynchronize());
    if (keeps)
        say("expect leaked_blocks=12 leak_sites=12 allocs=12 frees=0 failed=0");
    else
        say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=12 frees=12 failed=0");
    return 0;
}
