/* SPDX-License-Identifier: MIT */
/* The pool around the driver's functions. See pooled.h. */
#include "hook/bodies/pooled.h"

#include "api/prefetches.h"
#include "hook/resolve/fatal_code.h"
#include "core/device/context.h"
#include "core/request/fallback.h"
#include "core/process/gate.h"
#include "core/process/guard.h"
#include "core/device/pitch.h"
#include "core/account/budget.h"
#include "core/account/tracker.h"
#include "hook/resolve/deepbind.h"

static CUresult ask_driver(enum cw_pool_class class, void *out, size_t bytes)
{
    switch (class) {
    case CW_POOL_DEVICE:
        return CW_REAL(cuMemAlloc_v2)(out, bytes);
    case CW_POOL_HOST:
        return CW_REAL(cuMemAllocHost_v2)(out, bytes);
    default:
        return CW_REAL(cuMemHostAlloc)(out, bytes, (unsigned)class - CW_POOL_HOST_FLAGS);
    }
}

static int is_device(enum cw_pool_class class)
{
    return class == CW_POOL_DEVICE || class == CW_POOL_PITCHED;
}

static uint64_t address_at(enum cw_pool_class class, const void *out)
{
    return is_device(class) ? *(const CUdeviceptr *)out
                            : (uint64_t)(uintptr_t) * (void *const *)out;
}

static void put_address(enum cw_pool_class class, void *out, uint64_t address)
{
    if (is_device(class))
        *(CUdeviceptr *)out = address;
    else
        *(void **)out = (void *)(uintptr_t)address;
}

/* Where the class's memory lies, for limits; host memory has none. */
static int may(struct cw_call *call, enum cw_pool_class class, uint64_t bytes)
{
    return class == CW_POOL_DEVICE ? cw_call_may_here(call, bytes)
                                   : cw_call_may(call, CW_DEVICE_HOST, bytes);
}

/* A request that the driver has not answered yet; `bytes` as the program asked, `given` as the
 * driver is asked. */
struct miss {
    struct cw_call *call;
    struct cw_pool_request *pool;
    void *out;
    uint64_t given;
    uint8_t unserved; /* enum cw_unserved: why managed memory could not stand in */
};

/* The block that was just served from the pool takes the claim over. */
static inline void settle_served(struct cw_call *call)
{
    if (CW_UNLIKELY(call->is_claimed))
        cw_budget_settle(cw_thread.served, &call->claim);
    call->is_claimed = 0;
}

/* Answers with the idle block, accounts for the call and leaves it; 0: no room to account for
 * it. */
static int serve_from_pool(const struct miss *miss, uint32_t block)
{
    struct cw_call *call = miss->call;
    uint64_t address;

    if (CW_UNLIKELY(call->is_claimed))
        cw_budget_adjust(&call->claim, miss->pool->bytes);
    address = cw_pool_hand_out(miss->pool->pool, block, miss->pool->bytes, call->api,
                               call->is_claimed ? &call->claim : NULL);
    if (address == 0)
        return 0;
    settle_served(call);
    put_address(miss->pool->class, miss->out, address);
    cw_call_helped(miss->call);
    cw_call_leave();
    return 1;
}

/* The same with managed memory; 0: there is none either. */
static int serve_managed(struct miss *miss)
{
    struct cw_request request = {0};

    if (cw_fallback_alloc(miss->call->ladder.device, miss->pool->bytes, &request) != 0) {
        miss->unserved = request.unserved;
        return 0;
    }
    put_address(miss->pool->class, miss->out, request.key);
    cw_call_helped(miss->call);
    cw_call_allocated(miss->call, CUDA_SUCCESS, CW_SCOPE_HOST, &request);
    cw_fallback_committed(request.bytes);
    return 1;
}

/* What is left to do for a request that found no memory. */
enum remedy {
    REMEDY_NONE,   /* nothing: the request fails */
    REMEDY_ASK,    /* ask the driver again, for miss->given */
    REMEDY_SERVED, /* nothing: something else has served it, and the call is left */
};

static enum remedy find_remedy(struct miss *miss)
{
    uint32_t block;

    for (;;) {
        switch (cw_call_climb(miss->call, miss->pool, miss->given, &block)) {
        case CW_LADDER_SERVED:
            if (serve_from_pool(miss, block))
                return REMEDY_SERVED;
            break;
        case CW_LADDER_MANAGED:
            if (serve_managed(miss))
                return REMEDY_SERVED;
            break;
        case CW_LADDER_EXACT:
            miss->given = miss->pool->bytes;
            return REMEDY_ASK;
        case CW_LADDER_ASK:
            return REMEDY_ASK;
        default:
            return REMEDY_NONE;
        }
    }
}

