/* SPDX-License-Identifier: MIT */
/* See sim_graphics.h. There is no OpenGL: cusim_gl_buffer makes a buffer, which is host memory.
 *
 * A buffer is there for good; a resource says that it is registered, and its block, in the list of
 * all memory, that it is mapped. Guarded by sim.lock.
 */
#include "sim_graphics.h"

#include <sys/mman.h>

#define MAX_BUFFERS 256
#define PAGE        4096ul

static struct buffer {
    uintptr_t start;
    size_t bytes;
} buffers[MAX_BUFFERS]; /* by name - 1 */
static unsigned nbuffers;

struct resource {
    struct sim_object head;
    struct sim_context *ctx;
    const struct buffer *buffer;
    struct sim_block *block; /* NULL: not mapped */
};

unsigned cusim_gl_buffer(size_t bytes)
{
    unsigned name = 0;
    void *memory = mmap(NULL, sim_round(bytes + !bytes, PAGE), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    pthread_mutex_lock(&sim.lock);
    if (memory != MAP_FAILED && nbuffers < MAX_BUFFERS) {
        buffers[nbuffers].start = (uintptr_t)memory;
        buffers[nbuffers].bytes = bytes;
        name = ++nbuffers;
    }
    pthread_mutex_unlock(&sim.lock);
    return name;
}

static struct resource *find(CUgraphicsResource handle)
{
    return sim_object_is(handle, SIM_GRAPHICS) ? (struct resource *)handle : NULL;
}

CUresult sim_cuGraphicsGLRegisterBuffer(CUgraphicsResource *out, unsigned int buffer,
                                        unsigned int flags)
{
    struct resource *resource;

    if (!out || flags > CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD)
        return CUDA_ERROR_INVALID_VALUE;
    if (buffer == 0 || buffer > nbuffers)
        return CUDA_ERROR_INVALID_HANDLE;
    resource = sim_object_create(SIM_GRAPHICS);
    if (!resource)
        return CUDA_ERROR_OUT_OF_MEMORY;
    resource->ctx = sim_context_current();
    resource->buffer = &buffers[buffer - 1];
    *out = (CUgraphicsResource)resource;
    return CUDA_SUCCESS;
}

static void unmap(struct resource *resource)
{
    sim_block_count(resource->block, -1);
    sim_block_remove(resource->block);
    resource->block = NULL;
}

CUresult sim_cuGraphicsUnregisterResource(CUgraphicsResource handle)
{
    struct resource *resource = find(handle);

    if (!resource)
        return CUDA_ERROR_INVALID_HANDLE;
    if (resource->block)
        unmap(resource);
    sim_object_destroy(resource);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource handle, unsigned int flags)
{
    struct resource *resource = find(handle);

    if (!resource)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD)
        return CUDA_ERROR_INVALID_VALUE;
    return resource->block ? CUDA_ERROR_ALREADY_MAPPED : CUDA_SUCCESS;
}

/* All are what they have to be: different resources of this context, mapped or not. */
static CUresult check(unsigned int n, const CUgraphicsResource *handles, CUstream stream_handle,
                      bool is_mapped)
{
    struct sim_stream *stream;

    for (unsigned i = 0; i < n; i++) {
        const struct resource *resource = find(handles[i]);

        if (!resource || resource->ctx != sim_context_current())
            return CUDA_ERROR_INVALID_HANDLE;
        for (unsigned k = 0; k < i; k++)
            if (handles[k] == handles[i])
                return CUDA_ERROR_INVALID_HANDLE;
        if ((resource->block != NULL) != is_mapped)
            return is_mapped ? CUDA_ERROR_NOT_MAPPED : CUDA_ERROR_ALREADY_MAPPED;
    }
    return sim_stream_check(&stream, stream_handle);
}

CUresult sim_cuGraphicsMapResources(unsigned int n, CUgraphicsResource *handles, CUstream stream)
{
    CUresult status = check(n, handles, stream, false);

    for (unsigned i = 0; i < n && status == CUDA_SUCCESS; i++) {
        struct resource *resource = find(handles[i]);

        resource->block =
            sim_block_insert(SIM_MEM_GRAPHICS, resource->buffer->start, resource->buffer->bytes);
        if (!resource->block)
            return CUDA_ERROR_UNKNOWN;
        resource->block->device = resource->ctx->device;
        sim_block_count(resource->block, 1);
    }
    return status;
}

/* Work that was submitted before is done before the graphics library goes on. */
CUresult sim_cuGraphicsUnmapResources(unsigned int n, CUgraphicsResource *handles, CUstream stream)
{
    CUresult status = check(n, handles, stream, true);

    if (status != CUDA_SUCCESS)
        return status;
    sim_context_wait(sim_context_current());
    for (unsigned i = 0; i < n; i++)
        unmap(find(handles[i]));
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *out, size_t *bytes,
                                                   CUgraphicsResource handle)
{
    const struct resource *resource = find(handle);

    if (!resource)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!resource->block)
        return CUDA_ERROR_NOT_MAPPED;
    *out = resource->block->start;
    *bytes = resource->block->size;
    return CUDA_SUCCESS;
}

static void forget(void *object, void *ctx)
{
    struct resource *resource = object;

    if (resource->ctx != ctx)
        return;
    if (resource->block)
        unmap(resource);
    sim_object_destroy(resource);
}

void sim_graphics_forget(struct sim_context *ctx)
{
    sim_object_visit(SIM_GRAPHICS, forget, ctx);
}
