/* SPDX-License-Identifier: MIT */
/* Virtual memory management: reserved addresses, physical memory, and mappings of the one in the
 * other.
 *
 * Physical memory is a memfd, so that mapping it twice, or in two processes, shows the same bytes.
 * It is charged to the device until its references and its mappings are both gone. A mapping is a
 * block of kind SIM_MEM_MAPPING; reservations are a list of their own. Guarded by sim.lock.
 */
#include "sim_handles.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct reservation {
    struct reservation *next;
    uintptr_t start;
    size_t size;
};

static struct reservation *reservations;

static struct reservation **find_reservation(uintptr_t address, size_t size)
{
    struct reservation **at = &reservations;

    while (*at && !(address >= (*at)->start && address + size <= (*at)->start + (*at)->size))
        at = &(*at)->next;
    return at;
}

size_t sim_vmm_reservations(void)
{
    size_t count = 0;

    for (const struct reservation *at = reservations; at; at = at->next)
        count++;
    return count;
}

CUresult sim_cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
                                           CUmemAllocationGranularity_flags option)
{
    (void)option;
    if (!out || !prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim.config.granularity;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr hint,
                                 unsigned long long flags)
{
    size_t unit = sim.config.granularity > alignment ? sim.config.granularity : alignment;
    struct reservation *reservation;
    char *memory;
    uintptr_t start;

    if (!sim.config.has_vmm)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !size || flags || size % 4096 || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    memory = mmap((void *)hint, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    start = sim_round((uintptr_t)memory, unit);
    if (start > (uintptr_t)memory)
        munmap(memory, start - (uintptr_t)memory);
    munmap((void *)(start + size), (uintptr_t)memory + unit - start);
    reservation = calloc(1, sizeof *reservation);
    if (!reservation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    reservation->start = start;
    reservation->size = size;
    reservation->next = reservations;
    reservations = reservation;
    *out = start;
    return CUDA_SUCCESS;
}

static bool has_mapping(uintptr_t start, size_t size)
{
    for (uintptr_t at = start; at < start + size; at += sim.config.granularity)
        if (sim_block_live(at))
            return true;
    return false;
}

CUresult sim_cuMemAddressFree(CUdeviceptr address, size_t size)
{
    struct reservation **at = find_reservation(address, size), *reservation = *at;

    if (!reservation || reservation->start != address || reservation->size != size) {
        sim_misuse("unknown_free", "cuMemAddressFree of what was not reserved so");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (has_mapping(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    *at = reservation->next;
    munmap((void *)address, size);
    free(reservation);
    return CUDA_SUCCESS;
}

/* ---- physical memory ---- */

static struct sim_handle *find_handle(CUmemGenericAllocationHandle handle)
{
    void *object = (void *)(uintptr_t)handle;

    return sim_object_is(object, SIM_HANDLE) ? object : NULL;
}

static void bury_if_unused(struct sim_handle *handle)
{
    if (handle->refs > 0 || handle->maps > 0)
        return;
    if (handle->charged) {
        sim_device_discharge(handle->device, handle->charged);
        sim_live_bytes_add(SIM_MEM_PHYSICAL, handle->device, -(int64_t)handle->size, -1);
    }
    close(handle->fd);
    sim_object_destroy(handle);
}

/* In the host's memory, which nobody counts. */
static bool is_of_host(const CUmemAllocationProp *prop)
{
    return prop->location.type == CU_MEM_LOCATION_TYPE_HOST ||
           prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static struct sim_handle *make_handle(int fd, size_t size, const CUmemAllocationProp *prop)
{
    struct sim_handle *handle = fd >= 0 ? sim_object_create(SIM_HANDLE) : NULL;

    if (!handle)
        return NULL;
    handle->fd = fd;
    handle->size = size;
    handle->refs = 1;
    if (prop)
        handle->prop = *prop;
    handle->device = is_of_host(&handle->prop) ? 0 : handle->prop.location.id;
    return handle;
}

static CUresult check_prop(const CUmemAllocationProp *prop, size_t size)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || !size ||
        size % sim.config.granularity)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (is_of_host(prop))
        return CUDA_SUCCESS;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct sim_handle *handle;
    CUresult status = out && !flags ? check_prop(prop, size) : CUDA_ERROR_INVALID_VALUE;
    size_t charge;

    if (status != CUDA_SUCCESS)
        return status;
    charge = is_of_host(prop) ? 0 : size;
    if (charge && !sim_device_charge(prop->location.id, charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    handle = make_handle(sim_memory_file(size), size, prop);
    if (!handle) {
        if (charge)
            sim_device_discharge(prop->location.id, charge);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    handle->charged = charge;
    if (charge)
        sim_live_bytes_add(SIM_MEM_PHYSICAL, handle->device, (int64_t)size, 1);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)handle;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle id)
{
    struct sim_handle *handle = find_handle(id);

    if (!handle || handle->refs == 0) {
        sim_misuse("double_free", "cuMemRelease of a handle without references");
        return CUDA_ERROR_INVALID_VALUE;
    }
    handle->refs--;
    bury_if_unused(handle);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    struct sim_block *block = sim_block_live((uintptr_t)address);

    if (!out || !block || block->kind != SIM_MEM_MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    block->handle->refs++;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)block->handle;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
                                                    CUmemGenericAllocationHandle id)
{
    struct sim_handle *handle = find_handle(id);

    if (!out || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    *out = handle->prop;
    return CUDA_SUCCESS;
}

/* ---- multicast: an object with a size, which takes no memory and reaches nobody ---- */

CUresult sim_cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
    CUmemAllocationProp shown = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    struct sim_handle *handle;

    if (!out || !prop || !prop->size || prop->size % sim.config.granularity || !prop->numDevices)
        return CUDA_ERROR_INVALID_VALUE;
    handle = make_handle(sim_memory_file(prop->size), prop->size, &shown);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)handle;
    return CUDA_SUCCESS;
}

/* Memory has a type. */
static bool is_multicast(CUmemGenericAllocationHandle id)
{
    return find_handle(id) && find_handle(id)->prop.type == CU_MEM_ALLOCATION_TYPE_INVALID;
}

CUresult sim_cuMulticastAddDevice(CUmemGenericAllocationHandle id, CUdevice device)
{
    if (!is_multicast(id))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuMulticastBindMem(CUmemGenericAllocationHandle id, size_t offset,
                                CUmemGenericAllocationHandle memory, size_t memory_offset,
                                size_t size, unsigned long long flags)
{
    struct sim_handle *bound = find_handle(memory);

    if (!is_multicast(id) || !bound || is_multicast(memory) || flags || !size ||
        offset + size > find_handle(id)->size || memory_offset + size > bound->size)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sim_cuMulticastUnbind(CUmemGenericAllocationHandle id, CUdevice device, size_t offset,
                               size_t size)
{
    if (!is_multicast(id) || !size || offset + size > find_handle(id)->size)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuMulticastGetGranularity(size_t *out, const CUmulticastObjectProp *prop,
                                       CUmulticastGranularity_flags option)
{
    (void)option;
    if (!out || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim.config.granularity;
    return CUDA_SUCCESS;
}

/* ---- mappings ---- */

CUresult sim_cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                      CUmemGenericAllocationHandle id, unsigned long long flags)
{
    struct sim_handle *handle = find_handle(id);
    struct sim_block *block;

    if (!handle || handle->refs == 0 || flags || !size || offset + size > handle->size)
        return CUDA_ERROR_INVALID_VALUE;
    if (address % sim.config.granularity || size % sim.config.granularity ||
        !*find_reservation(address, size) || has_mapping(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (mmap((void *)address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, handle->fd,
             (off_t)offset) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block = sim_block_insert(SIM_MEM_MAPPING, address, size);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    block->handle = handle;
    block->offset = offset;
    block->device = handle->device;
    sim_block_count(block, 1);
    handle->maps++;
    return CUDA_SUCCESS;
}

static bool is_whole(uintptr_t address, size_t size)
{
    for (uintptr_t at = address; at < address + size;) {
        struct sim_block *block = sim_block_base(at);

        if (!block || block->kind != SIM_MEM_MAPPING || at + block->span > address + size)
            return false;
        at += block->span;
    }
    return size > 0;
}

static void unmap(struct sim_block *block)
{
    struct sim_handle *handle = block->handle;

    mmap((void *)block->start, block->span, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    sim_block_count(block, -1);
    sim_block_remove(block);
    handle->maps--;
    bury_if_unused(handle);
}

CUresult sim_cuMemUnmap(CUdeviceptr address, size_t size)
{
    if (!is_whole(address, size)) {
        sim_misuse("unknown_free", "cuMemUnmap of what are not whole mappings");
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uintptr_t at = address; at < address + size;) {
        struct sim_block *block = sim_block_base(at);

        at += block->span;
        unmap(block);
    }
    return CUDA_SUCCESS;
}

static void set_access(struct sim_block *block, const CUmemAccessDesc *desc, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bit = 1ull << (desc[i].location.id & 63);

        if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            block->access &= ~bit;
        else
            block->access |= bit;
    }
}

CUresult sim_cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc,
                            size_t count)
{
    if (!desc || !count || !is_whole(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            !sim_device(desc[i].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
    for (uintptr_t at = address; at < address + size;) {
        struct sim_block *block = sim_block_base(at);

        at += block->span;
        set_access(block, desc, count);
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAccess(unsigned long long *out, const CUmemLocation *location,
                            CUdeviceptr address)
{
    struct sim_block *block = sim_block_live(address);

    if (!out || !location || !block || block->kind != SIM_MEM_MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    *out = block->access & 1ull << (location->id & 63) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- other processes ---- */

CUresult sim_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle id,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    struct sim_handle *handle = find_handle(id);

    if (!out || !handle || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(handle->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)out = fcntl(handle->fd, F_DUPFD_CLOEXEC, 3);
    return *(int *)out < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

/* The memory stays charged to whoever created it. */
CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
                                            CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    };
    struct sim_handle *handle;
    struct stat about;
    int fd;

    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    fd = fcntl((int)(intptr_t)os_handle, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || fstat(fd, &about) != 0 || about.st_size == 0) {
        if (fd >= 0)
            close(fd);
        return CUDA_ERROR_INVALID_VALUE;
    }
    handle = make_handle(fd, (size_t)about.st_size, &prop);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)handle;
    return CUDA_SUCCESS;
}
