/* SPDX-License-Identifier: MIT */
/* See runtime.h. Owns a per-thread cache of which runtime a call site is bound to. */
#include "hook/bodies/runtime.h"

#include "base/log.h"
#include "core/device/context.h"
#include "core/account/tracker.h"
#include "hook/bodies/call.h"
#include "hook/start.h"
#include "hook/resolve/resolve.h"
#include "hook/bodies/runtime_versions.h"

#define BINDINGS 32 /* a power of two */

struct binding {
    void *caller;
    void *real;
    uint16_t function;
    uint16_t version; /* number in CW_RUNTIME_VERSIONS, 0: none */
    uint32_t epoch;   /* of cw_epoch: an unloaded module makes all bindings stale */
};

static CW_TLS struct binding bindings[BINDINGS];

/* The version by which the current call came here (hook/answers/runtime_stubs.S), 0: none. */
CW_HIDDEN CW_TLS uint32_t cw_runtime_bound;

static const char *const versions[] = {NULL,
#define NODE(number, node) [number] = #node,
                                       CW_RUNTIME_VERSIONS(NODE)
#undef NODE
};

static const char *const names[CW_RUNTIME_COUNT] = {
#define RUNTIME(symbol) [CW_RUNTIME_##symbol] = #symbol,
#include "hook/hooks.def"
};

_Static_assert(CW_RUNTIME_COUNT <= CW_RUNTIME_MAX, "grow CW_RUNTIME_MAX");

const char *cw_runtime_name(uint32_t api)
{
    return api < CW_RUNTIME_COUNT && names[api] ? names[api] : "";
}

/* cudaErrorInitializationError: a runtime's answer without a driver. */
static int no_runtime(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    cw_log_once(&said, CW_LOG_WARN,
                "a runtime function was called and no libcudart defines it; the call fails");
    return 3;
}

static void *real_function(enum cw_runtime function, uint32_t version, void *caller)
{
    uint32_t epoch = atomic_load_explicit(&cw_epoch, memory_order_relaxed);
    size_t slot = ((uintptr_t)caller >> 2 ^ (uintptr_t)function * 7 ^ version) & (BINDINGS - 1);
    struct binding *binding = &bindings[slot];

    if (CW_UNLIKELY(binding->caller != caller || binding->function != (uint32_t)function ||
                    binding->version != version || binding->epoch != epoch)) {
        void *real = cw_resolve_runtime(names[function], versions[version], caller);

        if (real == NULL)
            return (void *)&no_runtime;
        *binding = (struct binding){.caller = caller,
                                    .real = real,
                                    .function = (uint16_t)function,
                                    .version = (uint16_t)version,
                                    .epoch = epoch};
    }
    return binding->real;
}

void *cw_runtime_enter(struct cw_runtime_call *call, enum cw_runtime function, void *caller)
{
    void *real = real_function(function, cw_runtime_bound, caller);

    cw_runtime_bound = 0;
    *call = (struct cw_runtime_call){
        .function = function, .outer_api = cw_thread.api, .accounted = cw_thread.accounted};
    if (cw_thread.api == 0) {
        cw_thread.api = (uint32_t)function;
        cw_thread.caller = caller;
    }
    return real;
}

void cw_runtime_leave(const struct cw_runtime_call *call)
{
    cw_thread.api = call->outer_api;
}

static int is_unseen(const struct cw_runtime_call *call)
{
    return call->outer_api == 0 && cw_thread.depth == 0 && cw_thread.accounted == call->accounted &&
           cw_start_arm();
}

void cw_runtime_allocated(const struct cw_runtime_call *call, enum cw_kind kind, const void *ptr,
                          size_t bytes)
{
    struct cw_request request = {.kind = kind,
                                 .flags = CW_BLOCK_RUNTIME,
                                 .key = (uint64_t)(uintptr_t)ptr,
                                 .bytes = bytes,
                                 .held = bytes};

    if (ptr == NULL || !is_unseen(call))
        return;
    cw_thread.depth = 1;
    request.context = cw_context_current(&request.device);
    if (cw_kind_counted(kind) == CW_COUNTED_HOST)
        request.device = CW_DEVICE_HOST;
    cw_request_granted(&request, cw_call_api_text(0));
    cw_thread.depth = 0;
}

void cw_runtime_free_begin(struct cw_runtime_call *call, const void *ptr)
{
    uint32_t block;

    call->key = (uint64_t)(uintptr_t)ptr;
    if (ptr == NULL || call->outer_api != 0 || !cw_session_is_armed())
        return;
    block = cw_tracker_find(CW_SPACE_ADDRESS, call->key);
    if (block != 0 && (cw_tracker_at(block)->flags & CW_BLOCK_RUNTIME))
        call->block = cw_tracker_take(CW_SPACE_ADDRESS, call->key);
}

void cw_runtime_free_end(const struct cw_runtime_call *call, int code)
{
    if (call->block != 0)
        cw_tracker_finish(call->block, code == 0 ? CW_FREE_DONE : CW_FREE_REFUSED);
}
