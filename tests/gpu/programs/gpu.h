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
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions that must have a frame of their own, under this very name. */
#define SITE extern "C" __attribute__((noinline))

static inline void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* Both results, cudaError_t and CUresult, are 0 for success. */
static inline void must(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s returned %d\n", what, result);
    exit(99);
}
#define MUST(call) must((int)(call), #call)

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
