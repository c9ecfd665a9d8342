/* SPDX-License-Identifier: MIT */
/* Bodies of families CONTEXT and MODULE: what comes and goes with contexts. */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/observe.h"

#include "api/prefetches.h"
#include "core/device/context.h"
#include "core/device/variable.h"
#include "hook/services/background_thread.h"

static uint64_t handle_value(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* ---- contexts ---- */

/* Creating a context takes memory, so it may run out of memory. */
static void account_created(CUresult rc, CUcontext *pctx, CUdevice dev, enum cw_hook hook,
                            void *caller)
{
    if (rc == CUDA_SUCCESS && pctx != NULL)
        cw_context_created(handle_value(*pctx), (unsigned)dev);
    cw_call_leave();
    cw_call_note_on(hook, rc, cw_call_on(dev), caller);
}

#define CREATES(symbol, dev)                                                                       \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        do                                                                                         \
            rc = CW_REAL(symbol) CW_ARGS_##symbol;                                                 \
        while (cw_call_again_on(&call, rc, (unsigned)(dev)));                                      \
        account_created(rc, a1, dev, CW_HOOK_##symbol, CW_CALLER);                                 \
        return rc;                                                                                 \
    }

CREATES(cuCtxCreate, a3)
CREATES(cuCtxCreate_v2, a3)
CREATES(cuCtxCreate_v3, a5)
CREATES(cuCtxCreate_v4, a4)

/* Around the driver's call; context 0: it ends none. */
static void begin_end(uint32_t context, struct cw_context_ending *out)
{
    cw_context_end_begin(context, out);
    cw_api_prefetch_context_ending(context);
}

static void finish_end(const struct cw_context_ending *ending, enum cw_context_outcome outcome)
{
    if (outcome != CW_CONTEXT_KEPT)
        cw_api_prefetch_context_ended(ending->context);
    cw_context_end_finish(ending, outcome);
    if (outcome != CW_CONTEXT_KEPT)
        cw_background_thread_leave();
}

typedef CUresult (*ctx_end_fn)(CUcontext ctx);

static CUresult end_context(enum cw_hook hook, CUcontext ctx, void *caller)
{
    ctx_end_fn real = (ctx_end_fn)cw_real_of(hook);
    struct cw_context_ending ending;
    struct cw_call call;
    uint8_t device;
    CUresult rc;

    if (!cw_call_enter(&call, hook, caller))
        return real(ctx);
    begin_end(cw_context_of(handle_value(ctx), &device), &ending);
    rc = real(ctx);
    finish_end(&ending, rc == CUDA_SUCCESS ? CW_CONTEXT_DESTROYED : CW_CONTEXT_KEPT);
    cw_call_leave();
    return rc;
}

CW_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    return end_context(CW_HOOK_cuCtxDestroy_v2, ctx, CW_CALLER);
}

CW_EXPORT CUresult cuCtxDestroy(CUcontext ctx)
{
    return end_context(CW_HOOK_cuCtxDestroy, ctx, CW_CALLER);
}

CW_EXPORT CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    CUresult rc = CW_REAL(cuCtxAttach)(pctx, flags);
    uint8_t device;

    if (rc == CUDA_SUCCESS && pctx != NULL && cw_session_is_armed())
        cw_context_attached(cw_context_of(handle_value(*pctx), &device));
    return rc;
}

/* Gives up a reference: the one that creation made ends the context. */
CW_EXPORT CUresult cuCtxDetach(CUcontext ctx)
{
    uint8_t device;
    uint32_t context = cw_session_is_armed() ? cw_context_of(handle_value(ctx), &device) : 0;
    CUresult rc;

    if (!cw_context_is_attached(context))
        return end_context(CW_HOOK_cuCtxDetach, ctx, CW_CALLER);
    rc = CW_REAL(cuCtxDetach)(ctx);
    if (rc == CUDA_SUCCESS)
        cw_context_detached(context);
    return rc;
}

/* ---- primary contexts ---- */

CW_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuDevicePrimaryCtxRetain, CW_CALLER))
        return CW_REAL(cuDevicePrimaryCtxRetain)(pctx, dev);
    do
        rc = CW_REAL(cuDevicePrimaryCtxRetain)(pctx, dev);
    while (cw_call_again_on(&call, rc, (unsigned)dev));
    if (rc == CUDA_SUCCESS && pctx != NULL)
        cw_context_retained(handle_value(*pctx), (unsigned)dev);
    cw_call_leave();
    cw_call_note_on(CW_HOOK_cuDevicePrimaryCtxRetain, rc, cw_call_on(dev), CW_CALLER);
    return rc;
}

static int is_primary_active(CUdevice dev)
{
    unsigned int flags;
    int active = 1;

    if (CW_REAL(cuDevicePrimaryCtxGetState)(dev, &flags, &active) != CUDA_SUCCESS)
        return 1;
    return active;
}

