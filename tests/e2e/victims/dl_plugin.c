/* SPDX-License-Identifier: MIT */
/* Loads plugins and calls their int work(void): dl_plugin [local|global|deepbind|again] FILE...
 * "again": each is unloaded before the next is loaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int flags_of(const char *word)
{
    if (strcmp(word, "global") == 0)
        return RTLD_GLOBAL;
#ifdef RTLD_DEEPBIND
    if (strcmp(word, "deepbind") == 0)
        return RTLD_DEEPBIND;
#endif
    return RTLD_LOCAL;
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        void *plugin = dlopen(argv[i], RTLD_NOW | flags_of(argv[1]));
        int (*work)(void) = plugin ? (int (*)(void))dlsym(plugin, "work") : NULL;

        if (work == NULL) {
            puts(dlerror());
            return 1;
        }
        printf("plugin %d says %d\n", i - 1, work());
        fflush(stdout);
        if (strcmp(argv[1], "again") == 0)
            dlclose(plugin);
    }
    return 0;
}
