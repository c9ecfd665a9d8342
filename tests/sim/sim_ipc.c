/* SPDX-License-Identifier: MIT */
/* Memory and events of other processes, and memory and semaphores of other APIs.
 *
 * A memory handle names the exporter's arena by process and descriptor; the importer maps the same
 * pages through /proc. Since blocks may be smaller than a page, a mapping may show neighbours too,
 * as real drivers do. An interprocess event is carried by a counter in shared memory.
 */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul

struct memory_key {
    char magic[8];
    int pid, fd, device;
    uint64_t offset, size, id;
};

static const char magic[8] = "cusimIPC";

CUresult sim_cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    struct sim_block *block = sim_block_live(address);
    struct memory_key key;

    if (!out || !block || block->kind != SIM_MEM_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    memset(&key, 0, sizeof key);
    memcpy(key.magic, magic, sizeof magic);
    key.pid = getpid();
    key.fd = block->arena->fd;
    key.device = block->device;
    key.offset = block->start - block->arena->base;
    key.size = block->size;
    key.id = block->id;
    memset(out, 0, sizeof *out);
    memcpy(out, &key, sizeof key);
    return CUDA_SUCCESS;
}

static void match(struct sim_block *block, void *argument)
{
    struct sim_block *wanted = argument;

    if (block->kind == SIM_MEM_IMPORT && !memcmp(block->key, wanted->key, sizeof block->key))
        wanted->next = block;
}

static struct sim_block *find_import(const CUipcMemHandle *handle)
{
    struct sim_block wanted = {.next = NULL};

    memcpy(wanted.key, handle, sizeof wanted.key);
    sim_block_visit(match, &wanted);
    return wanted.next;
}

static char *map_pages(int fd, uint64_t offset, size_t size)
{
    uint64_t skew = offset % PAGE;
    char *pages =
        mmap(NULL, size + skew, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - skew));

    return pages == MAP_FAILED ? NULL : pages + skew;
}

static char *map_foreign(const struct memory_key *key)
{
    char path[64], *pages;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", key->pid, key->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    pages = map_pages(fd, key->offset, key->size);
    close(fd);
    return pages;
}

CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    struct sim_block *block = find_import(&handle);
    struct memory_key key;
    char *pages;

    memcpy(&key, &handle, sizeof key);
    if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || memcmp(key.magic, magic, 8))
        return CUDA_ERROR_INVALID_VALUE;
    if (key.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!block) {
        pages = map_foreign(&key);
        if (!pages)
            return CUDA_ERROR_MAP_FAILED;
        block = sim_block_insert(SIM_MEM_IMPORT, (uintptr_t)pages, key.size);
        if (!block)
            return CUDA_ERROR_OUT_OF_MEMORY;
        block->device = key.device;
        memcpy(block->key, &handle, sizeof block->key);
        sim_block_count(block, 1);
    }
    block->refs++;
    *out = block->start;
    return CUDA_SUCCESS;
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct sim_block *block = sim_block_base(address);

    if (!block || block->kind != SIM_MEM_IMPORT)
        return sim_block_refuse(address, "cuIpcCloseMemHandle");
    if (--block->refs > 0)
        return CUDA_SUCCESS;
    munmap((void *)(block->start & ~(PAGE - 1)), block->span + block->start % PAGE);
    sim_block_count(block, -1);
    sim_block_remove(block);
    return CUDA_SUCCESS;
}

/* An event handle is accepted everywhere; in another process it stands for an event that is done.
 */
CUresult sim_cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle)
{
    struct sim_event *event = (struct sim_event *)handle;

    if (!out || !sim_object_is(event, SIM_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!(event->flags & CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    memcpy(out, magic, sizeof magic);
    return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    if (!out || memcmp(&handle, magic, sizeof magic))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_cuEventCreate(out, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
}

/* ---- external memory ---- */

struct external {
    struct sim_object head;
    int fd;
    size_t size;
};

CUresult sim_cuImportExternalMemory(CUexternalMemory *out,
                                    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
    struct external *external;

    if (!out || !desc || desc->size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (fcntl(desc->handle.fd, F_GETFD) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    external = sim_object_create(SIM_EXTERNAL);
    if (!external)
        return CUDA_ERROR_OUT_OF_MEMORY;
    external->fd = desc->handle.fd; /* ours from now on */
    external->size = desc->size;
    *out = (CUexternalMemory)external;
    return CUDA_SUCCESS;
}

static struct external *find_external(CUexternalMemory handle)
{
    return sim_object_is(handle, SIM_EXTERNAL) ? (struct external *)handle : NULL;
}

CUresult sim_cuDestroyExternalMemory(CUexternalMemory handle)
{
    struct external *external = find_external(handle);

    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    close(external->fd);
    sim_object_destroy(external);
    return CUDA_SUCCESS;
}

CUresult sim_cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory handle,
                                             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    struct external *external = find_external(handle);
    struct sim_block *block;
    char *pages;

    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !desc || !desc->size || desc->offset + desc->size > external->size)
        return CUDA_ERROR_INVALID_VALUE;
    pages = map_pages(external->fd, desc->offset, desc->size);
    if (!pages)
        return CUDA_ERROR_MAP_FAILED;
    block = sim_block_insert(SIM_MEM_EXTERNAL, (uintptr_t)pages, desc->size);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->device = sim_context_current()->device;
    sim_block_count(block, 1);
    *out = block->start;
    return CUDA_SUCCESS;
}

CUresult
sim_cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *out, CUexternalMemory handle,
                                            const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
    struct external *external = find_external(handle);
    struct sim_array *array;
    char *pages;

    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !desc || desc->offset >= external->size)
        return CUDA_ERROR_INVALID_VALUE;
    pages = map_pages(external->fd, desc->offset, external->size - desc->offset);
    array = pages ? sim_object_create(SIM_MIPMAP) : NULL;
    if (!array)
        return CUDA_ERROR_MAP_FAILED;
    array->desc = desc->arrayDesc;
    array->ctx = sim_context_current();
    array->base = (uintptr_t)pages; /* stays mapped: an external array is nobody's allocation */
    *out = (CUmipmappedArray)array;
    return CUDA_SUCCESS;
}

/* ---- external semaphores, which are always signalled ---- */

CUresult sim_cuImportExternalSemaphore(CUexternalSemaphore *out,
                                       const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    if (!out || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUexternalSemaphore)sim_object_create(SIM_SEMAPHORE);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuDestroyExternalSemaphore(CUexternalSemaphore handle)
{
    if (!sim_object_is(handle, SIM_SEMAPHORE))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_object_destroy(handle);
    return CUDA_SUCCESS;
}

static CUresult check_semaphores(const CUexternalSemaphore *semaphores, unsigned n, CUstream handle)
{
    struct sim_stream *stream;

    for (unsigned i = 0; i < n; i++)
        if (!sim_object_is(semaphores[i], SIM_SEMAPHORE))
            return CUDA_ERROR_INVALID_HANDLE;
    return sim_stream_check(&stream, handle);
}

CUresult sim_cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
                                             const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
                                             unsigned int n, CUstream stream)
{
    (void)params;
    return check_semaphores(semaphores, n, stream);
}

CUresult sim_cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
                                           const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
                                           unsigned int n, CUstream stream)
{
    (void)params;
    return check_semaphores(semaphores, n, stream);
}
