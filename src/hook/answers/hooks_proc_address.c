/* SPDX-License-Identifier: MIT */
/* Bodies of family RESOLVE except cuInit: cuGetProcAddress in both of its forms. */
#include "hook/bodies/entries.h" /* first */
#include <stddef.h>

#include "base/compiler.h"
#include "hook/answers/answer.h"

/* The 4-argument form; asked for as "cuGetProcAddress" up to version 11.8. */
CW_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
                                    cuuint64_t flags)
{
    CUresult rc = CW_REAL(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);

    if (rc == CUDA_SUCCESS && pfn != NULL && *pfn != NULL)
        *pfn = cw_answer_instead(*pfn, symbol, cudaVersion, flags);
    return rc;
}

CW_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                       cuuint64_t flags,
                                       CUdriverProcAddressQueryResult *symbolStatus)
{
    CUresult rc = CW_REAL(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);

    if (rc == CUDA_SUCCESS && pfn != NULL && *pfn != NULL)
        *pfn = cw_answer_instead(*pfn, symbol, cudaVersion, flags);
    return rc;
}
