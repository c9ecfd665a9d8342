/* SPDX-License-Identifier: MIT */
/*
 * The steps of every hook body around the driver's call.
 *
 *   if (!cw_call_enter(&call, CW_HOOK_f, CW_CALLER))
 *       return CW_REAL(f)(...);                    not accounting, or already inside a hook
 *   do                                             a limit may be in the way
 *       rc = cw_call_may_here(&call, bytes) ? CW_REAL(f)(...) : CUDA_ERROR_OUT_OF_MEMORY;
 *   while (cw_call_again(&call, rc));              out of memory, and something idle was given back
 *   cw_call_allocated(&call, rc, &request);        or _freed, or just cw_call_leave
 *   return rc;
 *
 * Between enter and leave the thread's other hooks pass straight through: calls that the driver
 * makes are its own business. The driver's code is returned unaltered.
 */
#ifndef CW_HOOK_CALL_H
#define CW_HOOK_CALL_H

#include <stdint.h>

#include "core/account/budget.h"
#include "core/process/due.h"
#include "core/device/graph.h"
#include "core/limits/inject.h"
#include "core/request/ladder.h"
#include "core/pool/pool.h"
#include "core/request/request.h"
#include "core/reclaim/reclaim.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "hook/resolve/hook_table.h"
#include "hook/services/dispatch.h"

#define CW_CALLER __builtin_return_address(0)

/* The handle that means the calling thread's own default stream. */
#define CW_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)

struct cw_call {
    void *caller;        /* of a call that is only observed; NULL: not known */
    uint32_t api;        /* text of the name that the program called */
    uint8_t device;      /* on which memory is taken */
    uint8_t cause;       /* enum cw_cause: why there was none at the last attempt */
    uint8_t attempts;    /* that cw_call_may has seen */
    uint8_t is_climbing; /* the ladder has begun */
    uint8_t is_claimed;  /* `claim` is valid, and not a block's yet */
    uint8_t has_asked;   /* the program, for the claim: once is enough */
    /* For a call that is only observed: 1: it must not be made again; and its device, as ordinal +
     * 1, or 0 for the current context's. */
    uint8_t is_once, on;
    uint64_t bytes;    /* asked for, 0: not known */
    uint64_t reserved; /* of the limit (core/limits/limit.h), for the attempt under way */
    uint32_t reclaims; /* cw_reclaim_reclaims() before the driver was asked */
    struct cw_budget_claim claim; /* core/account/budget.h */
    struct cw_ladder ladder;
};

/* Texts of the names in the arena, made when first needed; driver hooks first, then runtime
 * functions. */
#define CW_RUNTIME_MAX 64
extern CW_HIDDEN _Atomic uint32_t cw_call_texts[CW_HOOK_COUNT + CW_RUNTIME_MAX];

static inline _Atomic uint32_t *cw_call_text_at(enum cw_hook hook)
{
    return &cw_call_texts[cw_thread.api != 0 ? CW_HOOK_COUNT + cw_thread.api - 1 : (unsigned)hook];
}

/* The first call by this name. */
CW_COLD int cw_call_begin_named(struct cw_call *call, enum cw_hook hook);
/* The first call of the process or the thread. */
CW_COLD int cw_call_begin_first(struct cw_call *call, enum cw_hook hook, void *caller);

static inline int cw_call_fill(struct cw_call *call, enum cw_hook hook, void *caller)
{
    cw_thread.depth = 1;
    if (cw_thread.api == 0)
        cw_thread.caller = caller;
    cw_thread.accounted++;
    cw_thread.stream = 0;
    call->api = atomic_load_explicit(cw_call_text_at(hook), memory_order_relaxed);
    call->cause = CW_CAUSE_DRIVER;
    call->attempts = 0;
    call->is_climbing = 0;
    call->is_claimed = 0;
    call->has_asked = 0;
    call->bytes = 0;
    call->reserved = 0;
    call->reclaims = cw_reclaim_reclaims();
    return CW_LIKELY(call->api != 0) ? 1 : cw_call_begin_named(call, hook);
}

/* 1: the call is the program's own and is accounted for; 0: it comes from inside another call, or
 * there is no session: pass it to the driver. Inline, for the most frequent calls. */
static CW_INLINE int cw_call_enter_hot(struct cw_call *call, enum cw_hook hook, void *caller)
{
    if (cw_thread.depth != 0)
        return 0;
    if (CW_UNLIKELY(!cw_session_is_armed() || !cw_thread.slot_asked))
        return cw_call_begin_first(call, hook, caller);
    return cw_call_fill(call, hook, caller);
}

