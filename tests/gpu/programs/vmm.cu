/* SPDX-License-Identifier: MIT */
/* Virtual memory that kernels write: physical memory ends with its last handle and its last
 * mapping, and keeps its contents under another address meanwhile. */
#include "contents.h"

#include <cuda.h>
#include <string.h>

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static size_t unit;
static unsigned *wrong;

static void map(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
    MUST(cuMemMap(at, unit, 0, handle, 0));
    MUST(cuMemSetAccess(at, unit, &access_desc, 1));
}

SITE void move_and_release(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, unit, &prop, 0));
    map(at, handle);
    fill((void *)at, unit, 21, 0);
    MUST(cudaDeviceSynchronize());
    MUST(cuMemUnmap(at, unit));
    map(at + unit, handle);
    check((void *)(at + unit), unit, 21, wrong, 0);
    MUST(cudaDeviceSynchronize());
    MUST(cuMemUnmap(at + unit, unit));
    MUST(cuMemRelease(handle));
    say("json live('move_and_release') == (0, 0)");
}

SITE void release_then_unmap(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, unit, &prop, 0));
    map(at, handle);
    MUST(cuMemRelease(handle));
    fill((void *)at, unit, 22, 0);
    check((void *)at, unit, 22, wrong, 0);
    MUST(cudaDeviceSynchronize());
    MUST(cuMemUnmap(at, unit));
    say("json live('release_then_unmap') == (0, 0)");
}

SITE void release_and_stay_mapped(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, unit, &prop, 0));
    map(at, handle);
    MUST(cuMemRelease(handle));
    fill((void *)at, unit, 23, 0);
    check((void *)at, unit, 23, wrong, 0);
    say("json live('release_and_stay_mapped') == (1, %zu)", unit);
}

SITE void forget_handle(void)
{
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, 2 * unit, &prop, 0));
    say("json live('forget_handle') == (1, %zu)", 2 * unit);
}

/* A segment grows at its end, as allocators of frameworks let theirs: one kernel works across all
 * of it. */
SITE void grow_and_shrink(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handles[3], again;

    for (int i = 0; i < 3; i++) {
        MUST(cuMemCreate(&handles[i], unit, &prop, 0));
        map(at + i * unit, handles[i]);
        fill((void *)at, (i + 1) * unit, 24 + i, 0);
        check((void *)at, (i + 1) * unit, 24 + i, wrong, 0);
    }
    MUST(cuMemRetainAllocationHandle(&again, (void *)(at + unit)));
    MUST(cudaDeviceSynchronize());
    for (int i = 2; i >= 0; i--) {
        MUST(cuMemUnmap(at + i * unit, unit));
        MUST(cuMemRelease(handles[i]));
    }
    map(at, again); /* the middle one lives on */
    MUST(cuMemRelease(again));
    MUST(cudaDeviceSynchronize());
    MUST(cuMemUnmap(at, unit));
    say("json live('grow_and_shrink') == (0, 0)");
}

int main(void)
{
    CUdeviceptr at;
    unsigned found;

    MUST(cudaMalloc(&wrong, sizeof(*wrong)));
    start_counter(wrong, 0);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access_desc.location = prop.location;
    access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    MUST(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemAddressReserve(&at, 4 * unit, 0, 0, 0));
    move_and_release(at);
    release_then_unmap(at);
    release_and_stay_mapped(at + 2 * unit);
    forget_handle();
    MUST(cuMemAddressReserve(&at, 4 * unit, 0, 0, 0));
    grow_and_shrink(at);
    MUST(cuMemAddressFree(at, 4 * unit));
    MUST(cudaMemcpy(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost));
    MUST(cudaFree(wrong));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", found);
    say("expect leaked_bytes=%zu leaked_blocks=2 leak_sites=2", 3 * unit);
    say("expect allocs=8 frees=6 failed=0");
    say("json kind('vmm') == (2, %zu) and kind('reservation') == (1, %zu)", 3 * unit, 4 * unit);
    return found != 0;
}
