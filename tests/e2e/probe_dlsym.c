/* SPDX-License-Identifier: MIT */
/* Another interposer, for preloading before or after ours: it exports dlsym too, and asks the next
 * one for everything. With PROBE_COUNT set it says at exit how often it was asked for a cu* name.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int asked;

void *dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};

    /* dlvsym finds versioned and, in a library without versions, plain symbols. */
    for (size_t i = 0; next == NULL && i < sizeof(versions) / sizeof(*versions); i++)
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (next == NULL)
        abort();
    if (strncmp(name, "cu", 2) == 0)
        asked++;
    return next(handle, name);
}

static void __attribute__((destructor)) tell(void)
{
    if (getenv("PROBE_COUNT") != NULL)
        fprintf(stderr, "probe: asked %s\n", asked ? "for cu names" : "nothing");
}