int cw_call_enter_any(struct cw_call *call, enum cw_hook hook, void *caller);

static inline int cw_call_enter(struct cw_call *call, enum cw_hook hook, void *caller)
{
    return cw_thread.depth != 0 ? 0 : cw_call_enter_any(call, hook, caller);
}

/* What has come due meanwhile is done here: the thread holds no lock, the driver has answered. */
static inline void cw_call_leave(void)
{
    if (CW_UNLIKELY(cw_due_is_any()))
        cw_dispatch_due();
    cw_thread.depth = 0;
}

/* 1: ask the driver for so many bytes, which fit the device's limit and are reserved; 0: the
 * attempt has failed with out of memory, without the driver. Host memory has no limit. The second
 * form: on the current context's device. */
int cw_call_may(struct cw_call *call, unsigned device, uint64_t bytes);
int cw_call_may_here(struct cw_call *call, uint64_t bytes);

CW_COLD int cw_call_claim_after_all(struct cw_call *call, unsigned device, uint64_t bytes);

/* 1: the budget of the thread's tag has room for so many bytes, which are claimed, or there is
 * none; 0: the attempt has failed with out of memory, and nothing else is to be tried. The program
 * has been asked to free something. cw_call_may asks by itself, unless it was asked before: what
 * the driver needs beyond the program's request does not count. */
static CW_INLINE int cw_call_claim(struct cw_call *call, unsigned device, uint64_t bytes)
{
    if (CW_UNLIKELY(cw_budget_claim(bytes, &call->claim) != 0))
        return cw_call_claim_after_all(call, device, bytes);
    call->is_claimed = 1;
    return 1;
}

int cw_call_injects_slowly(struct cw_call *call, uint64_t bytes);

/* 1: FAIL makes this call fail. Once for each call; cw_call_may asks by itself. */
static inline int cw_call_injects(struct cw_call *call, uint64_t bytes)
{
    return cw_inject_is_on() && cw_call_injects_slowly(call, bytes);
}

/* 1: try once more, because memory was released on the device of cw_call_may, else on the current
 * context's. The second form: on the call's device. */
int cw_call_again(struct cw_call *call, CUresult rc);
int cw_call_again_on(struct cw_call *call, CUresult rc, unsigned device);
/* The same for a call that managed memory may serve: CW_LADDER_MANAGED, CW_LADDER_ASK or
 * CW_LADDER_END. */
enum cw_ladder_step cw_call_step_on(struct cw_call *call, CUresult rc, unsigned device,
                                    int may_be_managed);
/* The same for a call that the pool, or managed memory, might serve. */
enum cw_ladder_step cw_call_climb(struct cw_call *call, const struct cw_pool_request *pool,
                                  uint64_t given, uint32_t *out_block);
/* Gives up what cw_call_may has reserved. */
void cw_call_unreserve(struct cw_call *call);
/* The request was served in the end: the rung tried last has helped. */
void cw_call_helped(struct cw_call *call);

/* The owner of a block: decides device and context of the request. */
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

/* Takes the outcome of a call that neither allocates nor frees. 1: call the driver once more, and
 * pass that outcome. *call: zeroed before the first time. */
int cw_call_observe(struct cw_call *call, enum cw_hook hook, CUresult rc);
/* For the member `on`. */
static inline uint8_t cw_call_on(int ordinal)
{
    return (uint8_t)(ordinal >= 0 && ordinal < CW_MAX_DEVICES ? ordinal + 1 : 0);
}
/* The same for a call that must not be repeated; on: as the member. */
void cw_call_note_on(enum cw_hook hook, CUresult rc, uint8_t on, void *caller);

static inline void cw_call_note(enum cw_hook hook, CUresult rc, void *caller)
{
    if (CW_UNLIKELY(rc != CUDA_SUCCESS))
        cw_call_note_on(hook, rc, 0, caller);
}

/* 1 while the stream captures; NULL means the flavour's default stream. */
int cw_call_is_capturing(CUstream stream, enum cw_stream_flavour flavour);

/* The name that the program called, for a hook or the runtime function around it. */
uint32_t cw_call_api_text(enum cw_hook hook);
void cw_call_reset(void); /* in a forked child */

/* Runtime functions (hooks_runtime.c): ids for cw_thread.api, counted from 1; CW_RUNTIME_MAX at
 * most. */
const char *cw_runtime_name(uint32_t api);

#endif