/* The driver is asked until it has an answer other than out of memory, or no remedy is left. */
static CW_NOINLINE CUresult alloc_missed(struct cw_call *call, struct cw_pool_request *pool,
                                         void *out)
{
    int is_device = pool->class == CW_POOL_DEVICE;
    struct cw_request request = {.kind = is_device ? CW_KIND_DEVICE : CW_KIND_PINNED,
                                 .bytes = pool->bytes};
    struct miss miss = {
        .call = call, .pool = pool, .out = out, .given = pool->ask ? pool->ask : pool->bytes};
    enum remedy remedy = REMEDY_ASK;
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

    while (remedy == REMEDY_ASK) {
        rc = CUDA_ERROR_OUT_OF_MEMORY;
        /* A limit must not hide that the driver refuses the arguments. */
        if (out == NULL || pool->bytes == 0 || may(call, pool->class, miss.given))
            rc = ask_driver(pool->class, out, miss.given);
        if (CW_LIKELY(rc != CUDA_ERROR_OUT_OF_MEMORY))
            break;
        remedy = find_remedy(&miss);
    }
    if (rc == CUDA_SUCCESS && out != NULL) {
        cw_call_helped(call);
        request.key = address_at(pool->class, out);
        cw_pool_granted(pool, miss.given, pool->ask != 0 && miss.given != pool->ask, &request);
    }
    cw_pool_cancel(pool);
    if (remedy == REMEDY_SERVED)
        return CUDA_SUCCESS;
    request.unserved = miss.unserved;
    cw_call_allocated(call, rc, is_device ? CW_SCOPE_CONTEXT : CW_SCOPE_HOST, &request);
    return rc;
}

/* Before anything idle could serve it. */
static CW_NOINLINE CUresult fail_at_once(struct cw_call *call, enum cw_kind kind,
                                         enum cw_scope scope, uint64_t bytes)
{
    struct cw_request request = {.kind = kind, .bytes = bytes};

