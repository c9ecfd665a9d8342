/* SPDX-License-Identifier: MIT */
/* A program whose MPI library brings UCX: ucx LIBUCS before|after. UCX installs its hooks of CUDA
 * before the first call or after some; then memory comes and goes by the driver and by the runtime,
 * and what UCX was told of it is printed. Leaks two blocks. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "victim.h"

enum { ALLOCATED = 1 << 20, FREED = 1 << 21 }; /* ucm.h */

static unsigned allocs, frees;
static size_t bytes;

static void on_event(int type, void *event, void *arg)
{
    (void)arg;
    if (type == ALLOCATED) {
        allocs++;
        bytes += ((const size_t *)event)[1]; /* address, size */
    } else {
        frees++;
    }
}

static void tell(const char *what)
{
    say("%s: %u allocated, %zu bytes, %u freed", what, allocs, bytes, frees);
    allocs = frees = 0;
    bytes = 0;
}

/* As UCX's memory domains do: its own loader of modules finds the part for CUDA. */
static void install(const char *path)
{
    static struct {
        pthread_mutex_t lock;
        int is_done;
    } once = {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, 0};
    void *ucs = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    void (*load)(const char *, const char *, void *, unsigned);
    int (*set)(int, int, void (*)(int, void *, void *), void *);

    if (ucs == NULL) {
        say("%s", dlerror());
        exit(99);
    }
    load = (void (*)(const char *, const char *, void *, unsigned))dlsym(ucs, "ucs_load_modules");
    set = (int (*)(int, int, void (*)(int, void *, void *), void *))dlsym(ucs,
                                                                          "ucm_set_event_handler");
    if (load == NULL || set == NULL)
        exit(99);
    load("ucm", ":cuda", &once, 1);
    say("installed: %d", set(ALLOCATED | FREED, 0, on_event, NULL));
}

static NOINLINE void keep_driver_memory(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 3000000));
}

static NOINLINE int keep_runtime_memory(void)
{
    void *block;

    return cudaMalloc(&block, 5000000);
}

int main(int argc, char **argv)
{
    CUdeviceptr early, block;
    int is_before = argc > 2 && strcmp(argv[2], "before") == 0;
    void *pointer;

    if (is_before)
        install(argv[1]);
    use_device(0);
    MUST(cuMemAlloc(&early, 1000000));
    if (!is_before)
        install(argv[1]);
    tell("at first");
    MUST(cuMemFree(early));
    tell("early block");
    for (int i = 0; i < 10; i++) {
        MUST(cuMemAlloc(&block, 2000000));
        MUST(cuMemFree(block));
    }
    tell("driver");
    keep_driver_memory();
    tell("kept");
    for (int i = 0; i < 10; i++)
        if (cudaMalloc(&pointer, 400000) != cudaSuccess || cudaFree(pointer) != cudaSuccess)
            return 1;
    tell("runtime");
    if (keep_runtime_memory() != cudaSuccess)
        return 1;
    tell("kept");
    return 0;
}
