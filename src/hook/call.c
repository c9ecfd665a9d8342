/* SPDX-License-Identifier: MIT */
/* The common part of the hook bodies. See call.h. */
#include "hook/call.h"

#include "core/context.h"
#include "core/site.h"
#include "hook/entry.h"

/* Texts of the names in the arena, made when first needed; driver hooks first, then runtime
 * functions. */
static _Atomic uint32_t api_texts[CW_HOOK_COUNT + CW_RUNTIME_MAX];

/* Errors after which cuda.h demands that the process be restarted, or the context be destroyed
 * (710). Numbers: older headers do not have all the names. */
static const int fatal_codes[] = {
    226, /* CONTAINED */
    700, /* ILLEGAL_ADDRESS */
    702, /* LAUNCH_TIMEOUT */
    710, /* ASSERT */
    714, /* HARDWARE_STACK_ERROR */
    715, /* ILLEGAL_INSTRUCTION */
    716, /* MISALIGNED_ADDRESS */
    717, /* INVALID_ADDRESS_SPACE */
    718, /* INVALID_PC */
    719, /* LAUNCH_FAILED */
    721, /* TENSOR_MEMORY_LEAK */
    810, /* MPS_CLIENT_TERMINATED */
    911, /* EXTERNAL_DEVICE */
};

int cw_call_is_fatal(CUresult rc)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(fatal_codes); i++)
        if ((int)rc == fatal_codes[i])
            return 1;
    return 0;
}

void cw_call_reset(void)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(api_texts); i++)
        atomic_store_explicit(&api_texts[i], 0, memory_order_relaxed);
    cw_thread.api = 0;
}

/* Other threads may be faster to what was given back. */
#define RETRIES_MAX 3

static uint32_t text_of(size_t slot, const char *name)
{
    uint32_t text = atomic_load_explicit(&api_texts[slot], memory_order_relaxed);

    if (CW_UNLIKELY(text == 0)) {
        uint32_t none = 0;

        text = cw_site_text(name);
        /* Two threads at once: one text wins, so that one name is one site. */
        if (!atomic_compare_exchange_strong(&api_texts[slot], &none, text))
            text = none;
    }
    return text;
}

uint32_t cw_call_api_text(enum cw_hook hook)
{
    const struct cw_hook_row *row = &cw_hook_rows[hook];

    if (cw_thread.api != 0)
        return text_of(CW_HOOK_COUNT + cw_thread.api - 1, cw_runtime_name(cw_thread.api));
    return text_of(hook, row->base ? row->base : row->symbol);
}

int cw_call_enter_slowly(struct cw_call *call, enum cw_hook hook, void *caller)
{
    if (CW_UNLIKELY(!cw_session_is_armed()) && !cw_entry_arm())
        return 0;
    cw_thread.depth = 1;
    if (cw_thread.api == 0)
        cw_thread.caller = caller;
    cw_thread.accounted++;
    cw_thread_slot(); /* here, where no lock is held */
    call->api = cw_call_api_text(hook);
    call->retries = 0;
    call->reclaims = cw_request_reclaims();
    return 1;
}

int cw_call_again_on(struct cw_call *call, CUresult rc, unsigned device)
{
    if (CW_LIKELY(rc != CUDA_ERROR_OUT_OF_MEMORY) || call->retries == RETRIES_MAX ||
        device >= CW_MAX_DEVICES || !cw_request_wants_retry((uint8_t)device, call->reclaims))
        return 0;
    call->retries++;
    call->reclaims = cw_request_reclaims();
    return 1;
}

int cw_call_again(struct cw_call *call, CUresult rc)
{
    uint8_t device;

    if (CW_LIKELY(rc != CUDA_ERROR_OUT_OF_MEMORY))
        return 0;
    cw_context_current(&device);
    return cw_call_again_on(call, rc, device);
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

uint32_t cw_call_allocated(struct cw_call *call, CUresult rc, enum cw_scope scope,
                           struct cw_request *request)
{
    uint32_t block = 0;

    set_owner(scope, request);
    if (request->held < request->bytes)
        request->held = request->bytes;
    if (CW_LIKELY(rc == CUDA_SUCCESS)) {
        block = cw_request_granted(request, call->api);
    } else {
        cw_request_failed(request, call->api, rc, rc == CUDA_ERROR_OUT_OF_MEMORY);
        if (cw_call_is_fatal(rc))
            cw_request_fatal(call->api, rc);
    }
    cw_call_leave();
    return block;
}

enum cw_free_result cw_call_free_result(CUresult rc)
{
    /* The driver is gone, or the context is: the program has done its part, and the memory went
     * too. */
    if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_DEINITIALIZED ||
        rc == CUDA_ERROR_CONTEXT_IS_DESTROYED || cw_call_is_fatal(rc))
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

void cw_call_freed(const struct cw_call *call, CUresult rc, const struct cw_request_free *free_call)
{
    if (free_call->key != 0)
        cw_request_free_end(free_call, call->api, cw_call_free_result(rc), rc);
    if (CW_UNLIKELY(cw_call_is_fatal(rc)))
        cw_request_fatal(call->api, rc);
    cw_call_leave();
}

int cw_call_observe(enum cw_hook hook, CUresult rc)
{
    struct cw_request request = {.kind = CW_KIND_DEVICE};
    uint8_t device;
    int again = 0;

    if ((rc != CUDA_ERROR_OUT_OF_MEMORY && !cw_call_is_fatal(rc)) || !cw_session_is_armed() ||
        cw_thread.depth != 0)
        return 0;
    cw_thread.depth = 1;
    cw_context_current(&device);
    request.device = device;
    if (cw_call_is_fatal(rc))
        cw_request_fatal(cw_call_api_text(hook), rc);
    else if (cw_request_wants_retry(device, cw_request_reclaims()))
        again = 1;
    else
        cw_request_failed(&request, cw_call_api_text(hook), rc, 1);
    cw_call_leave();
    return again;
}

int cw_call_is_capturing(CUstream stream, enum cw_stream_flavour flavour)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (CW_LIKELY(!cw_capture_is_active()))
        return 0;
    if (stream == NULL && flavour == CW_STREAM_THREAD)
        stream = CW_STREAM_PER_THREAD;
    return CW_REAL(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}
