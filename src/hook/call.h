/* SPDX-License-Identifier: MIT */
/*
 * What every hook body does around the driver's call.
 *
 *   if (!cw_call_enter(&call, CW_HOOK_f, CW_CALLER))
 *       return CW_REAL(f)(...);                    not accounting, or already inside a hook
 *   do
 *       rc = CW_REAL(f)(...);
 *   while (cw_call_again(&call, rc));              out of memory, and something idle was given back
 *   cw_call_allocated(&call, rc, &request);        or _freed, or just cw_call_leave
 *   return rc;
 *
 * Between enter and leave the thread's other hooks pass straight through: what the driver calls on
 * the way is the driver's business. The driver's code is returned unaltered.
 */
#ifndef CW_HOOK_CALL_H
#define CW_HOOK_CALL_H

#include <stdint.h>

#include "core/graph.h"
#include "core/request.h"
#include "core/session.h"
#include "core/thread.h"
#include "hook/hook_table.h"

#define CW_CALLER __builtin_return_address(0)

/* The handle that means the calling thread's own default stream. */
#define CW_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)

struct cw_call {
    uint32_t api; /* text of the name that the program called */
    int retries;
    uint32_t reclaims; /* cw_request_reclaims() when it began */
};

int cw_call_enter_slowly(struct cw_call *call, enum cw_hook hook, void *caller);

static inline int cw_call_enter(struct cw_call *call, enum cw_hook hook, void *caller)
{
    if (cw_thread.depth != 0)
        return 0;
    return cw_call_enter_slowly(call, hook, caller);
}

static inline void cw_call_leave(void)
{
    cw_thread.depth = 0;
}

/* 1: call the driver once more; memory was given back on the current context's device, or on the
 * one that the call is about. */
int cw_call_again(struct cw_call *call, CUresult rc);
int cw_call_again_on(struct cw_call *call, CUresult rc, unsigned device);

/* Whose the block is: decides device and context of the request. */
enum cw_scope {
    CW_SCOPE_CONTEXT, /* the current context: its device, and gone with it */
    CW_SCOPE_HOST,    /* host memory of the current context */
    CW_SCOPE_DEVICE,  /* request->device says it; outlives contexts */
    CW_SCOPE_CURRENT, /* the current context's device, but outlives contexts */
};

/* Accounts for an allocating call's outcome and leaves. The block, or 0. */
uint32_t cw_call_allocated(struct cw_call *call, CUresult rc, enum cw_scope scope,
                           struct cw_request *request);

/* Accounts for the outcome of a free and leaves. */
void cw_call_freed(const struct cw_call *call, CUresult rc,
                   const struct cw_request_free *free_call);

/* How a refusing or failing free counts: see the table in call.c. */
enum cw_free_result cw_call_free_result(CUresult rc);

/* 1 for a code after which cuda.h demands that the process or the context be started again. */
int cw_call_is_fatal(CUresult rc);

/* A call that neither allocates nor frees returned an error. 1: call the driver once more. */
int cw_call_observe(enum cw_hook hook, CUresult rc);

/* 1 while the stream captures; NULL means the flavour's default stream. */
int cw_call_is_capturing(CUstream stream, enum cw_stream_flavour flavour);

/* The name that the program called, for a hook or the runtime function around it. */
uint32_t cw_call_api_text(enum cw_hook hook);
void cw_call_reset(void); /* in a forked child */

/* Runtime functions (hooks_runtime.c): ids for cw_thread.api, counted from 1. */
const char *cw_runtime_name(uint32_t api);
#define CW_RUNTIME_MAX 64

#endif
