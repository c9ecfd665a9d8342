/* SPDX-License-Identifier: MIT */
/* What a program finds in a library: lookup LIBRARY NAME...; "call" before a name calls int
 * NAME(void). */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        puts(dlerror());
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        int call = strcmp(argv[i], "call") == 0;
        void *found = dlsym(library, argv[i += call]);

        printf("%s %s", argv[i],
               found == NULL                      ? "none"
               : found == dlsym(library, argv[i]) ? "found"
                                                  : "moves");
        if (call && found != NULL)
            printf(", says %d", ((int (*)(void))found)());
        putchar('\n');
    }
    return 0;
}