    cw_call_allocated(call, CUDA_ERROR_OUT_OF_MEMORY, scope, &request);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Device memory while there are budgets. 0 with *may_ask set: the driver may be asked. */
static uint64_t serve_within_budget(struct cw_call *call, struct cw_pool_request *pool,
                                    int *may_ask)
{
    uint64_t address = cw_pool_serve_counted(pool->bytes, call->api);

    *may_ask = 1;
    if (CW_LIKELY(address != 0))
        return address;
    *may_ask = cw_call_claim(call, CW_DEVICES, pool->bytes);
    return *may_ask ? cw_pool_alloc_claimed(pool, call->api, &call->claim) : 0;
}

/* The same with injected failures, or budgets. */
static CW_HOT CW_NOINLINE CUresult alloc_guarded(struct cw_call *call, enum cw_pool_class class,
                                                 void *out, size_t bytes)
{
    struct cw_pool_request pool = {.class = class, .bytes = bytes};
    uint64_t address = 0;
    int may_ask = 1;

    if (cw_call_injects(call, bytes))
        return class == CW_POOL_DEVICE ? fail_at_once(call, CW_KIND_DEVICE, CW_SCOPE_CONTEXT, bytes)
                                       : fail_at_once(call, CW_KIND_PINNED, CW_SCOPE_HOST, bytes);
    /* A budget must not hide that the driver refuses the arguments. */
    if (CW_LIKELY(out != NULL && bytes != 0)) {
        if (CW_LIKELY(class == CW_POOL_DEVICE) && cw_budget_is_on())
            address = serve_within_budget(call, &pool, &may_ask);
        else
            address = cw_pool_alloc(&pool, call->api);
    }
    if (CW_UNLIKELY(!may_ask))
        return fail_at_once(call, CW_KIND_DEVICE, CW_SCOPE_CONTEXT, bytes);
    if (CW_UNLIKELY(address == 0))
        return alloc_missed(call, &pool, out);
    settle_served(call);
    put_address(class, out, address);
    cw_call_leave();
    return CUDA_SUCCESS;
}

CW_HOT CUresult cw_pooled_alloc(struct cw_call *call, enum cw_pool_class class, void *out,
                                size_t bytes)
{
    struct cw_pool_request pool = {.class = class, .bytes = bytes};
    uint64_t address;

    if (CW_UNLIKELY(cw_guard_any() != 0))
        return alloc_guarded(call, class, out, bytes);
    address = CW_LIKELY(out != NULL) ? cw_pool_alloc(&pool, call->api) : 0;
    if (CW_UNLIKELY(address == 0))
        return alloc_missed(call, &pool, out);
    put_address(class, out, address);
    cw_call_leave();
    return CUDA_SUCCESS;
}

/* ---- pitched ---- */

/* Bytes of the block if the driver has given a pitch for such rows here, else 0. */
static uint64_t known_size(uint64_t width, uint64_t height, unsigned element, uint64_t *out_pitch)
{
    uint64_t bytes = 0;
    uint8_t device;

    if (!cw_pool_is_on() || cw_context_current(&device) == 0)
        return 0;
    *out_pitch = cw_pitch_find(device, width, element);
    return __builtin_mul_overflow(*out_pitch, height, &bytes) ? 0 : bytes;
}

/* Rows are aligned to so much on all devices so far. */
#define PITCH_STEP 512u

/* The pitch that the driver has given, else an estimate: if that is too small, the driver is asked
 * again. 0: there is none for such rows. */
static uint64_t likely_pitch(uint64_t width, unsigned element)
{
    uint64_t pitch = 0;
    uint8_t device;

    if (cw_context_current(&device) != 0)
        pitch = cw_pitch_find(device, width, element);
    if (pitch != 0)
        return pitch;
    return __builtin_add_overflow(width, PITCH_STEP - 1, &pitch) ? 0
                                                                 : pitch / PITCH_STEP * PITCH_STEP;
}

/* 0: more than there are addresses. */
static uint64_t likely_size(uint64_t pitch, uint64_t height)
{
    uint64_t bytes;

    return __builtin_mul_overflow(pitch, height, &bytes) ? 0 : bytes;
}

/* Of what the program asks for, without the bytes that the pitch adds. */
static uint64_t bytes_asked(uint64_t width, uint64_t height)
{
    uint64_t bytes;

    return __builtin_mul_overflow(width, height, &bytes) ? UINT64_MAX : bytes;
}

/* What cuda.h allows; and the size is one that there can be. Of anything else the driver says what
 * is wrong with it, before a limit has its say. */
static int is_sound(uint64_t likely, unsigned element)
{
    return likely != 0 && (element == 4 || element == 8 || element == 16);
}

/* The limit also covers the bytes that the pitch adds. Where it refuses, the driver is not asked:
 * it might grant what is past the limit, so its own out of memory is no condition for a remedy. */
static CUresult ask_pitch(struct cw_call *call, uint64_t likely, CUdeviceptr *dptr, size_t *pitch,
                          size_t width, size_t height, unsigned element)
{
    struct cw_pool_context *pool_context;
    uint8_t device;
    CUresult rc;

    if (dptr != NULL && pitch != NULL && is_sound(likely, element) &&
        !cw_call_may_here(call, likely))
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = CW_REAL(cuMemAllocPitch_v2)(dptr, pitch, width, height, element);
    if (rc != CUDA_SUCCESS || (call->reserved == 0 && is_sound(likely, element)) ||
        *pitch * height <= call->reserved)
        return rc;
    /* Now the size is known: asks once more, with all of it reserved first. */
    if (cw_context_current(&device) != 0)
        cw_pitch_learn(device, width, element, *pitch);
    pool_context = cw_pooled_enter_driver(0);
    cw_pooled_leave_driver(pool_context, CW_REAL(cuMemFree_v2)(*dptr));
    cw_call_unreserve(call);
    if (!cw_call_may_here(call, *pitch * height))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CW_REAL(cuMemAllocPitch_v2)(dptr, pitch, width, height, element);
}

/* likely: the expected pitch. A refused call may have taught it. */
static enum remedy find_pitched_remedy(struct miss *miss, struct cw_pool_request *as, size_t *pitch,
                                       uint64_t likely, uint64_t height)
{
    enum remedy remedy;

    as->bytes = miss->given = likely_size(likely, height);
    if (miss->out == NULL || pitch == NULL || as->bytes == 0)
        return REMEDY_NONE;
    remedy = find_remedy(miss);
    if (remedy == REMEDY_SERVED)
        *pitch = likely;
    return remedy;
}

/* A pitched block counts pitch times height: the program knows the pitch and may use all of it. */
static CUresult pitch_missed(struct cw_call *call, struct cw_pool_request *pool, CUdeviceptr *dptr,
                             size_t *pitch, size_t width, size_t height, unsigned element)
{
    struct cw_request request = {.kind = CW_KIND_PITCHED, .bytes = bytes_asked(width, height)};
    struct cw_pool_request as = *pool;
    struct miss miss = {.call = call, .pool = &as, .out = dptr};
    uint64_t likely = likely_pitch(width, element);
    enum remedy remedy = REMEDY_ASK;
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    uint8_t device;

    while (remedy == REMEDY_ASK) {
        rc = ask_pitch(call, likely_size(likely, height), dptr, pitch, width, height, element);
        if (CW_LIKELY(rc != CUDA_ERROR_OUT_OF_MEMORY))
            break;
        likely = likely_pitch(width, element);
        remedy = find_pitched_remedy(&miss, &as, pitch, likely, height);
    }
    if (remedy == REMEDY_SERVED)
        return CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS && dptr != NULL && pitch != NULL) {
        cw_call_helped(call);
        request.key = *dptr;
        request.bytes = *pitch * height;
        if (cw_context_current(&device) != 0)
            cw_pitch_learn(device, width, element, *pitch);
        /* The first of its kind: it was not offered to the pool before its size was known. */
        if (pool->bytes == 0)
            pool->pool = cw_pool_here(CW_POOL_PITCHED);
        pool->bytes = request.bytes;
        cw_pool_granted(pool, request.bytes, 0, &request);
    }
    request.unserved = miss.unserved;
    cw_call_allocated(call, rc, CW_SCOPE_CONTEXT, &request);
    return rc;
}

