/* SPDX-License-Identifier: MIT */
/* What code from nvcc asks of a runtime: it registers its fat binaries, kernels and variables when
 * it is loaded, and launches kernels by the address of their host stub (crt/host_runtime.h).
 *
 * There is nothing here that could run a fat binary. Its kernels do nothing, unless the program
 * brings them along as host functions (cusim_emulate); its variables are memory of the device.
 * `lock` guards the tables; it is not held while the driver is called. Registering calls no driver:
 * a binary becomes a library of the driver when something of it is first used.
 */
#include "cusim.h"
#include "rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

struct variable {
    struct variable *next;
    const void *host;
    void **pointer; /* of managed memory: where its address goes, else NULL */
    char *name;
    size_t size;
};

struct binary {
    struct variable *variables;
    CUlibrary library;
};

struct entry { /* one kernel, by the address of its host stub */
    const void *host;
    struct binary *binary;
    char *name;
    CUkernel kernel;
    struct cusim_kernel own; /* no name: it does nothing */
};

static struct {
    pthread_mutex_t lock;
    struct entry *entries; /* open addressing; a power of two, at most half full */
    size_t size, count;
    struct binary **binaries;
    size_t nbinaries;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t slot_of(const struct entry *entries, size_t size, const void *host)
{
    size_t i = ((uintptr_t)host >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;

    for (i &= size - 1; entries[i].host && entries[i].host != host; i = (i + 1) & (size - 1))
        ;
    return i;
}

static void grow_locked(void)
{
    size_t size = table.size ? 2 * table.size : 256;
    struct entry *entries = calloc(size, sizeof *entries);

    if (!entries)
        abort();
    for (size_t i = 0; i < table.size; i++)
        if (table.entries[i].host)
            entries[slot_of(entries, size, table.entries[i].host)] = table.entries[i];
    free(table.entries);
    table.entries = entries;
    table.size = size;
}

/* The entry of a host stub; a new one if there is none and it is wanted. */
static struct entry *entry_locked(const void *host, bool is_wanted)
{
    struct entry *entry;

    if (2 * table.count >= table.size)
        grow_locked();
    entry = &table.entries[slot_of(table.entries, table.size, host)];
    if (entry->host)
        return entry;
    if (!is_wanted)
        return NULL;
    entry->host = host;
    table.count++;
    return entry;
}

/* ---- what the program's constructors call ---- */

VISIBLE void **__cudaRegisterFatBinary(void *image);
VISIBLE void __cudaRegisterFatBinaryEnd(void **handle);
VISIBLE void __cudaUnregisterFatBinary(void **handle);
VISIBLE void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                    int threads, void *tid, void *bid, void *block, void *grid,
                                    int *warp);
VISIBLE void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                               int is_extern, size_t size, int is_constant, int is_global);
VISIBLE void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name,
                                      int is_extern, size_t size, int is_constant, int is_global);
VISIBLE char __cudaInitModule(void **handle);

void **__cudaRegisterFatBinary(void *image)
{
    struct binary *binary = calloc(1, sizeof *binary);

    (void)image;
    pthread_mutex_lock(&table.lock);
    table.binaries = realloc(table.binaries, (table.nbinaries + 1) * sizeof(struct binary *));
    if (!binary || !table.binaries)
        abort();
    table.binaries[table.nbinaries++] = binary;
    pthread_mutex_unlock(&table.lock);
    return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

/* Programs unregister at exit, when the driver may have gone; nothing is given back. */
void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *tid, void *bid, void *block, void *grid, int *warp)
{
    struct entry *entry;

    (void)device, (void)threads, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    pthread_mutex_lock(&table.lock);
    entry = entry_locked(host, true);
    entry->binary = (struct binary *)handle;
    entry->name = strdup(name);
    pthread_mutex_unlock(&table.lock);
}

static void add_variable(struct binary *binary, const void *host, void **pointer, const char *name,
                         size_t size)
{
    struct variable *variable = calloc(1, sizeof *variable);

    if (!variable)
        abort();
    *variable = (struct variable){.host = host, .pointer = pointer, .size = size};
    variable->name = strdup(name);
    pthread_mutex_lock(&table.lock);
    variable->next = binary->variables;
    binary->variables = variable;
    pthread_mutex_unlock(&table.lock);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern,
                       size_t size, int is_constant, int is_global)
{
    (void)device, (void)is_extern, (void)is_constant, (void)is_global;
    add_variable((struct binary *)handle, host, NULL, name, size);
}

void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name,
                              int is_extern, size_t size, int is_constant, int is_global)
{
    (void)device, (void)is_extern, (void)is_constant, (void)is_global;
    add_variable((struct binary *)handle, pointer, pointer, name, size);
}

/* ---- when something of it is used ---- */

/* The image for the simulated driver: any kernel, and these variables. */
static char *image_of(const struct binary *binary)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);

    if (!file)
        return NULL;
    fputs("cusim 1\nopen\n", file);
    for (const struct variable *variable = binary->variables; variable; variable = variable->next)
        fprintf(file, "global %s %zu\n", variable->name, variable->size);
    fclose(file);
    return text;
}

/* The addresses of managed variables, from the first use of their binary on. */
static void place_managed(const struct binary *binary)
{
    for (struct variable *variable = binary->variables; variable; variable = variable->next)
        if (variable->pointer)
            RT->cuLibraryGetGlobal((CUdeviceptr *)variable->pointer, NULL, binary->library,
                                   variable->name);
}

