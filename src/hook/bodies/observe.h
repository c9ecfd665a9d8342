/* SPDX-License-Identifier: MIT */
/*
 * The body of a hook that calls the driver, looks at the code and returns it. The code may say that
 * the context is broken, or that memory has run out. In that case the call is made once more if
 * idle memory was released (hook/oom.def lists the calls for which that is allowed), else it
 * becomes an event of the report. A call that succeeds pays one comparison.
 *
 * The parameters of each function are a1, a2, ... (hook/prototypes).
 */
#ifndef CW_HOOK_OBSERVE_H
#define CW_HOOK_OBSERVE_H

#include "hook/bodies/call.h"
#include "hook/bodies/pooled.h"
#include "hook/prototypes.inc"

#define CW_OBSERVED_BODY(symbol, flags, then)                                                      \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        CUresult rc = CW_REAL(symbol) CW_ARGS_##symbol;                                            \
                                                                                                   \
        if (CW_UNLIKELY(rc != CUDA_SUCCESS)) {                                                     \
            struct cw_call call = {.caller = CW_CALLER, flags};                                    \
                                                                                                   \
            while (cw_call_observe(&call, CW_HOOK_##symbol, rc))                                   \
                rc = CW_REAL(symbol) CW_ARGS_##symbol;                                             \
        }                                                                                          \
        then;                                                                                      \
        return rc;                                                                                 \
    }

#define CW_OBSERVED(symbol)            CW_OBSERVED_BODY(symbol, .on = 0, (void)0)
#define CW_OBSERVED_THEN(symbol, then) CW_OBSERVED_BODY(symbol, .on = 0, then)
/* One whose first answer stands. */
#define CW_OBSERVED_ONCE(symbol) CW_OBSERVED_BODY(symbol, .is_once = 1, (void)0)
/* For a call that may be about another device than the current context's. */
#define CW_OBSERVED_ON(symbol, ordinal) CW_OBSERVED_BODY(symbol, .on = cw_call_on(ordinal), (void)0)

/* The body of a hook that frees what its first argument names, and may wait for that. */
#define CW_FREES(symbol, space)                                                                    \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_pool_context *pool_context;                                                      \
        struct cw_request_free freed;                                                              \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        cw_request_free_begin(space, (uint64_t)(uintptr_t)a1, &freed);                             \
        pool_context = cw_pooled_enter_driver(freed.block);                                        \
        rc = CW_REAL(symbol) CW_ARGS_##symbol;                                                     \
        cw_pooled_leave_driver(pool_context, rc);                                                  \
        cw_call_freed(&call, rc, &freed);                                                          \
        return rc;                                                                                 \
    }

#endif
