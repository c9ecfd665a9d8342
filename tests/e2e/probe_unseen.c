/* SPDX-License-Identifier: MIT */
/* A library to be preloaded behind ours, whose RTLD_NEXT is the driver's own function. */
#include <dlfcn.h>

void *probe_next_of(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}
