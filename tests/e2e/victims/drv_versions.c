/* SPDX-License-Identifier: MIT */
/* Asks cuGetProcAddress for names by version and stream flavour, and says which export each answer
 * is, what the return code and what the status was. */
#include "victim.h"

#include <dlfcn.h>

#if CUDA_VERSION >= 12000
static void ask(const char *name, int version, cuuint64_t flags, const char *symbol)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)-1;
    void *answer = (void *)&status;
    CUresult rc = cuGetProcAddress(name, &answer, version, flags, &status);

    say("%s %d %d: returned %d, status %d, %s%s", name, version, (int)flags, (int)rc, (int)status,
        answer == NULL                          ? "NULL"
        : answer == (void *)&status             ? "untouched "
        : answer == dlsym(RTLD_DEFAULT, symbol) ? "is "
                                                : "is not ",
        symbol);
}

int main(void)
{
    MUST(cuInit(0));
    ask("cuMemAlloc", 2000, 0, "cuMemAlloc");
    ask("cuMemAlloc", 3010, 0, "cuMemAlloc");
    ask("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
    ask("cuMemAlloc", 12000, 2, "cuMemAlloc_v2");
    ask("cuMemAllocAsync", 11020, 0, "cuMemAllocAsync");
    ask("cuMemAllocAsync", 11020, 1, "cuMemAllocAsync");
    ask("cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz");
    ask("cuMemAllocAsync", 11010, 0, "");
    ask("cuMemAllocAsync", 11020, 64, "");
    ask("cuMemcpyHtoD", 2000, 0, "cuMemcpyHtoD");
    ask("cuMemcpyHtoD", 3020, 0, "cuMemcpyHtoD_v2");
    ask("cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds");
    ask("cuDevicePrimaryCtxReset", 7000, 0, "cuDevicePrimaryCtxReset");
    ask("cuDevicePrimaryCtxReset", 11000, 0, "cuDevicePrimaryCtxReset_v2");
    ask("cuIpcOpenMemHandle", 4010, 0, "cuIpcOpenMemHandle");
    ask("cuIpcOpenMemHandle", 11000, 0, "cuIpcOpenMemHandle_v2");
    ask("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    ask("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
    ask("cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture");
    ask("cuStreamBeginCapture", 10010, 2, "cuStreamBeginCapture_v2_ptsz");
    ask("cuCtxCreate", 3020, 0, "cuCtxCreate_v2");
    ask("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
    ask("cuCtxGetDevice", 2000, 0, "cuCtxGetDevice");
    ask("cuNoSuchFunction", 12000, 0, "");
    ask("", 0, 0, "");
    return 0;
}
#else
int main(void)
{
    return 0;
}
#endif
