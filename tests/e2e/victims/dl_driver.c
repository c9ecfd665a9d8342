/* SPDX-License-Identifier: MIT */
/* Tries to get a driver in the ways in which programs do: by a weak reference, from the global
 * scope, by dlopen; says what it got, and leaks where it got one. */
#include "dl_leak.h"

/* A name that this driver lacks, or that none has: NULL, and a reason. */
static void ask_for(void *driver, const char *name)
{
    void *found;

    dlerror();
    found = dlsym(driver, name);
    say("%s: %s, %s", name, found ? "found" : "not found", dlerror() ? "an error" : "no error");
}

int main(void)
{
    void *driver;

    say("in the global scope: %s", dlsym(RTLD_DEFAULT, "cuInit") ? "cuInit" : "nothing");
    say("cudaMalloc: %s", dlsym(RTLD_DEFAULT, "cudaMalloc") ? "found" : "nothing");
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    say("dlopen: %s", driver ? "a driver" : dlerror());
    say("in the global scope: %s", dlsym(RTLD_DEFAULT, "cuInit") ? "cuInit" : "nothing");
    if (driver == NULL)
        return 4;
    ask_for(driver, "cuNoSuchFunction");
    ask_for(driver, "cuMemFree_v2");
    ask_for(driver, "cuCtxCreate_v4");
    leak(driver, 3210);
    return 0;
}
