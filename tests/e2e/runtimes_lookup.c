/* SPDX-License-Identifier: MIT */
/* A program of runtimes.test. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static void tell(const char *how, void *found)
{
    Dl_info info = {0};
    const char *slash;
    if (found != NULL && dladdr(found, &info) == 0)
        found = NULL;
    slash = info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    printf("%s: %s\n", how, slash ? slash + 1 : found ? "somewhere" : "nothing");
}
int main(int argc, char **argv)
{
    void *runtime;
    tell("default before", dlsym(RTLD_DEFAULT, "cudaMalloc"));
    tell("program before", dlsym(dlopen(NULL, RTLD_NOW), "cudaMalloc"));
    tell("entry point before", dlsym(RTLD_DEFAULT, "cudaGetDriverEntryPointByVersion"));
    runtime = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (runtime == NULL)
        return 3;
    tell("handle", dlsym(runtime, "cudaMalloc"));
    tell("handle, by version", dlvsym(runtime, "cudaMalloc", "libcudart.so.13"));
    tell("default", dlsym(RTLD_DEFAULT, "cudaMalloc"));
    return 0;
}
