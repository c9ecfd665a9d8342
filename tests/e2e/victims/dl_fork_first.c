/* SPDX-License-Identifier: MIT */
/* Forks before anything else; parent and child each load the driver and leak: two reports. */
#include "victim.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static NOINLINE void leak(size_t bytes)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
    CUresult (*retain)(CUcontext *, CUdevice) =
        (CUresult(*)(CUcontext *, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain");
    CUresult (*set)(CUcontext) = (CUresult(*)(CUcontext))dlsym(driver, "cuCtxSetCurrent");
    CUresult (*alloc)(CUdeviceptr *, size_t) =
        (CUresult(*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2");
    CUcontext context;
    CUdeviceptr block;

    MUST(init(0));
    MUST(retain(&context, 0));
    MUST(set(context));
    MUST(alloc(&block, bytes));
}

int main(void)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        leak(1111);
        return 0;
    }
    waitpid(child, &status, 0);
    leak(2222);
    return status;
}