typedef CUresult (*primary_fn)(CUdevice dev);

/* The last release destroys the context: its records are closed first, if our count is right, and
 * restored if the driver says that the context is still active. */
static CUresult release_primary(enum cw_hook hook, CUdevice dev, void *caller)
{
    primary_fn real = (primary_fn)cw_real_of(hook);
    struct cw_context_ending ending;
    struct cw_call call;
    int active;
    CUresult rc;

    if (!cw_call_enter(&call, hook, caller))
        return real(dev);
    begin_end(cw_context_is_last_release((unsigned)dev) ? cw_context_primary((unsigned)dev) : 0,
              &ending);
    rc = real(dev);
    if (rc == CUDA_SUCCESS)
        cw_context_released((unsigned)dev);
    active = rc != CUDA_SUCCESS || is_primary_active(dev);
    /* Retains and releases by others escaped us: closes late what is gone. */
    if (!active && ending.context == 0)
        begin_end(cw_context_primary((unsigned)dev), &ending);
    finish_end(&ending, active ? CW_CONTEXT_KEPT : CW_CONTEXT_DESTROYED);
    cw_call_leave();
    return rc;
}

CW_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return release_primary(CW_HOOK_cuDevicePrimaryCtxRelease_v2, dev, CW_CALLER);
}

CW_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return release_primary(CW_HOOK_cuDevicePrimaryCtxRelease, dev, CW_CALLER);
}

static CUresult reset_primary(enum cw_hook hook, CUdevice dev, void *caller)
{
    primary_fn real = (primary_fn)cw_real_of(hook);
    enum cw_context_outcome outcome = CW_CONTEXT_RENEWED;
    struct cw_context_ending ending;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, hook, caller))
        return real(dev);
    begin_end(cw_context_primary((unsigned)dev), &ending);
    rc = real(dev);
    if (rc != CUDA_SUCCESS)
        outcome = CW_CONTEXT_KEPT;
    else if (!is_primary_active(dev)) /* its handle may be given to another context next */
        outcome = CW_CONTEXT_DESTROYED;
    finish_end(&ending, outcome);
    cw_call_leave();
    return rc;
}

CW_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return reset_primary(CW_HOOK_cuDevicePrimaryCtxReset_v2, dev, CW_CALLER);
}

CW_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    return reset_primary(CW_HOOK_cuDevicePrimaryCtxReset, dev, CW_CALLER);
}

/* ---- green contexts ---- */

/* The handle of the green context itself is kept in the same table, so that its device is known
 * when it is turned into a CUcontext. A green context holds a reference to the primary one
 * (cuda.h). */
CW_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                                    unsigned int flags)
{
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuGreenCtxCreate, CW_CALLER))
        return CW_REAL(cuGreenCtxCreate)(phCtx, desc, dev, flags);
    do
        rc = CW_REAL(cuGreenCtxCreate)(phCtx, desc, dev, flags);
    while (cw_call_again_on(&call, rc, (unsigned)dev));
    if (rc == CUDA_SUCCESS) {
        cw_context_retained(0, (unsigned)dev);
        cw_context_folded(handle_value(*phCtx), (unsigned)dev);
    }
    cw_call_leave();
    cw_call_note_on(CW_HOOK_cuGreenCtxCreate, rc, cw_call_on(dev), CW_CALLER);
    return rc;
}

CW_EXPORT CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    CUresult rc = CW_REAL(cuCtxFromGreenCtx)(pContext, hCtx);
    uint8_t device;

    if (rc == CUDA_SUCCESS && cw_session_is_armed() &&
        cw_context_of_green(handle_value(hCtx), &device) != 0)
        cw_context_folded(handle_value(*pContext), device);
    return rc;
}

/* The green context may have held the last reference to the primary one. */
CW_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct cw_context_ending ending;
    uint8_t device;
    int active;
    CUresult rc;

    if (!cw_session_is_armed() || cw_context_of_green(handle_value(hCtx), &device) == 0)
        return CW_REAL(cuGreenCtxDestroy)(hCtx);
    begin_end(cw_context_is_last_release(device) ? cw_context_primary(device) : 0, &ending);
    rc = CW_REAL(cuGreenCtxDestroy)(hCtx);
    if (rc == CUDA_SUCCESS) {
        cw_context_unfolded(handle_value(hCtx));
        cw_context_released(device);
    }
    active = rc != CUDA_SUCCESS || is_primary_active(device);
    if (!active && ending.context == 0)
        begin_end(cw_context_primary(device), &ending);
    finish_end(&ending, active ? CW_CONTEXT_KEPT : CW_CONTEXT_DESTROYED);
    return rc;
}

/* ---- modules ---- */

