/* SPDX-License-Identifier: MIT */
/* The common part of the hook bodies. See call.h. */
#include "hook/bodies/call.h"

#include "core/account/budget.h"
#include "core/control/lifecycle.h"
#include "hook/resolve/fatal_code.h"
#include "core/device/context.h"
#include "core/limits/limit.h"
#include "core/reclaim/reclaim.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "core/process/gate.h"
#include "hook/start.h"
#include "hook/services/oom_dump.h"

_Atomic uint32_t cw_call_texts[CW_HOOK_COUNT + CW_RUNTIME_MAX];

void cw_call_reset(void)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(cw_call_texts); i++)
        atomic_store_explicit(&cw_call_texts[i], 0, memory_order_relaxed);
    cw_thread.api = 0;
}

uint32_t cw_call_api_text(enum cw_hook hook)
{
    const struct cw_hook_row *row = &cw_hook_rows[hook];
    uint32_t text = atomic_load_explicit(cw_call_text_at(hook), memory_order_relaxed), none = 0;

    if (CW_LIKELY(text != 0))
        return text;
    text = cw_site_text(cw_thread.api != 0 ? cw_runtime_name(cw_thread.api)
                        : row->base        ? row->base
                                           : row->symbol);
    /* Two threads may add it at once: one text wins, so that one name is one site. */
    if (!atomic_compare_exchange_strong(cw_call_text_at(hook), &none, text))
        text = none;
    return text;
}

int cw_call_begin_named(struct cw_call *call, enum cw_hook hook)
{
    call->api = cw_call_api_text(hook);
    return 1;
}

/* Calls that a capture forbids, or permits, as it does the driver's free. */
static int is_of_memory(enum cw_hook hook)
{
    return hook == CW_HOOK_cuMemAlloc_v2 || hook == CW_HOOK_cuMemFree_v2 ||
           hook == CW_HOOK_cuMemAllocPitch_v2 || hook == CW_HOOK_cuMemAllocManaged;
}

int cw_call_begin_first(struct cw_call *call, enum cw_hook hook, void *caller)
{
    if (!cw_start_arm_at_driver()) {
        if (atomic_load(&cw_session.state) == CW_SESSION_DISARMED && is_of_memory(hook))
            cw_lifecycle_give_back();
        return 0;
    }
    cw_thread.depth = 1;
    cw_thread_slot(); /* here, where no lock is held */
    return cw_call_fill(call, hook, caller);
}

int cw_call_enter_any(struct cw_call *call, enum cw_hook hook, void *caller)
{
    return cw_call_enter_hot(call, hook, caller);
}

/* ---- limits, and what is tried when there is no memory ---- */

int cw_call_injects_slowly(struct cw_call *call, uint64_t bytes)
{
    if (call->attempts++ != 0 || !cw_inject_fails(bytes))
        return 0;
    call->cause = CW_CAUSE_INJECTED;
    call->bytes = bytes;
    return 1;
}

/* 1: the program has freed something, and the claim may be tried again. */
static int ask_program(struct cw_call *call, struct cw_ladder *ladder)
{
    uint32_t none;

    if (cw_ladder_climb(ladder, CW_CAUSE_BUDGET, &none) == CW_LADDER_ASK)
        return 1;
    cw_budget_refused(&call->claim);
    call->cause = CW_CAUSE_BUDGET;
    call->bytes = ladder->bytes;
    return 0;
}

int cw_call_claim_after_all(struct cw_call *call, unsigned device, uint64_t bytes)
{
    struct cw_ladder ladder;
    uint8_t current;

    if (device >= CW_MAX_DEVICES && cw_context_current(&current) == 0) {
        call->claim.budget = 0;
        return 1; /* the driver must refuse */
    }
    cw_ladder_begin(&ladder, device >= CW_MAX_DEVICES ? current : (uint8_t)device, bytes);
    do
        if (!ask_program(call, &ladder))
            return 0;
    while (cw_budget_claim(bytes, &call->claim) != 0);
    cw_ladder_helped(&ladder, cw_site_here(call->api, CW_KIND_DEVICE, ladder.device));
    call->is_claimed = 1;
    call->has_asked = ladder.has_asked;
    return 1;
}

static void unclaim(struct cw_call *call)
{
    if (CW_UNLIKELY(call->is_claimed))
        cw_budget_give_back(&call->claim);
    call->is_claimed = 0;
}

/* 0: an injected failure, or beyond a budget. */
static CW_NOINLINE int may_guarded(struct cw_call *call, unsigned device, uint64_t bytes)
{
    if (cw_call_injects(call, bytes))
        return 0;
    return !cw_budget_is_on() || device == CW_DEVICE_HOST || call->is_claimed ||
           cw_call_claim(call, device, bytes);
}

