/* SPDX-License-Identifier: MIT */
/*
 * Allocations that the pool may serve, and frees that it may keep, around the driver's own
 * functions (core/pool/pool.h). To be used between cw_call_enter and the driver.
 */
#ifndef CW_HOOK_POOLED_H
#define CW_HOOK_POOLED_H

#include "core/cache/pool_context.h"
#include "core/pool/pool.h"
#include "hook/bodies/call.h"

/* An address of no memory, for the driver's answer about such addresses. */
#define CW_NOBODYS_ADDRESS ((CUdeviceptr)1)

/* The common part of cuMemAlloc, cuMemAllocHost and cuMemHostAlloc. Serves or asks the driver,
 * writes *out (a CUdeviceptr or void *), accounts for it, and leaves. */
CUresult cw_pooled_alloc(struct cw_call *call, enum cw_pool_class class, void *out, size_t bytes);
CUresult cw_pooled_alloc_pitch(struct cw_call *call, CUdeviceptr *dptr, size_t *pitch, size_t width,
                               size_t height, unsigned element);

typedef CUresult (*cw_free_fn)(uint64_t key);
/* Keeps the block or asks the driver, accounts for it, leaves. how: which blocks the call frees. */
CUresult cw_pooled_free(struct cw_call *call, enum cw_freeing how, uint64_t key, cw_free_fn driver);
/* The same for functions with more arguments: 1 when it is done, with the code and the call left;
 * 0: ask the driver, then cw_call_freed. *rc: on entry, the function's answer for memory that the
 * program does not own. */
int cw_pooled_free_begin(struct cw_call *call, enum cw_freeing how, uint64_t key,
                         struct cw_request_free *out_freed, CUresult *rc);

/* Around a call of the program's that the driver may let wait for the context's work: of a block,
 * or for 0 of the current one (cw_pool_context_enter_driver). NULL: there is no pool. */
struct cw_pool_context *cw_pooled_enter_driver(uint32_t block);
void cw_pooled_leave_driver(struct cw_pool_context *pool_context, CUresult rc);

/* The block that holds this address was exported, or got attributes that stick to its memory: it
 * will not be kept when it is freed. */
void cw_pooled_export(uint64_t address);

/* 1 if the address lies in a block that the program has freed and the pool keeps: freed memory to
 * the program, but not to the driver. */
int cw_pooled_is_idle(uint64_t address);

#endif
