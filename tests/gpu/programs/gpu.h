/* SPDX-License-Identifier: MIT */
/*
 * What the programs share. Each says on standard output what its report must say, in the words of
 * tests/e2e/victims/victim.h, and the results of its work on the device, which must not change
 * under the library.
 */
#ifndef GPU_H
#define GPU_H

#include <cuda_runtime.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../e2e/victims/say.h"

/* Functions that must have a frame of their own, under this very name. */
#define SITE extern "C" __attribute__((noinline))

static inline int find_shared_runtime(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    if (strstr(object->dlpi_name, "libcudart.so") != NULL)
        *(bool *)found = true;
    return 0;
}

/* The API that the report must name: the runtime's function where the runtime is shared; the
 * driver's, which begins with what is given, where it was linked in. */
static inline void say_api(const char *site, const char *runtime_name, const char *driver_begin)
{
    bool is_shared = false;

    dl_iterate_phdr(find_shared_runtime, &is_shared);
    if (is_shared) {
        say("json site('%s')['api'] == '%s'", site, runtime_name);
        say("report  %s, (device [0-9]+|host), ", runtime_name);
    } else {
        say("json site('%s')['api'].startswith('%s') # %s", site, driver_begin, runtime_name);
    }
}

#endif
