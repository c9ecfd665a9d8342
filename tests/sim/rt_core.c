/* SPDX-License-Identifier: MIT */
/* Finds the driver, keeps each thread's device and last error, and the primary contexts.
 *
 * `state.lock` guards the contexts; it is held while the driver makes one, never while the
 * application runs. A context that was reset from under a thread is noticed by its generation.
 */
#include "rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEVICES 16
#define MAX_KERNELS 64

struct rt_driver rt_drivers[2];

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    cudaError_t loaded;
    CUcontext contexts[MAX_DEVICES];
    unsigned generations[MAX_DEVICES]; /* counts the resets */
    struct {
        const void *function;
        CUkernel kernel;
    } kernels[MAX_KERNELS];
    unsigned nkernels;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static _Thread_local struct {
    int device;
    bool is_bound;
    unsigned generation;
    cudaError_t last;
} self;

struct slot {
    const char *symbol, *base;
    int since;
    size_t offset;
};

static const struct slot slots[] = {
#define FN(symbol, base, since) {#symbol, base, since, offsetof(struct rt_driver, symbol)},
#include "rt_driver.def"
#undef FN
};

typedef CUresult resolve_fn(const char *, void **, int, cuuint64_t,
                            CUdriverProcAddressQueryResult *);
typedef CUresult old_resolve_fn(const char *, void **, int, cuuint64_t);

static void *by_symbol(void *library, const struct slot *slot, int flavour)
{
    static const char *const suffixes[] = {"_ptsz", "_ptds", ""};
    void *address = NULL;
    char name[128];

    for (int i = flavour ? 0 : 2; i < 3 && !address; i++) {
        snprintf(name, sizeof name, "%s%s", slot->symbol, suffixes[i]);
        address = dlsym(library, name);
    }
    return address;
}

/* Stands in for what an older driver lacks. */
static CUresult unsupported(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void resolve_all(void *library)
{
    void *newer = dlsym(library, "cuGetProcAddress_v2");
    void *older = newer ? NULL : dlsym(library, "cuGetProcAddress");
    void *nothing;

    if (newer)
        ((resolve_fn *)newer)("", &nothing, 0, 0, NULL); /* NVIDIA's runtime asks this first */
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        for (int flavour = 0; flavour < 2; flavour++) {
            void **field = (void **)((char *)&rt_drivers[flavour] + slots[i].offset);
            cuuint64_t flags = flavour ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0;

            if (newer)
                ((resolve_fn *)newer)(slots[i].base, field, slots[i].since, flags, NULL);
            else if (older)
                ((old_resolve_fn *)older)(slots[i].base, field, slots[i].since, flags);
            else
                *field = by_symbol(library, &slots[i], flavour);
            if (!*field)
                *field = (void *)unsupported;
        }
    }
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library) {
        state.loaded = cudaErrorInsufficientDriver;
        return;
    }
    resolve_all(library);
    state.loaded = (cudaError_t)RT->cuInit(0);
}

cudaError_t rt_load(void)
{
    pthread_once(&state.once, load);
    return state.loaded;
}

/* Codes of the driver and the runtime are the same since CUDA 10.1. */
static bool is_sticky(cudaError_t status)
{
    return status == cudaErrorIllegalAddress || status == cudaErrorLaunchTimeout ||
           (status >= cudaErrorAssert && status <= cudaErrorLaunchFailure &&
            status != cudaErrorHostMemoryAlreadyRegistered &&
            status != cudaErrorHostMemoryNotRegistered);
}

cudaError_t rt_note(cudaError_t status)
{
    if (status != cudaSuccess && status != cudaErrorNotReady)
        self.last = status;
    return status;
}

cudaError_t rt_end(CUresult status)
{
    return rt_note((cudaError_t)status);
}

int rt_device(void)
{
    return self.device;
}

static CUresult bind(void)
{
    CUcontext *ctx = &state.contexts[self.device];
    CUresult status = CUDA_SUCCESS;

    pthread_mutex_lock(&state.lock);
    if (!*ctx)
        status = RT->cuDevicePrimaryCtxRetain(ctx, self.device);
    self.generation = state.generations[self.device];
    pthread_mutex_unlock(&state.lock);
    if (status == CUDA_SUCCESS)
        status = RT->cuCtxSetCurrent(*ctx);
    self.is_bound = status == CUDA_SUCCESS;
    return status;
}

