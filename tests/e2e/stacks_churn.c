/* SPDX-License-Identifier: MIT */
/* A program of stacks.test. */
#include <dlfcn.h>
#include <stdio.h>
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
static void *last;
static int same;
static void __attribute__((noinline)) use(int number, unsigned long bytes)
{
    char name[32];
    void *plugin;
    int (*enter)(unsigned long);
    snprintf(name, sizeof(name), "./plugin%d.so", number);
    plugin = dlopen(name, RTLD_NOW);
    enter = (int (*)(unsigned long))dlsym(plugin, "enter");
    same += last == (void *)enter;
    last = (void *)enter;
    enter(bytes);
    printf("stack %lu leak_of_%d<enter<use<main<...\n", bytes, number);
    dlclose(plugin);
}
int main(void)
{
    void *context;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    for (int i = 0; i < 60; i++)
        use((i * 5 + i / 7) % 6, 1000 + i);
    printf("at the same address: %s\n", same > 30 ? "most" : "few");
    return 0;
}
