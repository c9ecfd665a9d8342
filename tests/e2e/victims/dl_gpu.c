/* SPDX-License-Identifier: MIT */
/* Says which GPU the process would use; exit status 1 when there is none. */
#include <dlfcn.h>
#include <stdio.h>

typedef int (*init_fn)(unsigned);
typedef int (*count_fn)(int *);
typedef int (*name_fn)(char *, int, int);

static int fail(const char *what)
{
    printf("%s\n", what);
    return 1;
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return fail(dlerror());
    init_fn init = (init_fn)dlsym(driver, "cuInit");
    count_fn count = (count_fn)dlsym(driver, "cuDeviceGetCount");
    name_fn name = (name_fn)dlsym(driver, "cuDeviceGetName");
    if (!init || !count || !name)
        return fail("libcuda.so.1 lacks cuInit, cuDeviceGetCount or cuDeviceGetName");
    int devices = 0;
    if (init(0) || count(&devices) || devices == 0)
        return fail("libcuda.so.1 finds no device");
    char text[256];
    if (name(text, sizeof(text), 0))
        return fail("the device has no name");
    printf("%s\n", text);
    return 0;
}