CUresult cw_pooled_alloc_pitch(struct cw_call *call, CUdeviceptr *dptr, size_t *pitch, size_t width,
                               size_t height, unsigned element)
{
    struct cw_pool_request pool = {.class = CW_POOL_PITCHED};
    uint64_t known = 0, address = 0, asked = bytes_asked(width, height);

    if (CW_UNLIKELY(cw_call_injects(call, asked)))
        return fail_at_once(call, CW_KIND_PITCHED, CW_SCOPE_CONTEXT, asked);
    if (dptr != NULL && pitch != NULL)
        pool.bytes = known_size(width, height, element, &known);
    if (pool.bytes != 0) {
        if (CW_UNLIKELY(cw_budget_is_on()) && !cw_call_claim(call, CW_DEVICES, pool.bytes))
            return fail_at_once(call, CW_KIND_PITCHED, CW_SCOPE_CONTEXT, pool.bytes);
        address = CW_LIKELY(!call->is_claimed)
                      ? cw_pool_alloc(&pool, call->api)
                      : cw_pool_alloc_claimed(&pool, call->api, &call->claim);
        if (CW_UNLIKELY(call->is_claimed) && address != 0)
            settle_served(call);
    }
    if (address == 0)
        return pitch_missed(call, &pool, dptr, pitch, width, height, element);
    *dptr = address;
    *pitch = known;
    cw_call_leave();
    return CUDA_SUCCESS;
}

/* ---- frees ---- */

/* The driver's answer to a second free, which depends on the current context, whosever the block
 * was. During a capture it may be another one: the driver is asked with an address that belongs to
 * nobody. */
static CUresult refusal(CUresult usual)
{
    CUresult rc = CUDA_SUCCESS;
    uint32_t context;
    uint8_t device;

    if (CW_UNLIKELY(cw_gate_is_capturing())) {
        rc = CW_REAL(cuMemFree_v2)(CW_NOBODYS_ADDRESS);
    } else {
        context = cw_context_current(&device);
        rc = context != 0 ? (CUresult)cw_context_fatal(context) : CUDA_ERROR_INVALID_CONTEXT;
    }
    return rc != CUDA_SUCCESS && rc != CUDA_ERROR_INVALID_VALUE ? rc : usual;
}

static CW_INLINE int free_begin(struct cw_call *call, enum cw_freeing how, uint64_t key,
                                struct cw_request_free *out_freed, CUresult *rc)
{
    int wait = 0;

    switch (cw_pool_free(how, key, call->api, out_freed, &wait)) {
    case CW_POOL_KEPT:
        *rc = CUDA_SUCCESS;
        break;
    case CW_POOL_REFUSED:
        *rc = refusal(*rc);
        if (!cw_fatal_code_is(*rc)) /* that is what any call gets there */
            cw_request_free_end(out_freed, call->api, cw_call_free_result(*rc), *rc);
        break;
    default:
        /* If the wait says that the context is broken, so would the free. */
        *rc = cw_fatal_code_is(wait) ? (CUresult)wait : CUDA_SUCCESS;
        return 0;
    }
    cw_call_leave();
    return 1;
}

/* Before the block is looked up: nothing comes into it from a file any more. */
static CW_INLINE void leave_prefetches(uint64_t key)
{
    if (cw_guard_is_on(CW_GUARD_PREFETCH))
        cw_api_prefetch_leaving(key, 1);
}

