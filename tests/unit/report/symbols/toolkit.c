/* SPDX-License-Identifier: MIT */
/* Which functions are CUDA's own. */
#include "report/symbols/toolkit.h"

#include <criterion/criterion.h>

#include <stddef.h>

#include "base/compiler.h"

#define HEADER "/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda_runtime.h"

static void expect(int is_of_cuda, const char *const *name, size_t count, const char *file)
{
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(cw_toolkit_has_function(name[i], file), is_of_cuda, "%s", name[i]);
}

Test(toolkit, functions_of_the_runtime_by_any_form_of_their_names)
{
    static const char *const names[] = {
        "cudaMalloc",
        "cudaMallocAsync_ptsz",
        "cudaGetDeviceProperties_v2",
        "cudaGraphicsGLRegisterBuffer",
        "cudaDeviceSynchronize",
        "_Z10cudaMallocIfE9cudaErrorPPT_m",
        "_ZL10cudaMallocIfE9cudaErrorPPT_m",
        "cudaError cudaMalloc<float>(float**, unsigned long)",
    };

    expect(1, names, CW_ARRAY_LEN(names), NULL);
}

Test(toolkit, the_inside_of_a_static_runtime_and_what_nvcc_generates)
{
    static const char *const names[] = {
        "libcudart_static_8b73e19b9b6fb2b44091792b23d85fe1faddb831",
        "__cudart123",
        "_ZN6cudart13cudaApiMallocEPPvm",
        "cudart::cudaApiMalloc(void**, unsigned long)",
        "__cudaGetKernel",
        "_ZL25__cudaLaunchKernel_helperP9CUkern_st4dim3S1_PPvmP11CUstream_st",
        "_Z24__device_stub__Z4fillPfiPfi",
        "__device_stub__Z4fillPfi(float*, int)",
        "_ZL32__nv_init_managed_rt_with_modulePPv",
    };

    expect(1, names, CW_ARRAY_LEN(names), NULL);
}

Test(toolkit, namesakes_are_the_programs)
{
    static const char *const names[] = {
        "cudaMalloc_wrapper",
        "cudaMallocOrDie",
        "cudaMallo",
        "cudaAllocMapped(void**, unsigned long)",
        "cudaMalloc_very",
        "cudaFreeAll",
        "mine::cudaMalloc(void**, unsigned long)",
        "_ZN4mine10cudaMallocEPPvm",
        "Pool::cudaFree()",
        "cudaMalloc::operator()()",
        "cudaPool::grow()",
        "cuda::memory::allocate()",
        "my_cudaMalloc",
        "main",
        "",
    };

    expect(0, names, CW_ARRAY_LEN(names), NULL);
    expect(0, names, CW_ARRAY_LEN(names), "src/pool.h");
    cr_expect_not(cw_toolkit_has_function(NULL, HEADER));
}

Test(toolkit, a_new_function_of_the_toolkits_headers)
{
    cr_expect(cw_toolkit_has_function("cudaError cudaMallocNear<float>(float**)", HEADER));
    cr_expect(cw_toolkit_has_function("cudaMallocNear", "cuda_runtime_api.h"));
    cr_expect_not(cw_toolkit_has_function("cudaMallocNear", NULL));
    cr_expect_not(cw_toolkit_has_function("cudaMallocNear", "src/my_cuda_runtime.h"));
    cr_expect_not(cw_toolkit_has_function("grow", "src/cuda_runtime.h"));
}
