/* SPDX-License-Identifier: MIT */
/* What the victims that call the runtime share; how they say what they expect: victim.h. */
#ifndef VICTIM_RT_H
#define VICTIM_RT_H

#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static inline void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

static inline void must(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s returned %d\n", what, (int)result);
    exit(99);
}
#define MUST(call) must(call, #call)

static inline void must_fail(cudaError_t result, int code, const char *what)
{
    if ((int)result == code)
        return;
    fprintf(stderr, "%s returned %d, expected %d\n", what, (int)result, code);
    exit(99);
}
#define MUST_FAIL(call, code) must_fail(call, code, #call)

#endif
