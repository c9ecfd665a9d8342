/* SPDX-License-Identifier: MIT */
/* What another of these programs does, in a plugin that is opened with RTLD_DEEPBIND and has its
 * main as work(). */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    int (*work)(int, char **) = plugin ? (int (*)(int, char **))dlsym(plugin, "work") : NULL;

    if (work == NULL) {
        puts(dlerror());
        return 1;
    }
    return work(argc, argv);
}
