/* SPDX-License-Identifier: MIT */
/* What the programs of e2e and gpu share, whatever they call. Results of the driver and of the
 * runtime are 0 for success. */
#ifndef VICTIM_SAY_H
#define VICTIM_SAY_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Functions that must have a frame of their own. */
#define NOINLINE __attribute__((noinline))

/* At once: some victims end without exit handlers, some fork. A line of several threads is one. */
static inline void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    flockfile(stdout);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    funlockfile(stdout);
    va_end(arguments);
}

static inline void must(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s returned %d\n", what, result);
    exit(99);
}
#define MUST(call) must((int)(call), #call)

/* The call must fail, and with this code. */
static inline void must_fail(int result, int code, const char *what)
{
    if (result == code)
        return;
    fprintf(stderr, "%s returned %d, expected %d\n", what, result, code);
    exit(99);
}
#define MUST_FAIL(call, code) must_fail((int)(call), code, #call)

#endif
