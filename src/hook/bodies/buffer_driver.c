/* SPDX-License-Identifier: MIT */
/*
 * api/buffer_ops.h over the driver. What takes memory, gives it back or tells of it calls our own
 * bodies, as the program would; what only the driver need know goes to it. No state.
 */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/buffer_driver.h"

#include "hook/driver/cuda_ops.h"
#include "hook/resolve/hook_table.h"

_Static_assert(CW_BUFFER_NO_MEMORY == CUDA_ERROR_OUT_OF_MEMORY &&
                   CW_BUFFER_NO_CONTEXT == CUDA_ERROR_INVALID_CONTEXT &&
                   CW_BUFFER_CONTEXT_ENDED == CUDA_ERROR_CONTEXT_IS_DESTROYED,
               "codes of cuda.h");

/* ---- the place ---- */

static CUmemAllocationProp memory_of(uint8_t device)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};

    return prop;
}

/* 0: it cannot map, or a driver before 10.2. */
static uint64_t granule_of(uint8_t device)
{
    CUmemAllocationProp prop = memory_of(device);
    size_t granule = 0;
    int can = 0;

    if (CW_REAL(cuDeviceGetAttribute)(&can,
                                      CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED,
                                      (CUdevice)device) != CUDA_SUCCESS ||
        can == 0 ||
        CW_REAL(cuMemGetAllocationGranularity)(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
            CUDA_SUCCESS)
        return 0;
    return granule;
}

static int place(struct cw_buffer_place *out)
{
    CUcontext context = NULL;
    CUdevice device = 0;
    unsigned long long id = 0;
    size_t total = 0;
    CUresult rc = CW_REAL(cuCtxGetCurrent)(&context);

    if (rc != CUDA_SUCCESS || context == NULL)
        return rc != CUDA_SUCCESS ? (int)rc : CW_BUFFER_NO_CONTEXT;
    rc = CW_REAL(cuCtxGetDevice)(&device);
    if (rc == CUDA_SUCCESS)
        rc = CW_REAL(cuDeviceTotalMem_v2)(&total, device);
    if (rc != CUDA_SUCCESS)
        return (int)rc;
    if (cw_real_has(CW_HOOK_cuCtxGetId) && CW_REAL(cuCtxGetId)(context, &id) != CUDA_SUCCESS)
        id = 0;
    *out = (struct cw_buffer_place){.context = {(uint64_t)(uintptr_t)context, id},
                                    .device = (uint8_t)device,
                                    .total = total,
                                    .granule = granule_of((uint8_t)device)};
    return 0;
}

static int enter(struct cw_context_name context, int *out_pushed)
{
    return (int)cw_cuda_enter_context(context, out_pushed);
}

/* ---- memory that is mapped ---- */

static int reserve(uint64_t bytes, uint64_t *out_address)
{
    CUdeviceptr address = 0;
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemAddressReserve(&address, bytes, 0, 0, 0));
    if (rc == CUDA_SUCCESS)
        *out_address = address;
    return (int)rc;
}

static int unreserve(uint64_t address, uint64_t bytes)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemAddressFree(address, bytes));
    return (int)rc;
}

static int unmap(uint64_t address, uint64_t bytes)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemUnmap(address, bytes));
    return (int)rc;
}

/* The mapping keeps the memory; its handle is not needed any more (cuda.h, cuMemRelease). */
static CUresult map_one(uint8_t device, uint64_t address, uint64_t bytes)
{
    CUmemAllocationProp prop = memory_of(device);
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUresult rc = cuMemCreate(&handle, bytes, &prop, 0);

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = cuMemMap(address, bytes, 0, handle, 0);
    cuMemRelease(handle);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = cuMemSetAccess(address, bytes, &access, 1);
    if (rc != CUDA_SUCCESS)
        cuMemUnmap(address, bytes);
    return rc;
}

static int map(uint8_t device, uint64_t address, uint64_t bytes)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, map_one(device, address, bytes));
    return (int)rc;
}

/* ---- blocks ---- */

static int alloc(uint64_t bytes, uint64_t *out_address)
{
    CUdeviceptr address = 0;
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemAlloc_v2(&address, bytes));
    if (rc == CUDA_SUCCESS)
        *out_address = address;
    return (int)rc;
}

static int free_block(uint64_t address)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemFree_v2(address));
    return (int)rc;
}

/* Not as the program: what it means is told by cw_regrowth_replaced. */
static int copy(uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    return (int)CW_REAL(cuMemcpyDtoDAsync_v2)(to, from, bytes, (CUstream)stream);
}

static int wait_stream(void *stream)
{
    return (int)CW_REAL(cuStreamSynchronize)((CUstream)stream);
}

/* As the program, so that what was freed before may serve again. */
static int wait_context(void)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuCtxSynchronize());
    return (int)rc;
}

static int room(uint64_t *out_bytes)
{
    size_t free_bytes = 0, total = 0;
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemGetInfo_v2(&free_bytes, &total));
    if (rc == CUDA_SUCCESS)
        *out_bytes = free_bytes;
    return (int)rc;
}

const struct cw_buffer_ops cw_buffer_driver = {
    .place = place,
    .enter = enter,
    .leave = cw_cuda_leave_context,
    .reserve = reserve,
    .unreserve = unreserve,
    .map = map,
    .unmap = unmap,
    .alloc = alloc,
    .free = free_block,
    .copy = copy,
    .wait_stream = wait_stream,
    .wait_context = wait_context,
    .room = room,
};
