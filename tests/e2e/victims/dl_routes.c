/* SPDX-License-Identifier: MIT */
/* Leaks 1500 bytes through functions that it got on the way that its argument names. */
#include "victim.h"

#include <dlfcn.h>
#include <string.h>

static const char *route;
static void *driver;
static CUresult (*ask_v1)(const char *, void **, int, cuuint64_t);
static CUresult (*ask_v2)(const char *, void **, int, cuuint64_t, int *);

static void *ask(const char *name, int version)
{
    void *found = NULL;
    int status = -1;

    if (strcmp(route, "cuGetProcAddress") == 0)
        MUST(ask_v1(name, &found, version, 0));
    else
        MUST(ask_v2(name, &found, version, 0, &status));
    return found;
}

/* symbol: as it is exported; base and version: as cuGetProcAddress knows it. */
static void *find(const char *symbol, const char *base, int version)
{
    void *found;

    if (strcmp(route, "dlsym") == 0)
        found = dlsym(driver, symbol);
    else if (strcmp(route, "dlvsym") == 0)
        found = dlvsym(driver, symbol, "CUDA");
    else if (strcmp(route, "RTLD_DEFAULT") == 0)
        found = dlsym(RTLD_DEFAULT, symbol);
    else if (strcmp(route, "program") == 0)
        found = dlsym(dlopen(NULL, RTLD_NOW), symbol);
    else
        found = ask(base, version);
    if (found == NULL) {
        say("%s not found", symbol);
        exit(97);
    }
    return found;
}

/* By its name as it is exported. */
#define FIND(function, base, version) ((__typeof__(&function))find(#function, base, version))

static NOINLINE void leak(void)
{
    __auto_type init = FIND(cuInit, "cuInit", 2000);
    __auto_type retain = FIND(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000);
    __auto_type set = FIND(cuCtxSetCurrent, "cuCtxSetCurrent", 4000);
    __auto_type alloc = FIND(cuMemAlloc_v2, "cuMemAlloc", 3020);
    __auto_type release = FIND(cuMemFree_v2, "cuMemFree", 3020);
    CUcontext context;
    CUdeviceptr block;

    MUST(init(0));
    MUST(retain(&context, 0));
    MUST(set(context));
    MUST(alloc(&block, 100));
    MUST(release(block));
    MUST(alloc(&block, 1500));
}

int main(int argc, char **argv)
{
    int is_global;

    route = argc > 1 ? argv[1] : "dlsym";
    is_global = strcmp(route, "RTLD_DEFAULT") == 0 || strcmp(route, "program") == 0;
    driver = dlopen("libcuda.so.1", RTLD_NOW | (is_global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (driver == NULL)
        return 96;
    ask_v1 = (CUresult(*)(const char *, void **, int, cuuint64_t))dlsym(driver, "cuGetProcAddress");
    ask_v2 = (CUresult(*)(const char *, void **, int, cuuint64_t, int *))dlsym(
        driver, "cuGetProcAddress_v2");
    if (strcmp(route, "itself") == 0) /* asked for by itself, as cudart does */
        MUST(ask_v2("cuGetProcAddress", (void **)&ask_v2, 12000, 0, NULL));
    leak();
    say("expect leaked_bytes=1500 leaked_blocks=1 leak_sites=1 allocs=2 frees=1");
    say("json [s['api'] for s in sites('leak') if s['live']['count']] == ['cuMemAlloc']");
    return 0;
}
