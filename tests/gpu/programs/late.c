/* SPDX-License-Identifier: MIT */
/* Preloaded, as cuwarden is: does the driver still answer in the destructor of such a library? */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static void __attribute__((destructor)) at_end(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*info)(size_t *, size_t *);
    size_t available, total;

    if (!driver)
        return;
    *(void **)&info = dlsym(driver, "cuMemGetInfo_v2");
    if (info)
        printf("fact destructor-of-preloaded-library %d\n", info(&available, &total));
    fflush(stdout);
}
