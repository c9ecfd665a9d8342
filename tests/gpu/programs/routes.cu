/* SPDX-License-Identifier: MIT */
/* Every route that a program has to the driver's cuMemAlloc: a linked symbol, dlsym, dlvsym's
 * sister cuGetProcAddress, and the runtime's entry points. One forgotten block per route. */
#include "gpu.h"

#include <cuda.h>
#include <dlfcn.h>

typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*alloc_async_fn)(CUdeviceptr *, size_t, CUstream);

static int routes;
static size_t sum;

static void took(const char *site, size_t bytes)
{
    routes++;
    sum += bytes;
    say("json live('%s') == (1, %zu)", site, bytes);
}

static void *found(void *function, const char *how)
{
    if (function == NULL) {
        fprintf(stderr, "%s finds nothing\n", how);
        exit(99);
    }
    return function;
}

static void *driver(void)
{
    return found(dlopen("libcuda.so.1", RTLD_NOW), "dlopen");
}

SITE void by_link(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 1001));
    took(__func__, 1001);
}

SITE void by_dlsym(void)
{
    alloc_fn alloc = (alloc_fn)found(dlsym(driver(), "cuMemAlloc_v2"), "dlsym");
    CUdeviceptr block;

    MUST(alloc(&block, 1002));
    took(__func__, 1002);
}

SITE void by_default_scope(void)
{
    alloc_fn alloc = (alloc_fn)found(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), "RTLD_DEFAULT");
    CUdeviceptr block;

    MUST(alloc(&block, 1003));
    took(__func__, 1003);
}

SITE void by_proc_address(void)
{
    void *function = NULL;
    CUdeviceptr block;

#if CUDA_VERSION >= 12000
    MUST(cuGetProcAddress("cuMemAlloc", &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
#else
    MUST(cuGetProcAddress("cuMemAlloc", &function, 11030, CU_GET_PROC_ADDRESS_DEFAULT));
#endif
    MUST(((alloc_fn)found(function, "cuGetProcAddress"))(&block, 1004));
    took(__func__, 1004);
}

SITE void by_dlsym_and_proc_address(void)
{
    typedef CUresult (*get_fn)(const char *, void **, int, cuuint64_t);
    get_fn get = (get_fn)found(dlsym(driver(), "cuGetProcAddress"), "dlsym");
    void *function = NULL;
    CUdeviceptr block;

    MUST(get("cuMemAllocAsync", &function, 11030, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
    MUST(((alloc_async_fn)found(function, "the first cuGetProcAddress"))(&block, 1005, NULL));
    took(__func__, 1005);
}

SITE void by_entry_point(void)
{
    void *function = NULL;
    CUdeviceptr block;

#if CUDART_VERSION >= 12050
    cudaDriverEntryPointQueryResult status;
    MUST(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault,
                                          &status));
#elif CUDART_VERSION >= 12000
    MUST(cudaGetDriverEntryPoint("cuMemAlloc", &function, cudaEnableDefault, NULL));
#else
    MUST(cudaGetDriverEntryPoint("cuMemAlloc", &function, cudaEnableDefault));
#endif
    MUST(((alloc_fn)found(function, "cudaGetDriverEntryPoint"))(&block, 1006));
    took(__func__, 1006);
}

SITE void by_runtime(void)
{
    void *block;

    MUST(cudaMalloc(&block, 1007));
    took(__func__, 1007);
    say_api(__func__, "cudaMalloc", "cuMemAlloc");
}

/* Pointers must not depend on the route, and a free must find what any of them took. */
SITE void one_for_all(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 5000));
    MUST(cudaFree((void *)block));
    say("json live('one_for_all') == (0, 0)");
}

int main(void)
{
    MUST(cudaFree(0)); /* the primary context becomes current */
    by_link();
    by_dlsym();
    by_default_scope();
    by_proc_address();
    by_dlsym_and_proc_address();
    by_entry_point();
    by_runtime();
    one_for_all();
    MUST(cudaDeviceSynchronize());
    say("expect leaked_bytes=%zu leaked_blocks=%d leak_sites=%d", sum, routes, routes);
    say("expect allocs=%d frees=1 failed=0", routes + 1);
    return 0;
}