/*
 * A plugin that calls past us may have freed the block, and the driver given its address to another
 * of its calls: then the block that we know is not this one, and may not be kept. It is the
 * program's at this moment, so the answer stays true.
 */
static CW_COLD void look_behind(uint64_t key)
{
    uint32_t block = cw_tracker_find(CW_SPACE_ADDRESS, key);
    CUdeviceptr start = 0;
    size_t bytes = 0;

    if (block != 0 && (CW_REAL(cuMemGetAddressRange_v2)(&start, &bytes, key) != CUDA_SUCCESS ||
                       start != key || bytes < cw_tracker_held(block)))
        atomic_fetch_or(&cw_tracker_at(block)->flags, CW_BLOCK_EXPORTED);
}

int cw_pooled_free_begin(struct cw_call *call, enum cw_freeing how, uint64_t key,
                         struct cw_request_free *out_freed, CUresult *rc)
{
    if (cw_deepbind_is_any())
        look_behind(key);
    leave_prefetches(key);
    return free_begin(call, how, key, out_freed, rc);
}

/* That of the block (0: not known to us), else the current one. */
static struct cw_pool_context *where_to_free(uint32_t block)
{
    uint32_t context = block != 0 ? cw_tracker_at(block)->context : 0;
    uint8_t device;

    return cw_pool_context_of(context != 0 ? context : cw_context_current(&device));
}

struct cw_pool_context *cw_pooled_enter_driver(uint32_t block)
{
    struct cw_pool_context *pool_context = cw_pool_is_on() ? where_to_free(block) : NULL;

    if (pool_context != NULL)
        cw_pool_context_enter_driver(pool_context);
    return pool_context;
}

void cw_pooled_leave_driver(struct cw_pool_context *pool_context, CUresult rc)
{
    if (pool_context != NULL)
        cw_pool_context_leave_driver(pool_context, rc == CUDA_SUCCESS);
}

/* What the fallback has left may go afterwards, but not if that would wait for work: the driver
 * need not have waited for a small block. */
static CW_NOINLINE CUresult pass_to_driver(cw_free_fn driver, const struct cw_request_free *freed)
{
    struct cw_pool_context *pool_context =
        freed->key != 0 ? cw_pooled_enter_driver(freed->block) : NULL;
    unsigned relaxed = freed->is_late ? cw_gate_relax() : 0;
    CUresult rc = driver(freed->key);
    uint8_t device;

    cw_gate_unrelax(relaxed);
    cw_pooled_leave_driver(pool_context, rc);
    if (cw_fallback_has_left() && rc == CUDA_SUCCESS)
        cw_fallback_release_idle(cw_context_current(&device));
    return rc;
}

CW_HOT CUresult cw_pooled_free(struct cw_call *call, enum cw_freeing how, uint64_t key,
                               cw_free_fn driver)
{
    struct cw_request_free freed;
    CUresult rc, waited = CUDA_ERROR_INVALID_VALUE;

    if (cw_deepbind_is_any())
        look_behind(key);
    leave_prefetches(key);
    if (CW_LIKELY(free_begin(call, how, key, &freed, &waited)))
        return waited;
    rc = cw_pool_is_on() || cw_fallback_has_left() ? pass_to_driver(driver, &freed) : driver(key);
    if (waited == CUDA_SUCCESS) {
        cw_call_freed(call, rc, &freed);
        return rc;
    }
    /* The block's context is broken, whichever context is current. */
    cw_request_fatal_in(cw_tracker_at(freed.block)->context, call->api, waited);
    cw_request_free_end(&freed, call->api, CW_FREE_DONE, waited);
    cw_call_leave();
    return waited;
}

/* ---- what sticks to a block ---- */

/* The start of the block that holds the address, which may be its own. Not past the gate: the
 * program asks about the same memory. */
static uint64_t start_of(uint64_t address)
{
    CUdeviceptr start = 0;

    if (cw_tracker_find(CW_SPACE_ADDRESS, address) != 0 ||
        CW_REAL(cuMemGetAddressRange_v2)(&start, NULL, address) != CUDA_SUCCESS)
        return address;
    return start;
}

int cw_pooled_is_idle(uint64_t address)
{
    struct cw_pool_view block;

    return cw_session_is_armed() && cw_pool_is_on() && cw_pool_look(start_of(address), &block) &&
           block.bytes == 0;
}

void cw_pooled_export(uint64_t address)
{
    uint32_t block = cw_tracker_find(CW_SPACE_ADDRESS, start_of(address));

    if (block != 0)
        atomic_fetch_or(&cw_tracker_at(block)->flags, CW_BLOCK_EXPORTED);
}
