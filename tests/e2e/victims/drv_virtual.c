/* SPDX-License-Identifier: MIT */
/* Virtual memory: physical memory ends with its last handle and its last mapping, in any order. */
#include "victim.h"

unsigned long long cusim_calls(const char *symbol) __attribute__((weak));

static size_t unit;
static unsigned bound; /* to a multicast object, and released */

static NOINLINE CUmemGenericAllocationHandle create_mapped(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, unit, &on_device, 0));
    MUST(cuMemMap(at, unit, 0, handle, 0));
    return handle;
}

static NOINLINE void unmap_then_release(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle = create_mapped(at);

    MUST(cuMemUnmap(at, unit));
    MUST(cuMemRelease(handle));
    say("json live('%s') == (0, 0)", __func__);
}

static NOINLINE void release_then_unmap(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle = create_mapped(at);

    MUST(cuMemRelease(handle));
    MUST(cuMemUnmap(at, unit));
    say("json live('%s') == (0, 0)", __func__);
}

static NOINLINE void retain_and_forget(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle = create_mapped(at), again;

    MUST(cuMemRetainAllocationHandle(&again, (void *)at));
    MUST(cuMemRelease(handle));
    MUST(cuMemUnmap(at, unit)); /* the retained reference still holds it */
    say("json live('%s') == (1, %zu)", __func__, unit);
}

static NOINLINE void release_and_stay_mapped(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle = create_mapped(at);

    MUST(cuMemRelease(handle)); /* the usual idiom: the mapping is the owner */
    say("json live('%s') == (1, %zu)", __func__, unit);
}

static NOINLINE void map_twice(CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle = create_mapped(at);

    MUST(cuMemMap(at + unit, unit, 0, handle, 0));
    MUST(cuMemRelease(handle));
    MUST(cuMemUnmap(at, 2 * unit)); /* both in one call */
    say("json live('%s') == (0, 0)", __func__);
}

static NOINLINE CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr at;

    MUST(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    return at;
}

/* Its size is known before anything is mapped; it holds no memory of its own, and what is bound to
 * it and unbound again is counted once, where it was made. */
static NOINLINE void make_multicast(void)
{
#if CUDA_VERSION >= 12010
    CUmulticastObjectProp prop = {.numDevices = 1, .size = 4 * unit};
    CUmemGenericAllocationHandle object, memory;

    if (cuMulticastCreate(&object, &prop) != CUDA_SUCCESS)
        return; /* a GPU without NVLink's switch */
    MUST(cuMulticastAddDevice(object, 0));
    if (cusim_calls) { /* a real one waits until all of its devices are there */
        MUST(cuMemCreate(&memory, unit, &on_device, 0));
        MUST(cuMulticastBindMem(object, 0, memory, 0, unit, 0));
        MUST(cuMulticastUnbind(object, 0, 0, unit));
        MUST(cuMulticastBindMem(object, unit, memory, 0, unit, 0));
        MUST(cuMemRelease(memory));
        bound = 1;
    }
    say("json kind('multicast') == (1, %zu)", 4 * unit);
#endif
}

int main(void)
{
    CUdeviceptr at;

    use_device(0);
    MUST(cuMemGetAllocationGranularity(&unit, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    at = reserve(8 * unit);
    unmap_then_release(at);
    release_then_unmap(at + unit);
    retain_and_forget(at + 2 * unit);
    release_and_stay_mapped(at + 3 * unit);
    map_twice(at + 4 * unit);
    MUST(cuMemAddressFree(reserve(unit), unit));
    make_multicast();
    say("expect leaked_bytes=%zu leaked_blocks=2 leak_sites=2 allocs=%u frees=%u failed=0",
        2 * unit, 5 + bound, 3 + bound);
    say("json kind('vmm') == (2, %zu)", 2 * unit);
    say("json kind('reservation') == (1, %zu)", 8 * unit); /* no memory: in no sum */
    say("json all(s.get('class') == 'handle' for s in sites('reserve') if s['live']['count'])");
    return 0;
}
