/* SPDX-License-Identifier: MIT */
/* What judge.c uses of judge_driver.c: its own functions, and those of the driver. */
#ifndef JUDGE_H
#define JUDGE_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;

/* How often a function of the driver was called. */
struct judge_call {
    const char *name;
    unsigned long count;
    int is_own; /* only the programs call it, as often with the library as without */
};

/* Makes allocations and frees cost nothing, and a free not wait. */
void judge_make_ideal(void);
/* The virtual clock, in ns. judge_work moves it by the program's own work. */
uint64_t judge_now(void);
void judge_work(uint64_t ns);
/* The most bytes that the device had in use at once. */
uint64_t judge_held_most(void);
/* Sets all counts to 0. */
void judge_reset_calls(void);
/* Returns NULL after the last function. */
const struct judge_call *judge_call_at(unsigned number);

CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(void **ctx, int device);
CUresult cuCtxSetCurrent(void *ctx);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(uint64_t *dptr, size_t bytes);
CUresult cuMemFree_v2(uint64_t dptr);
CUresult cuStreamCreate(void **stream, unsigned flags);
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags);
CUresult cuEventCreate(void **event, unsigned flags);
CUresult cuEventRecord(void *event, void *stream);
/* The kernel runs for *(uint64_t *)parameters[0] ns. */
CUresult cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        void *stream, void **parameters, void **extra);

#endif
