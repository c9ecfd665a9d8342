/* SPDX-License-Identifier: MIT */
/*
 * What the victims that call the driver share.
 *
 * A victim says on standard output what its report must say (init.sh, check_victim):
 *   expect KEY=VALUE...   the SUMMARY line
 *   report REGEX          a line of the text report; "no report REGEX": none
 *   json EXPRESSION       holds of the JSON report (claims.py)
 */
#ifndef VICTIM_H
#define VICTIM_H

#include <cuda.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Functions that must have a frame of their own. */
#define NOINLINE __attribute__((noinline))

/* At once: some victims end without exit handlers, some fork. */
static inline void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

static inline void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s returned %d\n", what, (int)result);
    exit(99);
}
#define MUST(call) must(call, #call)

/* The call must fail, and with this code. */
static inline void must_fail(CUresult result, int code, const char *what)
{
    if ((int)result == code)
        return;
    fprintf(stderr, "%s returned %d, expected %d\n", what, (int)result, code);
    exit(99);
}
#define MUST_FAIL(call, code) must_fail(call, code, #call)

static inline CUcontext use_device(int ordinal)
{
    CUcontext context;
    CUdevice device;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, ordinal));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    return context;
}

#if CUDA_VERSION >= 13000
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
#endif

/* A context that is not the primary one; by the oldest name, which every driver has. */
static inline CUcontext create_context(CUdevice device)
{
    CUcontext context;

    MUST(cuCtxCreate_v2(&context, 0, device));
    return context;
}

#endif
