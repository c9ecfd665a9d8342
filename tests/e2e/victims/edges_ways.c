/* SPDX-License-Identifier: MIT */
/* The ways in which a context begins and ends. See edges_ways.h. */
#include "edges_ways.h"

#include <dlfcn.h>

/* By the names that the driver exports. */
CUresult destroy_of_old(CUcontext context) __asm__("cuCtxDestroy");
CUresult destroy_of_new(CUcontext context) __asm__("cuCtxDestroy_v2");
CUresult detach(CUcontext context) __asm__("cuCtxDetach");
CUresult release_of_old(CUdevice device) __asm__("cuDevicePrimaryCtxRelease");
CUresult release_of_new(CUdevice device) __asm__("cuDevicePrimaryCtxRelease_v2");
CUresult reset_of_old(CUdevice device) __asm__("cuDevicePrimaryCtxReset");
CUresult reset_of_new(CUdevice device) __asm__("cuDevicePrimaryCtxReset_v2");

static struct {
    int (*set_device)(int device);
    int (*reset)(void);
} runtime;

struct ending {
    struct way *way;
    CUcontext current;
    bool is_reset, is_old, is_detached;
};

/* Without a runtime there are none of its contexts. */
void ways_prepare(void)
{
    void *library = dlopen("libcudart.so.13", RTLD_NOW);

    if (!library)
        return;
    runtime.set_device = (int (*)(int))dlsym(library, "cudaSetDevice");
    runtime.reset = (int (*)(void))dlsym(library, "cudaDeviceReset");
}

static void begin_primary(struct way *way)
{
    way->is_primary = true;
    if (way->is_of_runtime) {
        expect((CUresult)runtime.set_device(way->device), CUDA_SUCCESS, "cudaSetDevice");
        WORKS(cuCtxGetCurrent(&way->handle));
        return;
    }
    way->retains = 1 + below(2);
    for (unsigned i = 0; i < way->retains; i++)
        WORKS(cuDevicePrimaryCtxRetain(&way->handle, way->device));
}

CUcontext way_begin(struct way *out, int device, bool is_primary, bool is_of_runtime)
{
    *out = (struct way){.device = device};
    out->is_of_runtime = is_primary && is_of_runtime && runtime.reset;
    if (is_primary) {
        begin_primary(out);
    } else {
        WORKS(cuCtxCreate_v2(&out->handle, 0, device));
        WORKS(cuCtxPopCurrent(NULL));
    }
    return out->handle;
}

static void end_of_runtime(const struct ending *ending)
{
    expect((CUresult)runtime.set_device(ending->way->device), CUDA_SUCCESS, "cudaSetDevice");
    WORKS(cuCtxSetCurrent(ending->current));
    expect((CUresult)runtime.reset(), CUDA_SUCCESS, "cudaDeviceReset");
}

static void end_primary(const struct ending *ending)
{
    struct way *way = ending->way;

    if (ending->is_reset) {
        WORKS((ending->is_old ? reset_of_old : reset_of_new)(way->device));
        return;
    }
    for (; way->retains > 0; way->retains--)
        WORKS((ending->is_old ? release_of_old : release_of_new)(way->device));
}

static void *end(void *argument)
{
    const struct ending *ending = argument;
    const struct way *way = ending->way;

    WORKS(cuCtxSetCurrent(ending->current));
    if (way->is_of_runtime)
        end_of_runtime(ending);
    else if (way->is_primary)
        end_primary(ending);
    else if (ending->is_detached)
        WORKS(detach(way->handle));
    else
        WORKS((ending->is_old ? destroy_of_old : destroy_of_new)(way->handle));
    return NULL;
}

void way_end(struct way *way, CUcontext current, bool is_reset, bool is_elsewhere)
{
    struct ending ending = {
        .way = way,
        .current = current,
        .is_reset = is_reset,
        .is_old = chance(40),
        .is_detached = chance(30),
    };
    pthread_t thread;

    if (!is_elsewhere)
        end(&ending);
    else if (pthread_create(&thread, NULL, end, &ending) != 0 || pthread_join(thread, NULL) != 0)
        violated("no thread");
}
