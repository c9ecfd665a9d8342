/* SPDX-License-Identifier: MIT */
/*
 * cudaGetDriverEntryPoint and its variants: the runtime's way to driver functions.
 *
 * A runtime that resolves through us gives our pointers already; one that escaped (RTLD_DEEPBIND)
 * gives the driver's own. Declared here and not by cuda_runtime_api.h, because the arguments
 * changed with CUDA 12 under the same name: driverStatus is passed on as it came, and an older
 * runtime does not read it.
 */
#include "base/compiler.h"
#include "hook/answers/answer.h"
#include "hook/bodies/runtime.h"

#define CALLER __builtin_return_address(0)

typedef int (*entry_point_fn)(const char *symbol, void **funcPtr, unsigned long long flags,
                              void *driverStatus);
typedef int (*entry_point_by_version_fn)(const char *symbol, void **funcPtr,
                                         unsigned int cudaVersion, unsigned long long flags,
                                         void *driverStatus);

int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, void *);
int cudaGetDriverEntryPoint_ptsz(const char *, void **, unsigned long long, void *);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned int, unsigned long long,
                                     void *);
int cudaGetDriverEntryPointByVersion_ptsz(const char *, void **, unsigned int, unsigned long long,
                                          void *);

static int entry_point(enum cw_runtime function, const char *symbol, void **pfn,
                       unsigned long long flags, void *status, void *caller)
{
    struct cw_runtime_call call;
    entry_point_fn real = (entry_point_fn)cw_runtime_enter(&call, function, caller);
    int rc = real(symbol, pfn, flags, status);

    /* The version that the runtime asked for is unknown: exact exports only. */
    if (rc == 0 && pfn != NULL && *pfn != NULL)
        *pfn = cw_answer_instead(*pfn, symbol, 0, flags);
    cw_runtime_leave(&call);
    return rc;
}

CW_EXPORT int cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                      void *driverStatus)
{
    return entry_point(CW_RUNTIME_cudaGetDriverEntryPoint, symbol, funcPtr, flags, driverStatus,
                       CALLER);
}

CW_EXPORT int cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr,
                                           unsigned long long flags, void *driverStatus)
{
    return entry_point(CW_RUNTIME_cudaGetDriverEntryPoint_ptsz, symbol, funcPtr, flags,
                       driverStatus, CALLER);
}

/* Flags 0 mean the default stream that the caller was compiled for; 2 means the thread's. */
static unsigned long long meant_flags(enum cw_runtime function, unsigned long long flags)
{
    return flags == 0 && function == CW_RUNTIME_cudaGetDriverEntryPointByVersion_ptsz ? 2 : flags;
}

static int entry_point_by_version(enum cw_runtime function, const char *symbol, void **pfn,
                                  unsigned int version, unsigned long long flags, void *status,
                                  void *caller)
{
    struct cw_runtime_call call;
    entry_point_by_version_fn real =
        (entry_point_by_version_fn)cw_runtime_enter(&call, function, caller);
    int rc = real(symbol, pfn, version, flags, status);

    if (rc == 0 && pfn != NULL && *pfn != NULL)
        *pfn = cw_answer_instead(*pfn, symbol, (int)version, meant_flags(function, flags));
    cw_runtime_leave(&call);
    return rc;
}

CW_EXPORT int cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                               unsigned int cudaVersion, unsigned long long flags,
                                               void *driverStatus)
{
    return entry_point_by_version(CW_RUNTIME_cudaGetDriverEntryPointByVersion, symbol, funcPtr,
                                  cudaVersion, flags, driverStatus, CALLER);
}

CW_EXPORT int cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **funcPtr,
                                                    unsigned int cudaVersion,
                                                    unsigned long long flags, void *driverStatus)
{
    return entry_point_by_version(CW_RUNTIME_cudaGetDriverEntryPointByVersion_ptsz, symbol, funcPtr,
                                  cudaVersion, flags, driverStatus, CALLER);
}
