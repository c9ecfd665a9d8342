/* SPDX-License-Identifier: MIT */
/*
 * See runtime.h. Owns the process's cache of which runtime a call site is bound to. No lock: see
 * struct binding. Not thread-local: static storage of that kind is short where the library is
 * loaded late, or beside an auditor.
 */
#include "hook/bodies/runtime.h"

#include "base/log.h"
#include "core/device/context.h"
#include "core/account/tracker.h"
#include "hook/bodies/call.h"
#include "hook/start.h"
#include "hook/resolve/resolve.h"
#include "hook/bodies/runtime_versions.h"

#define BINDINGS 256 /* a power of two */

/* By the slot rule of live/layout_time.h. One that a fork left half written stays so in the child:
 * its call sites are looked up each time. */
static struct binding {
    _Atomic uint32_t turn;  /* odd while it is written; never the same again */
    _Atomic uint32_t epoch; /* of `unloads`: an unloaded module makes all bindings stale */
    _Atomic uint32_t bound; /* the function, and the number of its version */
    _Atomic(void *) caller;
    _Atomic(void *) real;
} bindings[BINDINGS];

static CW_HOT_DATA _Atomic uint32_t unloads = 1; /* so that zeroed bindings are stale */

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

/* NULL: another call site's, or being written. */
static void *find(struct binding *binding, void *caller, uint32_t bound, uint32_t epoch)
{
    uint32_t turn = atomic_load_explicit(&binding->turn, memory_order_acquire);
    void *real = atomic_load_explicit(&binding->real, memory_order_relaxed);
    int is_it = atomic_load_explicit(&binding->caller, memory_order_relaxed) == caller &&
                atomic_load_explicit(&binding->bound, memory_order_relaxed) == bound &&
                atomic_load_explicit(&binding->epoch, memory_order_relaxed) == epoch;

    atomic_thread_fence(memory_order_acquire);
    is_it &= turn % 2 == 0 && atomic_load_explicit(&binding->turn, memory_order_relaxed) == turn;
    return is_it ? real : NULL;
}

/* Not if another thread is writing: the next call looks it up again. */
static void keep(struct binding *binding, void *caller, uint32_t bound, uint32_t epoch, void *real)
{
    uint32_t turn = atomic_load_explicit(&binding->turn, memory_order_relaxed);

    if (turn % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&binding->turn, &turn, turn + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&binding->caller, caller, memory_order_relaxed);
    atomic_store_explicit(&binding->bound, bound, memory_order_relaxed);
    atomic_store_explicit(&binding->epoch, epoch, memory_order_relaxed);
    atomic_store_explicit(&binding->real, real, memory_order_relaxed);
    atomic_store_explicit(&binding->turn, turn + 2, memory_order_release);
}

void cw_runtime_unloaded(void)
{
    atomic_fetch_add(&unloads, 1);
}

static void *real_function(enum cw_runtime function, uint32_t version, void *caller)
{
    uint32_t epoch = atomic_load_explicit(&unloads, memory_order_relaxed);
    uint32_t bound = (uint32_t)function << 16 | version; /* in CW_RUNTIME_VERSIONS, 0: none */
    size_t slot = ((uintptr_t)caller >> 2 ^ (uintptr_t)function * 7 ^ version) & (BINDINGS - 1);
    void *real = find(&bindings[slot], caller, bound, epoch);

    if (CW_LIKELY(real != NULL))
        return real;
    real = cw_resolve_runtime(names[function], versions[version], caller);
    if (real == NULL)
        return (void *)&no_runtime;
    keep(&bindings[slot], caller, bound, epoch, real);
    return real;
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