int cw_call_may(struct cw_call *call, unsigned device, uint64_t bytes)
{
    enum cw_cause cause;

    call->device = (uint8_t)device;
    call->bytes = bytes;
    call->cause = CW_CAUSE_DRIVER;
    if (CW_UNLIKELY(cw_guard_any() != 0) && !may_guarded(call, device, bytes))
        return 0;
    if (CW_LIKELY(!cw_limit_is_on()) || device >= CW_DEVICES ||
        cw_limit_reserve(call->device, bytes, &call->reserved, &cause) == 0)
        return 1;
    call->cause = (uint8_t)cause;
    return 0;
}

int cw_call_may_here(struct cw_call *call, uint64_t bytes)
{
    uint8_t device;

    /* Only a limit needs the device. */
    if (CW_LIKELY(!cw_limit_is_on() && cw_guard_any() == 0))
        return cw_call_may(call, CW_DEVICES, bytes);
    /* Without a context, the driver must refuse. */
    return cw_context_current(&device) == 0 || cw_call_may(call, device, bytes);
}

void cw_call_unreserve(struct cw_call *call)
{
    if (CW_UNLIKELY(call->reserved != 0))
        cw_limit_cancel(call->device, call->reserved);
    call->reserved = 0;
}

/* Nothing that is idle would help. */
static int is_final(const struct cw_call *call)
{
    return call->cause == CW_CAUSE_INJECTED || call->cause == CW_CAUSE_BUDGET;
}

/* However the call has ended, it no longer looks for memory. */
static void stop_climbing(struct cw_call *call)
{
    if (CW_UNLIKELY(call->is_climbing))
        cw_ladder_end(&call->ladder);
    call->is_climbing = 0;
}

static void begin_to_climb(struct cw_call *call, unsigned device)
{
    if (call->is_climbing)
        return;
    call->is_climbing = 1;
    cw_ladder_begin(&call->ladder, (uint8_t)device, call->bytes);
    call->ladder.reclaims = call->reclaims;
    call->ladder.has_asked = call->has_asked;
}

enum cw_ladder_step cw_call_climb(struct cw_call *call, const struct cw_pool_request *pool,
                                  uint64_t given, uint32_t *out_block)
{
    uint8_t device;

    cw_call_unreserve(call);
    *out_block = 0;
    if (is_final(call))
        return CW_LADDER_END;
    cw_context_current(&device);
    if (!call->is_climbing) {
        begin_to_climb(call, device);
        call->ladder.bytes = pool->bytes;
        call->ladder.pool = pool->pool;
        call->ladder.is_rounded = given != pool->bytes;
        call->ladder.may_be_managed =
            pool->class == CW_POOL_DEVICE || pool->class == CW_POOL_PITCHED;
    }
    return cw_ladder_climb(&call->ladder, (enum cw_cause)call->cause, out_block);
}

enum cw_ladder_step cw_call_step_on(struct cw_call *call, CUresult rc, unsigned device,
                                    int may_be_managed)
{
    uint32_t none;

    if (CW_LIKELY(rc != CUDA_ERROR_OUT_OF_MEMORY)) {
        if (rc == CUDA_SUCCESS)
            cw_call_helped(call);
        else
            stop_climbing(call);
        return CW_LADDER_END;
    }
    cw_call_unreserve(call);
    if (is_final(call) || device >= CW_MAX_DEVICES)
        return CW_LADDER_END;
    begin_to_climb(call, device);
    call->ladder.may_be_managed = may_be_managed != 0;
    return cw_ladder_climb(&call->ladder, (enum cw_cause)call->cause, &none);
}

int cw_call_again_on(struct cw_call *call, CUresult rc, unsigned device)
{
    return cw_call_step_on(call, rc, device, 0) == CW_LADDER_ASK;
}

int cw_call_again(struct cw_call *call, CUresult rc)
{
    uint8_t device = 0;

    if (CW_UNLIKELY(rc == CUDA_ERROR_OUT_OF_MEMORY))
        cw_context_current(&device);
    return cw_call_again_on(call, rc, device);
}

void cw_call_helped(struct cw_call *call)
{
    if (CW_LIKELY(!call->is_climbing))
        return;
    call->is_climbing = 0;
    cw_ladder_helped(&call->ladder, cw_site_here(call->api, CW_KIND_DEVICE, call->ladder.device));
}

static void set_owner(enum cw_scope scope, struct cw_request *request)
{
    uint8_t device;
    uint32_t context;

    if (scope == CW_SCOPE_DEVICE)
        return;
    context = cw_context_current(&device);
    request->device = scope == CW_SCOPE_HOST ? CW_DEVICE_HOST : device;
    request->context = scope == CW_SCOPE_CURRENT ? 0 : context;
}

/* The block takes the claim over, unless there is no memory for a record. */
static CW_NOINLINE uint32_t granted_claimed(struct cw_call *call, const struct cw_request *request)
{
    uint32_t record = cw_tracker_next_record(), block;

    cw_budget_adjust(&call->claim, request->bytes);
    cw_budget_expect(record, &call->claim);
    block = cw_request_granted(request, call->api);
    if (block == 0)
        cw_budget_unexpect(record);
    cw_budget_settle(block, &call->claim);
    call->is_claimed = 0;
    return block;
}

