/* SPDX-License-Identifier: MIT */
/*
 * Looks for a real GPU behind the system's libcuda.so.1. Prints "MAJOR.MINOR DRIVER NAME" of device
 * 0 (compute capability; the driver's CUDA version as 12040 for 12.4), or why there is none; then
 * the exit status is 1. On standard error, the driver's file. With an argument the simulated driver
 * will do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int none(const char *why)
{
    printf("%s\n", why);
    return 1;
}

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned), (*version)(int *), (*count)(int *);
    int (*attribute)(int *, int, int), (*name)(char *, int, int);
    int devices = 0, major = 0, minor = 0, cuda = 0, rc;
    static char text[256];
    Dl_info file;

    (void)argv;
    if (!driver)
        return none("there is no libcuda.so.1");
    if (argc < 2 && dlsym(driver, "cusim_calls"))
        return none("libcuda.so.1 is the simulated one");
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&version = dlsym(driver, "cuDriverGetVersion");
    *(void **)&count = dlsym(driver, "cuDeviceGetCount");
    *(void **)&attribute = dlsym(driver, "cuDeviceGetAttribute");
    *(void **)&name = dlsym(driver, "cuDeviceGetName");
    if (!init || !version || !count || !attribute || !name)
        return none("libcuda.so.1 is no CUDA driver");
    rc = init(0);
    if (rc != 0) {
        printf("cuInit returned %d\n", rc);
        return 1;
    }
    if (count(&devices) != 0 || devices == 0)
        return none("the driver finds no device");
    if (version(&cuda) || attribute(&major, 75, 0) || attribute(&minor, 76, 0) ||
        name(text, (int)sizeof(text) - 1, 0))
        return none("the device tells nothing of itself");
    printf("%d.%d %d %s\n", major, minor, cuda, text);
    if (dladdr(*(void **)&init, &file) && file.dli_fname)
        fprintf(stderr, "%s\n", file.dli_fname);
    return 0;
}
