/* SPDX-License-Identifier: MIT */
/*
 * The body of a hook that calls, looks at the code and returns it: what the call is for concerns
 * nobody here, but by its code the program may learn that its context is broken, or that memory has
 * run out. Then it is made once more if something idle was given back (hook/oom.def says of which
 * calls that is true), and is else an event of the report. A call that succeeds pays one
 * comparison.
 *
 * The parameters of each function are a1, a2, ... (hook/prototypes).
 */
#ifndef CW_HOOK_OBSERVE_H
#define CW_HOOK_OBSERVE_H

#include "hook/bodies/call.h"
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
/* One that is about another device than the current context's, perhaps. */
#define CW_OBSERVED_ON(symbol, ordinal) CW_OBSERVED_BODY(symbol, .on = cw_call_on(ordinal), (void)0)

#endif
