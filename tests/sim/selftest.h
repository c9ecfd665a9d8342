/* SPDX-License-Identifier: MIT */
/* What the self-tests that are linked with the simulated driver share. */
#ifndef CUSIM_SELFTEST_H
#define CUSIM_SELFTEST_H

#include <cuda.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cusim.h"

static unsigned ntests, nfailures;

static inline void ok_(bool is_ok, int line, const char *sentence)
{
    printf("%sok %u - %s\n", is_ok ? "" : "not ", ++ntests, sentence);
    if (!is_ok) {
        printf("# line %d\n", line);
        nfailures++;
    }
    fflush(stdout);
}

#define ok(is_ok, sentence) ok_(is_ok, __LINE__, sentence)

static inline void must_(CUresult status, int line)
{
    if (status == CUDA_SUCCESS)
        return;
    printf("Bail out! line %d: error %d\n", line, status);
    exit(1);
}

#define must(call) must_(call, __LINE__)

static inline size_t free_bytes(void)
{
    size_t available, total;

    must(cuMemGetInfo(&available, &total));
    return available;
}

#endif
