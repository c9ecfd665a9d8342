/* SPDX-License-Identifier: MIT */
/* Gets driver functions from the runtime and leaks through them. */
#include <cuda.h>

#include "victim_rt.h"

typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*async_fn)(CUdeviceptr *, size_t, CUstream);

static void *entry_point(const char *name, unsigned version, unsigned long long flags)
{
    enum cudaDriverEntryPointQueryResult status;
    void *found = NULL;

#if CUDART_VERSION >= 12050
    if (version != 0)
        MUST(cudaGetDriverEntryPointByVersion(name, &found, version, flags, &status));
#endif
#if CUDART_VERSION >= 12000 && CUDART_VERSION < 13000
    if (found == NULL)
        MUST(cudaGetDriverEntryPoint(name, &found, flags, &status));
#elif CUDART_VERSION < 12000
    MUST(cudaGetDriverEntryPoint(name, &found, flags));
#endif
    (void)version;
    (void)status;
    return found;
}

static NOINLINE void leak_plain(void)
{
    CUdeviceptr block;

    if (((alloc_fn)entry_point("cuMemAlloc", 3020, cudaEnableDefault))(&block, 1501) != 0)
        exit(98);
}

static NOINLINE void leak_in_thread_stream(void)
{
    async_fn alloc =
        (async_fn)entry_point("cuMemAllocAsync", 11020, cudaEnablePerThreadDefaultStream);
    CUdeviceptr block;

    if (alloc == (async_fn)entry_point("cuMemAllocAsync", 11020, cudaEnableLegacyStream))
        exit(97);
    if (alloc(&block, 1502, NULL) != 0)
        exit(98);
}

int main(void)
{
    MUST(cudaSetDevice(0));
    MUST(cudaFree(NULL));
    leak_plain();
    leak_in_thread_stream();
    say("expect leaked_bytes=3003 leaked_blocks=2 leak_sites=2 allocs=2");
    say("json site('leak_plain')['api'] == 'cuMemAlloc'");
    say("json site('leak_in_thread_stream')['api'] == 'cuMemAllocAsync'");
    return 0;
}