/* Nobody tells how much a module takes on the device: it is part of "unattributed". The record says
 * that it is loaded, has the variables that the program has asked for, and goes with its context.
 */
static void account_module(struct cw_call *call, CUresult rc, enum cw_scope scope,
                           const void *handle)
{
    struct cw_request request = {.space = CW_SPACE_MODULE, .kind = CW_KIND_MODULE};

    if (rc == CUDA_SUCCESS && handle != NULL)
        request.key = handle_value(*(void *const *)handle);
    cw_call_allocated(call, rc, scope, &request);
}

/* The values of the compiler's options. It overwrites some: the size of a log becomes the length
 * written. Another attempt needs the original values. */
struct option_values {
    void **at;
    unsigned count;
    void *value[64]; /* there are half as many options */
};

static void keep_values(struct option_values *out, void **at, unsigned count)
{
    out->at = at;
    out->count = 0;
    while (at != NULL && out->count < count && out->count < CW_ARRAY_LEN(out->value)) {
        out->value[out->count] = at[out->count];
        out->count++;
    }
}

static void put_values_back(const struct option_values *kept)
{
    for (unsigned i = 0; i < kept->count; i++)
        kept->at[i] = kept->value[i];
}

/* Calls it with the compiler's options, and again each time that memory was released. */
#define LOAD_WITH(symbol, values, options)                                                         \
    do {                                                                                           \
        struct option_values kept;                                                                 \
                                                                                                   \
        keep_values(&kept, values, options);                                                       \
        while (rc = CW_REAL(symbol) CW_ARGS_##symbol, cw_call_again(&call, rc))                    \
            put_values_back(&kept);                                                                \
    } while (0)

#define LOADS_WITH(symbol, scope, values, options)                                                 \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        LOAD_WITH(symbol, values, options);                                                        \
        account_module(&call, rc, scope, a1);                                                      \
        return rc;                                                                                 \
    }

LOADS_WITH(cuModuleLoad, CW_SCOPE_CONTEXT, NULL, 0)
LOADS_WITH(cuModuleLoadData, CW_SCOPE_CONTEXT, NULL, 0)
LOADS_WITH(cuModuleLoadDataEx, CW_SCOPE_CONTEXT, a5, a3)
LOADS_WITH(cuModuleLoadFatBinary, CW_SCOPE_CONTEXT, NULL, 0)
/* Libraries do not belong to a context: they are loaded into each one lazily. */
LOADS_WITH(cuLibraryLoadData, CW_SCOPE_CURRENT, a4, a5)
LOADS_WITH(cuLibraryLoadFromFile, CW_SCOPE_CURRENT, a4, a5)

#define LINKS_WITH(symbol, values, options)                                                        \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        LOAD_WITH(symbol, values, options);                                                        \
        cw_call_leave();                                                                           \
        cw_call_note(CW_HOOK_##symbol, rc, CW_CALLER);                                             \
        return rc;                                                                                 \
    }

LINKS_WITH(cuLinkCreate, a3, a1)
LINKS_WITH(cuLinkCreate_v2, a3, a1)

CW_EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
    struct cw_pool_context *pool_context;
    struct cw_request_free freed;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuModuleUnload, CW_CALLER))
        return CW_REAL(cuModuleUnload)(hmod);
    cw_request_free_begin(CW_SPACE_MODULE, handle_value(hmod), &freed);
    pool_context = cw_pooled_enter_driver(freed.block);
    rc = CW_REAL(cuModuleUnload)(hmod);
    cw_pooled_leave_driver(pool_context, rc);
    cw_call_freed(&call, rc, &freed);
    return rc;
}

CW_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    struct cw_pool_context *pool_context;
    struct cw_request_free freed;
    struct cw_call call;
    CUresult rc;

    if (!cw_call_enter(&call, CW_HOOK_cuLibraryUnload, CW_CALLER))
        return CW_REAL(cuLibraryUnload)(library);
    cw_request_free_begin(CW_SPACE_MODULE, handle_value(library), &freed);
    pool_context = cw_pooled_enter_driver(freed.block);
    rc = CW_REAL(cuLibraryUnload)(library);
    cw_pooled_leave_driver(pool_context, rc);
    cw_call_freed(&call, rc, &freed);
    return rc;
}

/* Either out-parameter may be NULL: then the program learns, and we know, only half of it. */
static void saw_variable(CUresult rc, const CUdeviceptr *address, const size_t *bytes,
                         const void *module)
{
    if (rc == CUDA_SUCCESS && address != NULL && bytes != NULL && cw_session_is_armed())
        cw_variable_seen(handle_value(module), *address, *bytes);
}

CW_OBSERVED_THEN(cuModuleGetGlobal_v2, saw_variable(rc, a1, a2, a3))
CW_OBSERVED_THEN(cuLibraryGetGlobal, saw_variable(rc, a1, a2, a3))
