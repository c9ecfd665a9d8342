/* SPDX-License-Identifier: MIT */
/* What a host of another language loads: host_work() takes and frees memory, and keeps a block. As
 * it stands for Python and Go, through JNI for Java, and as an addon of Node.js. JNI and Node-API
 * are declared here, as far as they are used: their headers come with packages of their own. */
#include "victim.h"

#include <stddef.h>
#include <stdint.h>

static NOINLINE int keep_for_host(void)
{
    CUdeviceptr block;

    return cuMemAlloc(&block, 1000000);
}

int host_work(void);
int host_work(void)
{
    CUdeviceptr block;
    int failed = 0;

    use_device(0);
    for (int i = 0; i < 100; i++)
        failed += cuMemAlloc(&block, 5000) != CUDA_SUCCESS || cuMemFree(block) != CUDA_SUCCESS;
    return failed + keep_for_host();
}

/* docs.oracle.com, JNI: "static native int work()" of the class Host */
int Java_Host_work(void *env, void *class);
int Java_Host_work(void *env, void *class)
{
    (void)env;
    (void)class;
    return host_work();
}

/* nodejs.org/api/n-api.html; only Node.js has these. */
__attribute__((weak)) int napi_create_int32(void *env, int32_t number, void **out);
__attribute__((weak)) int napi_create_function(void *env, const char *name, size_t length,
                                               void *(*function)(void *, void *), void *data,
                                               void **out);

static void *work_for_node(void *env, void *info)
{
    void *number = NULL;

    (void)info;
    napi_create_int32(env, host_work(), &number);
    return number;
}

void *napi_register_module_v1(void *env, void *exports);
void *napi_register_module_v1(void *env, void *exports)
{
    void *function = NULL;

    (void)exports;
    napi_create_function(env, "work", SIZE_MAX, work_for_node, NULL, &function);
    return function;
}