static cudaError_t load_binary(struct binary *binary)
{
    CUlibrary library = NULL;
    cudaError_t status = rt_begin();
    bool is_first;
    char *image;

    if (status != cudaSuccess || binary->library)
        return status;
    image = image_of(binary);
    status = rt_end(RT->cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    free(image);
    if (status != cudaSuccess)
        return status;
    pthread_mutex_lock(&table.lock);
    is_first = !binary->library;
    if (is_first)
        binary->library = library;
    pthread_mutex_unlock(&table.lock);
    if (is_first)
        place_managed(binary);
    else
        RT->cuLibraryUnload(library);
    return cudaSuccess;
}

char __cudaInitModule(void **handle)
{
    return load_binary((struct binary *)handle) == cudaSuccess;
}

/* The program's own kernel of that name, told to the driver. */
static void define(const struct entry *entry)
{
    __typeof__(&cusim_define_kernel) define_kernel =
        (__typeof__(&cusim_define_kernel))dlsym(RTLD_DEFAULT, "cusim_define_kernel");
    void *driver = define_kernel ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    struct cusim_kernel kernel = entry->own;

    if (driver)
        define_kernel = (__typeof__(&cusim_define_kernel))dlsym(driver, "cusim_define_kernel");
    kernel.name = entry->name;
    if (define_kernel)
        define_kernel(&kernel);
}

CUfunction rt_registered(const void *host)
{
    struct entry *entry, found = {0};
    CUkernel kernel = NULL;

    pthread_mutex_lock(&table.lock);
    entry = entry_locked(host, false);
    if (entry)
        found = *entry;
    pthread_mutex_unlock(&table.lock);
    if (!found.binary || found.kernel)
        return (CUfunction)found.kernel;
    if (found.own.run)
        define(&found);
    if (load_binary(found.binary) != cudaSuccess ||
        rt_end(RT->cuLibraryGetKernel(&kernel, found.binary->library, found.name)) != cudaSuccess)
        return NULL;
    pthread_mutex_lock(&table.lock);
    entry_locked(host, true)->kernel = kernel;
    pthread_mutex_unlock(&table.lock);
    return (CUfunction)kernel;
}

cudaKernel_t rt_adopt(CUkernel kernel)
{
    pthread_mutex_lock(&table.lock);
    entry_locked(kernel, true)->kernel = kernel;
    pthread_mutex_unlock(&table.lock);
    return (cudaKernel_t)kernel;
}

VISIBLE void cusim_emulate(const void *host, const struct cusim_kernel *kernel);

/* A kernel from nvcc is run by a host function from now on; the name in *kernel is not looked at.
 */
void cusim_emulate(const void *host, const struct cusim_kernel *kernel)
{
    pthread_mutex_lock(&table.lock);
    entry_locked(host, true)->own = *kernel;
    pthread_mutex_unlock(&table.lock);
}

/* ---- variables ---- */

static struct binary *binary_of(const void *symbol, const struct variable **found)
{
    struct binary *owner = NULL;

    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < table.nbinaries && !owner; i++)
        for (const struct variable *v = table.binaries[i]->variables; v; v = v->next)
            if (v->host == symbol) {
                owner = table.binaries[i];
                *found = v;
            }
    pthread_mutex_unlock(&table.lock);
    return owner;
}

static cudaError_t locate(const void *symbol, CUdeviceptr *address, size_t *size)
{
    const struct variable *variable = NULL;
    struct binary *binary = binary_of(symbol, &variable);
    cudaError_t status = binary ? load_binary(binary) : cudaErrorInvalidSymbol;

    if (status == cudaSuccess)
        status =
            (cudaError_t)RT->cuLibraryGetGlobal(address, size, binary->library, variable->name);
    return rt_note(status);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    return locate(symbol, (CUdeviceptr *)address, NULL);
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr address;

    return locate(symbol, &address, size);
}

static cudaError_t is_inside(size_t offset, size_t count, size_t size)
{
    return offset <= size && count <= size - offset ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset,
                               enum cudaMemcpyKind kind)
{
    CUdeviceptr address = 0;
    size_t size = 0;
    cudaError_t status = locate(symbol, &address, &size);

    if (status == cudaSuccess)
        status = rt_note(is_inside(offset, count, size));
    if (status != cudaSuccess)
        return status;
    return cudaMemcpy((void *)(address + offset), from, count, kind);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t count, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    CUdeviceptr address = 0;
    size_t size = 0;
    cudaError_t status = locate(symbol, &address, &size);

    if (status == cudaSuccess)
        status = rt_note(is_inside(offset, count, size));
    if (status != cudaSuccess)
        return status;
    return cudaMemcpy(to, (const void *)(address + offset), count, kind);
}

/* ---- launches, as the stubs make them ---- */

struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

/* f<<<...>>>(g<<<...>>>()) is not to be had: one is enough, but a stack costs nothing. */
#define DEPTH 8

static _Thread_local struct {
    unsigned depth;
    struct configuration stack[DEPTH];
} self;

VISIBLE unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                             cudaStream_t stream);
VISIBLE cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                               void *stream);
VISIBLE cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
VISIBLE cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                       size_t shared, cudaStream_t stream);
VISIBLE cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                            void **arguments, size_t shared, cudaStream_t stream);

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    if (self.depth == DEPTH)
        return 1;
    self.stack[self.depth++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    const struct configuration *top;

    if (self.depth == 0)
        return rt_note(cudaErrorMissingConfiguration);
    top = &self.stack[--self.depth];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(cudaStream_t *)stream = top->stream;
    return cudaSuccess;
}

/* A handle is the host stub's address: stubs ask for one before there is a device. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)host;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernel_ptsz(const void *host, dim3 grid, dim3 block, void **arguments,
                                  size_t shared, cudaStream_t stream);

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel_ptsz((const void *)kernel, grid, block, arguments, shared, stream);
}