cudaError_t rt_begin(void)
{
    cudaError_t status = rt_load();
    CUcontext current = NULL;
    bool is_stale;

    if (status != cudaSuccess)
        return rt_note(status);
    pthread_mutex_lock(&state.lock);
    is_stale = self.is_bound && self.generation != state.generations[self.device];
    pthread_mutex_unlock(&state.lock);
    RT->cuCtxGetCurrent(&current);
    if (current && !is_stale)
        return cudaSuccess; /* also a context the program has made current itself */
    return rt_end(bind());
}

/* ---- devices ---- */

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t status = rt_load();
    CUcontext current = NULL;

    if (status != cudaSuccess)
        return rt_note(status);
    if (!device)
        return rt_note(cudaErrorInvalidValue);
    RT->cuCtxGetCurrent(&current);
    if (!current || RT->cuCtxGetDevice(device) != CUDA_SUCCESS)
        *device = self.device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t status = rt_load();
    int count;

    if (status != cudaSuccess)
        return rt_note(status);
    if (RT->cuDeviceGetCount(&count) != CUDA_SUCCESS || device < 0 || device >= count)
        return rt_note(cudaErrorInvalidDevice);
    self.device = device;
    return rt_end(bind());
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    int old = self.device;
    cudaError_t status;

    (void)device_flags, (void)flags;
    status = cudaSetDevice(device);
    return status == cudaSuccess ? cudaSetDevice(old) : status;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t status = rt_load();

    if (status != cudaSuccess)
        return rt_note(status);
    return count ? rt_end(RT->cuDeviceGetCount(count)) : rt_note(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceReset(void)
{
    cudaError_t status = rt_load();
    CUresult result;

    if (status != cudaSuccess)
        return rt_note(status);
    pthread_mutex_lock(&state.lock);
    state.contexts[self.device] = NULL;
    state.generations[self.device]++;
    result = RT->cuDevicePrimaryCtxReset(self.device);
    pthread_mutex_unlock(&state.lock);
    RT->cuCtxSetCurrent(NULL);
    self.is_bound = false;
    self.last = cudaSuccess;
    return rt_end(result);
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t status = rt_begin();

    return status == cudaSuccess ? rt_end(RT->cuCtxSynchronize()) : status;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t status = rt_load();

    if (status != cudaSuccess)
        return rt_note(status);
    return rt_end(RT->cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    cudaError_t status = rt_load();

    return status == cudaSuccess ? rt_end(RT->cuDeviceGetPCIBusId(text, length, device)) : status;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    cudaError_t status = rt_load();

    return status == cudaSuccess ? rt_end(RT->cuDeviceGetByPCIBusId(device, text)) : status;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    cudaError_t status = rt_load();

    return status == cudaSuccess ? rt_end(RT->cuDeviceCanAccessPeer(can, device, peer)) : status;
}

static cudaError_t primary_of(CUcontext *out, int device)
{
    int old = self.device;
    cudaError_t status = cudaSetDevice(device);

    if (status == cudaSuccess)
        *out = state.contexts[device];
    cudaSetDevice(old);
    return status;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    CUcontext ctx = NULL;
    cudaError_t status = rt_begin();

    if (status == cudaSuccess)
        status = primary_of(&ctx, peer);
    return status == cudaSuccess ? rt_end(RT->cuCtxEnablePeerAccess(ctx, flags)) : status;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext ctx = NULL;
    cudaError_t status = rt_begin();

    if (status == cudaSuccess)
        status = primary_of(&ctx, peer);
    return status == cudaSuccess ? rt_end(RT->cuCtxDisablePeerAccess(ctx)) : status;
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    cudaError_t status = rt_begin();

    return status == cudaSuccess ? rt_end(RT->cuCtxGetLimit(value, (CUlimit)limit)) : status;
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    cudaError_t status = rt_begin();

    return status == cudaSuccess ? rt_end(RT->cuCtxSetLimit((CUlimit)limit, value)) : status;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    cudaError_t status = rt_begin();

    return status == cudaSuccess ? rt_end(RT->cuCtxGetStreamPriorityRange(least, greatest))
                                 : status;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    cudaError_t status = rt_load();

    return status == cudaSuccess ? rt_end(RT->cuDevicePrimaryCtxSetFlags(self.device, flags))
                                 : status;
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    cudaError_t status = rt_load();
    int active;

    return status == cudaSuccess
               ? rt_end(RT->cuDevicePrimaryCtxGetState(self.device, flags, &active))
               : status;
}

/* ---- versions and errors ---- */

cudaError_t cudaDriverGetVersion(int *version)
{
    cudaError_t status = rt_load();

    if (status == cudaErrorInsufficientDriver && version) {
        *version = 0; /* no driver is version zero, not an error */
        return cudaSuccess;
    }
    return version ? rt_end(RT->cuDriverGetVersion(version)) : rt_note(cudaErrorInvalidValue);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return rt_note(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t last = self.last;

    if (!is_sticky(last))
        self.last = cudaSuccess;
    return last;
}

cudaError_t cudaPeekAtLastError(void)
{
    return self.last;
}

/* The runtime's own names differ from the driver's in their prefix and spelling. */
static const struct {
    cudaError_t code;
    const char *name;
} names[] = {
#define NAME(code)                                                                                 \
    {                                                                                              \
        code, #code                                                                                \
    }
    NAME(cudaSuccess),
    NAME(cudaErrorInvalidValue),
    NAME(cudaErrorMemoryAllocation),
    NAME(cudaErrorInitializationError),
    NAME(cudaErrorCudartUnloading),
    NAME(cudaErrorInvalidDevice),
    NAME(cudaErrorNoDevice),
    NAME(cudaErrorInsufficientDriver),
    NAME(cudaErrorInvalidDeviceFunction),
    NAME(cudaErrorDeviceUninitialized),
    NAME(cudaErrorInvalidResourceHandle),
    NAME(cudaErrorIllegalState),
    NAME(cudaErrorSymbolNotFound),
    NAME(cudaErrorNotReady),
    NAME(cudaErrorIllegalAddress),
    NAME(cudaErrorContextIsDestroyed),
    NAME(cudaErrorHostMemoryAlreadyRegistered),
    NAME(cudaErrorHostMemoryNotRegistered),
    NAME(cudaErrorLaunchFailure),
    NAME(cudaErrorNotPermitted),
    NAME(cudaErrorNotSupported),
    NAME(cudaErrorStreamCaptureUnsupported),
    NAME(cudaErrorStreamCaptureInvalidated),
    NAME(cudaErrorStreamCaptureMerge),
    NAME(cudaErrorStreamCaptureUnmatched),
    NAME(cudaErrorStreamCaptureUnjoined),
    NAME(cudaErrorStreamCaptureIsolation),
    NAME(cudaErrorStreamCaptureImplicit),
    NAME(cudaErrorCapturedEvent),
    NAME(cudaErrorStreamCaptureWrongThread),
    NAME(cudaErrorUnknown),
#undef NAME
};

const char *cudaGetErrorName(cudaError_t code)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t code)
{
    const char *text = NULL;

    if (rt_load() == cudaSuccess)
        RT->cuGetErrorString((CUresult)code, &text);
    return text ? text : cudaGetErrorName(code);
}

/* ---- kernels, which have no fat binary here: the test says which built-in one a function is ----
 */

cudaError_t cusim_register_kernel(const void *function, const char *name);

cudaError_t cusim_register_kernel(const void *function, const char *name)
{
    char image[160];
    CUlibrary library;
    CUkernel kernel;
    cudaError_t status = rt_begin();

    if (status != cudaSuccess)
        return status;
    if (state.nkernels == MAX_KERNELS)
        return rt_note(cudaErrorMemoryAllocation);
    snprintf(image, sizeof image, "cusim 1\nkernel %s\n", name);
    status = (cudaError_t)RT->cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (status == cudaSuccess)
        status = (cudaError_t)RT->cuLibraryGetKernel(&kernel, library, name);
    if (status != cudaSuccess)
        return rt_note(status);
    pthread_mutex_lock(&state.lock);
    state.kernels[state.nkernels].function = function;
    state.kernels[state.nkernels++].kernel = kernel;
    pthread_mutex_unlock(&state.lock);
    return cudaSuccess;
}

CUfunction rt_function(const void *function)
{
    CUfunction found = NULL;

    pthread_mutex_lock(&state.lock);
    for (unsigned i = 0; i < state.nkernels; i++)
        if (state.kernels[i].function == function)
            found = (CUfunction)state.kernels[i].kernel;
    pthread_mutex_unlock(&state.lock);
    return found ? found : rt_registered(function);
}