static uint32_t granted(struct cw_call *call, struct cw_request *request)
{
    /* The memory is not on the device where it was reserved. */
    if (CW_UNLIKELY(call->reserved != 0 && call->device != request->device))
        cw_call_unreserve(call);
    request->reserved = call->reserved;
    call->reserved = 0;
    return CW_LIKELY(!call->is_claimed) ? cw_request_granted(request, call->api)
                                        : granted_claimed(call, request);
}

static void failed(struct cw_call *call, CUresult rc, const struct cw_request *request)
{
    int is_oom = rc == CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t account;

    stop_climbing(call);
    cw_call_unreserve(call);
    unclaim(call);
    account = cw_request_failed(request, call->api, rc,
                                is_oom ? (enum cw_cause)call->cause : CW_CAUSE_COUNT);
    if (account != 0)
        cw_oom_dump(account);
    if (cw_fatal_code_is((int)rc))
        cw_request_fatal(call->api, rc);
}

uint32_t cw_call_allocated(struct cw_call *call, CUresult rc, enum cw_scope scope,
                           struct cw_request *request)
{
    uint32_t block = 0;

    set_owner(scope, request);
    if (request->held < request->bytes)
        request->held = request->bytes;
    if (CW_LIKELY(rc == CUDA_SUCCESS))
        block = granted(call, request);
    else
        failed(call, rc, request);
    cw_call_leave();
    return block;
}

enum cw_free_result cw_call_free_result(CUresult rc)
{
    /* The driver or the context is gone, and the memory with it: the program has done its part. */
    if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_DEINITIALIZED ||
        rc == CUDA_ERROR_CONTEXT_IS_DESTROYED || cw_fatal_code_is((int)rc))
        return CW_FREE_DONE;
    switch ((int)rc) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_NOT_MAPPED:
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
        return CW_FREE_REFUSED;
    default: /* inside a capture, without a context, before cuInit: not the pointer's fault */
        return CW_FREE_FAILED;
    }
}

/* An address is no handle: what is denied is the stream. */
static enum cw_free_result result_of(const struct cw_request_free *free_call, CUresult rc)
{
    return CW_UNLIKELY(rc == CUDA_ERROR_INVALID_HANDLE) && free_call->how == CW_FREES_ORDERED
               ? CW_FREE_STREAM
               : cw_call_free_result(rc);
}

void cw_call_freed(const struct cw_call *call, CUresult rc, const struct cw_request_free *free_call)
{
    if (free_call->key != 0)
        cw_request_free_end(free_call, call->api, result_of(free_call, rc), rc);
    if (CW_UNLIKELY(cw_fatal_code_is((int)rc)))
        cw_request_fatal(call->api, rc);
    cw_call_leave();
}

static int is_noteworthy(CUresult rc)
{
    return (rc == CUDA_ERROR_OUT_OF_MEMORY || cw_fatal_code_is((int)rc)) && cw_session_is_armed() &&
           cw_thread.depth == 0;
}

static void note(struct cw_call *call, CUresult rc, uint8_t device)
{
    struct cw_request request = {.kind = CW_KIND_DEVICE, .device = device};

    if (cw_fatal_code_is((int)rc))
        cw_request_fatal(call->api, rc);
    else
        failed(call, rc, &request);
}

int cw_call_observe(struct cw_call *call, enum cw_hook hook, CUresult rc)
{
    uint8_t device;
    int again;

    if (rc == CUDA_SUCCESS)
        cw_call_helped(call);
    if (!is_noteworthy(rc)) {
        stop_climbing(call);
        return 0;
    }
    cw_thread.depth = 1;
    if (cw_thread.api == 0)
        cw_thread.caller = call->caller;
    cw_context_current(&device);
    if (call->on != 0)
        device = call->on - 1;
    call->api = cw_call_api_text(hook);
    call->cause = CW_CAUSE_DRIVER;
    again = !call->is_once && cw_call_again_on(call, rc, device);
    if (!again)
        note(call, rc, device);
    cw_call_leave();
    return again;
}

void cw_call_note_on(enum cw_hook hook, CUresult rc, uint8_t on, void *caller)
{
    struct cw_call call = {.caller = caller, .on = on, .is_once = 1};

    if (is_noteworthy(rc))
        cw_call_observe(&call, hook, rc);
}

int cw_call_is_capturing(CUstream stream, enum cw_stream_flavour flavour)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (CW_LIKELY(!cw_gate_is_capturing()))
        return 0;
    if (stream == NULL && flavour == CW_STREAM_THREAD)
        stream = CW_STREAM_PER_THREAD;
    return CW_REAL(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}
