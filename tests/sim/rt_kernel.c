/* SPDX-License-Identifier: MIT */
/* Libraries that a program loads itself, and what can be asked of kernels and set about them.
 *
 * A kernel is named by its host stub, or by the handle that a library gave.
 */
#include "rt.h"

#include <string.h>

#define CALL(call) (rt_begin() == cudaSuccess ? rt_end(RT->call) : cudaPeekAtLastError())

/* ---- libraries ---- */

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code, enum cudaJitOption *options,
                                void **values, unsigned int n,
                                enum cudaLibraryOption *library_options, void **library_values,
                                unsigned int nlibrary)
{
    return CALL(cuLibraryLoadData((CUlibrary *)out, code, (CUjit_option *)options, values, n,
                                  (CUlibraryOption *)library_options, library_values, nlibrary));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *out, const char *path,
                                    enum cudaJitOption *options, void **values, unsigned int n,
                                    enum cudaLibraryOption *library_options, void **library_values,
                                    unsigned int nlibrary)
{
    return CALL(cuLibraryLoadFromFile((CUlibrary *)out, path, (CUjit_option *)options, values, n,
                                      (CUlibraryOption *)library_options, library_values,
                                      nlibrary));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    return CALL(cuLibraryUnload((CUlibrary)library));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
    CUkernel kernel = NULL;
    cudaError_t status;

    if (!out)
        return rt_note(cudaErrorInvalidValue);
    status = CALL(cuLibraryGetKernel(&kernel, (CUlibrary)library, name));
    if (status == cudaSuccess)
        *out = rt_adopt(kernel);
    return status;
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
    return CALL(cuLibraryGetKernelCount(count, (CUlibrary)library));
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int n,
                                        cudaLibrary_t library)
{
    cudaError_t status =
        CALL(cuLibraryEnumerateKernels((CUkernel *)kernels, n, (CUlibrary)library));
    unsigned int count = 0;

    if (status == cudaSuccess)
        status = cudaLibraryGetKernelCount(&count, library);
    for (unsigned int i = 0; status == cudaSuccess && i < n && i < count; i++)
        rt_adopt((CUkernel)kernels[i]);
    return status;
}

cudaError_t cudaLibraryGetGlobal(void **out, size_t *bytes, cudaLibrary_t library, const char *name)
{
    return CALL(cuLibraryGetGlobal((CUdeviceptr *)out, bytes, (CUlibrary)library, name));
}

cudaError_t cudaLibraryGetManaged(void **out, size_t *bytes, cudaLibrary_t library,
                                  const char *name)
{
    return CALL(cuLibraryGetManaged((CUdeviceptr *)out, bytes, (CUlibrary)library, name));
}

cudaError_t cudaLibraryGetUnifiedFunction(void **out, cudaLibrary_t library, const char *symbol)
{
    return CALL(cuLibraryGetUnifiedFunction(out, (CUlibrary)library, symbol));
}

/* ---- kernels ---- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *function)
{
    CUfunction found = rt_function(function);
    int shared = 0, constant = 0, local = 0;
    const struct {
        CUfunction_attribute attribute;
        int *to;
    } wanted[] = {
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &out->maxThreadsPerBlock},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &out->numRegs},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &out->ptxVersion},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &out->binaryVersion},
        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &out->cacheModeCA},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &out->maxDynamicSharedSizeBytes},
        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &out->preferredShmemCarveout},
    };
    cudaError_t status = cudaSuccess;

    if (!out)
        return rt_note(cudaErrorInvalidValue);
    if (!found)
        return rt_note(cudaErrorInvalidDeviceFunction);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == cudaSuccess; i++)
        status = CALL(cuFuncGetAttribute(wanted[i].to, wanted[i].attribute, found));
    out->sharedSizeBytes = (size_t)shared;
    out->constSizeBytes = (size_t)constant;
    out->localSizeBytes = (size_t)local;
    return status;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    CUfunction found = rt_function(function);

    if (!found)
        return rt_note(cudaErrorInvalidDeviceFunction);
    return CALL(cuFuncSetAttribute(found, (CUfunction_attribute)attribute, value));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                            int value, int device)
{
    CUfunction found = rt_function((const void *)kernel);

    if (!found)
        return rt_note(cudaErrorInvalidDeviceFunction);
    return CALL(
        cuKernelSetAttribute((CUfunction_attribute)attribute, value, (CUkernel)found, device));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *function, int size,
                                                                   size_t dynamic,
                                                                   unsigned int flags)
{
    CUfunction found = rt_function(function);

    if (!found)
        return rt_note(cudaErrorInvalidDeviceFunction);
    return CALL(
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, found, size, dynamic, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int size, size_t dynamic)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, size, dynamic,
                                                                  cudaOccupancyDefault);
}

/* ---- the profiler, which nobody has attached ---- */

cudaError_t cudaProfilerStart(void)
{
    return CALL(cuProfilerStart());
}

cudaError_t cudaProfilerStop(void)
{
    return CALL(cuProfilerStop());
}
