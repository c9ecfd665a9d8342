/* SPDX-License-Identifier: MIT */
/* Serving requests and taking frees. See pool.h. */
#include "core/pool/pool.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/log.h"
#include "core/device/context.h"
#include "core/account/debug_log.h"
#include "core/process/deadline.h"
#include "core/limits/demand.h"
#include "core/device/device.h"
#include "core/limits/excess.h"
#include "core/process/gate.h"
#include "core/account/index.h"
#include "core/cache/retention.h"
#include "core/pending/lane.h"
#include "core/pending/patience.h"
#include "core/pending/pending.h"
#include "core/pool/prewarm.h"
#include "core/cache/pool_context.h"
#include "core/reclaim/reclaim.h"
#include "core/pool/search.h"
#include "core/pool/serve.h"
#include "core/pool/strict.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/process/thread.h"
#include "core/cache/thread_cache.h"
#include "core/account/tag_count.h"
#include "core/account/tracker.h"
#include "core/reclaim/sweep.h"
#include "core/pending/ready.h"
#include "core/pending/release.h"

/* Frees of a thread after which it looks whether the device is due to be asked again. */
#define LOOK_FREES 1024u

static CW_HOT_DATA struct {
    int on;
    int deferred;
    int events; /* of whole contexts */
    int stacks; /* a free's site is worth keeping */
    const struct cw_options *options;
    struct cw_arena *arena;
} self;

static struct cw_live_pool *counters(uint8_t device)
{
    return &self.arena->header->device[device].pool;
}

static void count(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static CW_COLD struct cw_pool *bypass(uint8_t device, enum cw_bypass why, int is_counted)
{
    if (!is_counted)
        return NULL;
    count(&counters(device)->bypassed[why], 1);
    cw_debug_log_bypass(device, why);
    return NULL;
}

/* ---- start ---- */

static int choose_deferred(const struct cw_options *options)
{
    if (options->free_sync != CW_FREE_DEFERRED)
        return 0;
    if (cw_session.ops->has_context_events())
        return 1;
    cw_log(CW_LOG_INFO, "FREE_SYNC=deferred needs a driver with events of whole contexts (12.5); "
                        "frees are strict");
    return 0;
}

void cw_pool_init(struct cw_arena *arena, const struct cw_options *options)
{
    self.arena = arena;
    self.options = options;
    self.on = options->mode == CW_MODE_POOL;
    self.deferred = self.on && choose_deferred(options);
    self.events = cw_session.ops->has_context_events();
    self.stacks = options->stacks != CW_STACKS_OFF;
    cw_tag_count_init(self.on);
    arena->header->pool_mode = (uint8_t)self.on;
    arena->header->free_sync = (uint8_t)(self.deferred ? CW_FREE_DEFERRED : CW_FREE_STRICT);
}

void cw_pool_reset(void)
{
    self.on = 0;
}

int cw_pool_is_on(void)
{
    return self.on;
}

/* ---- serving ---- */

/* NULL: why is counted, unless the caller asks again. */
static CW_INLINE struct cw_pool *pool_here(enum cw_pool_class class, int is_counted)
{
    uint8_t device;
    uint32_t context = cw_context_current(&device);
    struct cw_pool_context *pool_context = cw_pool_context_of(context);

    if (!self.on)
        return NULL;
    if (CW_UNLIKELY(context == 0 || pool_context == NULL))
        return bypass(device, CW_BYPASS_NO_CONTEXT, is_counted);
    if (CW_UNLIKELY(!cw_gate_is_open()))
        return bypass(device, CW_BYPASS_CAPTURE, is_counted);
    if (CW_UNLIKELY(!cw_pool_context_is_usable(pool_context)))
        return bypass(device, CW_BYPASS_BROKEN, is_counted);
    return cw_pool_context_pool(pool_context, class);
}

struct cw_pool *cw_pool_here(enum cw_pool_class class)
{
    return pool_here(class, 1);
}

static uint64_t what_to_ask(struct cw_pool_request *request)
{
    return request->class == CW_POOL_PITCHED
               ? request->bytes
               : cw_excess_round(request->pool->device, request->bytes, &request->excess);
}

/* The first of a context takes what PREWARM asks for. */
static inline void warm(struct cw_pool *pool, uint32_t api)
{
    if (CW_UNLIKELY(self.options->prewarm.count != 0) && pool->class == CW_POOL_DEVICE &&
        !atomic_load_explicit(&pool->pool_context->warmed, memory_order_relaxed) &&
        !atomic_exchange(&pool->pool_context->warmed, 1))
        cw_prewarm(pool, &self.options->prewarm, api);
}

static CW_INLINE uint64_t hand_out(struct cw_pool *pool, uint32_t block, uint64_t bytes,
                                   uint32_t api, const struct cw_budget_claim *claim)
{
    uint32_t site = cw_site_here(api, pool->kind, pool->device);
    uint64_t now;

    if (CW_UNLIKELY(site == 0)) {
        cw_usage_give_excess(pool->device, cw_size_excess(cw_tracker_held(block), bytes));
        cw_pool_put_back(pool, block, bytes);
        return 0;
    }
    if (claim != NULL)
        cw_budget_expect(block, claim);
    now = cw_session_now();
    cw_tracker_reuse(block, site, bytes, now);
    cw_deadline_look(now);
    cw_thread.served = block;
    cw_thread.served_key = atomic_load_explicit(&cw_tracker_at(block)->key, memory_order_relaxed);
    return cw_thread.served_key;
}

uint64_t cw_pool_hand_out(struct cw_pool *pool, uint32_t block, uint64_t bytes, uint32_t api,
                          const struct cw_budget_claim *claim)
{
    return hand_out(pool, block, bytes, api, claim);
}

/* claim: NULL if the request has none. */
static CW_INLINE uint64_t alloc(struct cw_pool_request *request, uint32_t api,
                                const struct cw_budget_claim *claim)
{
    struct cw_pool *pool;
    uint32_t block;
    uint64_t key;

    request->ask = 0;
    request->excess = 0;
    request->pool = NULL;
    if (CW_UNLIKELY(!self.on || request->bytes - 1 >= CW_SIZE_MOST)) /* 0 too */
        return 0;
    pool = pool_here(request->class, 1);
    if (CW_UNLIKELY(pool == NULL))
        return 0;
    request->pool = pool;
    warm(pool, api);
    key = claim == NULL ? cw_pool_serve_own(pool, request->bytes, cw_session_now(), api, 0) : 0;
    if (CW_LIKELY(key != 0))
        return key;
    block = cw_search_take(pool, request->bytes);
    key = block != 0 ? hand_out(pool, block, request->bytes, api, claim) : 0;
    if (key != 0)
        return key;
    request->ask = what_to_ask(request);
    cw_reclaim_before_miss(pool, request->ask);
    return 0;
}

CW_HOT uint64_t cw_pool_alloc(struct cw_pool_request *request, uint32_t api)
{
    return alloc(request, api, NULL);
}

CW_NOINLINE uint64_t cw_pool_alloc_claimed(struct cw_pool_request *request, uint32_t api,
                                           const struct cw_budget_claim *claim)
{
    return alloc(request, api, claim);
}

CW_HOT uint64_t cw_pool_serve_counted(uint64_t bytes, uint32_t api)
{
    struct cw_pool *pool = pool_here(CW_POOL_DEVICE, 0);

    return pool != NULL && bytes - 1 < CW_SIZE_MOST
               ? cw_pool_serve_own(pool, bytes, cw_session_now(), api, 1)
               : 0;
}

uint64_t cw_pool_serve(uint8_t device, uint64_t bytes, uint64_t now_ns, uint32_t api)
{
    struct cw_pool *pool = pool_here(CW_POOL_DEVICE, 0);

    return pool != NULL && pool->device == device && bytes - 1 < CW_SIZE_MOST
               ? cw_pool_serve_own(pool, bytes, now_ns, api, 0)
               : 0;
}

void cw_pool_cancel(struct cw_pool_request *request)
{
    if (request->excess != 0)
        cw_usage_give_excess(request->pool->device, request->excess);
    request->excess = 0;
}

void cw_pool_granted(struct cw_pool_request *request, uint64_t given, int is_exact,
                     struct cw_request *out)
{
    struct cw_pool *pool = request->pool;

    if (pool == NULL)
        return;
    if (is_exact) {
        count(&counters(pool->device)->exact_retries, 1);
        cw_pool_cancel(request);
    }
    request->excess = 0; /* the block's from now on */
    /* Too small or too large for any bucket: a block of exact size. */
    if (given < CW_SIZE_LEAST || given > CW_SIZE_MOST)
        return;
    out->held = given;
    out->flags |= CW_BLOCK_POOLED;
    out->class = pool->class;
    cw_bucket_miss(pool, request->bytes, given);
}

/* ---- freeing ---- */

/* What frees a block of the pool. */
static enum cw_freeing pool_frees(const struct cw_live_block *block)
{
    return block->class >= CW_POOL_HOST ? CW_FREES_HOST : CW_FREES_DEVICE;
}

static enum cw_pool_free ask_driver(enum cw_freeing how, uint64_t key, uint32_t index,
                                    struct cw_request_free *out)
{
    cw_index_remove_block(CW_SPACE_ADDRESS, key, index);
    *out =
        (struct cw_request_free){.space = CW_SPACE_ADDRESS, .how = how, .key = key, .block = index};
    return CW_POOL_DRIVER;
}

/* The free does not wait. */
static CW_INLINE int is_put_off(struct cw_pool_context *pool_context,
                                const struct cw_live_block *block)
{
    if (CW_LIKELY((self.deferred | cw_thread.batches) == 0))
        return CW_UNLIKELY(pool_context != NULL && cw_patience_is_over(pool_context)) &&
               cw_strict_is_put_off(pool_context, block);
    return self.deferred || cw_pending_is_possible();
}

static enum cw_bypass obstacle(const struct cw_live_block *block,
                               const struct cw_pool_context *pool_context,
                               const struct cw_pool *pool, int put_off)
{
    uint64_t held = atomic_load_explicit(&block->held, memory_order_relaxed);

    if (CW_UNLIKELY(!cw_gate_is_open()))
        return CW_BYPASS_CAPTURE;
    if (CW_UNLIKELY(atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_EXPORTED))
        return CW_BYPASS_EXPORTED;
    if (CW_UNLIKELY(pool_context == NULL || pool == NULL ||
                    !cw_pool_context_is_usable(pool_context)))
        return CW_BYPASS_BROKEN;
    /* A wait finds out by itself. */
    if (put_off && !cw_strict_can_free(pool_context))
        return CW_BYPASS_NO_CONTEXT;
    if (CW_UNLIKELY(!cw_pool_context_is_alone() && !cw_pending_is_possible()))
        return CW_BYPASS_CONTEXTS;
    if (CW_UNLIKELY(held < CW_SIZE_LEAST || held > CW_SIZE_MOST)) /* no bucket has such blocks */
        return CW_BYPASS_KIND;
    if (put_off && cw_strict_is_piled_up(pool, held))
        return CW_BYPASS_BUSY;
    if (CW_UNLIKELY(!cw_admission_is_open(pool->device)))
        return cw_retention_is_wanted(pool->device) ? CW_BYPASS_WANTED : CW_BYPASS_FULL;
    return CW_NO_OBSTACLE;
}

/* 1: the block lies in the thread's cache or lane. Inside the slot. */
static CW_INLINE int put_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                                struct cw_leaving *leaving, struct cw_live_block *block,
                                uint64_t held)
{
    if (CW_UNLIKELY(!cw_admission_is_open(pool->device)))
        return 0;
    return CW_LIKELY(leaving->is_ready)
               ? cw_thread_cache_put_inside(slot, pool, leaving->index, block, held)
               : cw_lane_add_inside(slot, pool, leaving->index, block, held, leaving->stamp);
}

/* The block is idle from now on. 1: it lies in the thread's cache or lane. 0: it lies nowhere yet,
 * and cw_retention_reclaim_begins was called for it. */
static CW_INLINE int rest(struct cw_pool *pool, struct cw_leaving *leaving,
                          struct cw_live_block *block)
{
    struct cw_live_site *owner =
        cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed));
    uint64_t bytes = atomic_load_explicit(&block->bytes, memory_order_relaxed);
    uint64_t held = atomic_load_explicit(&block->held, memory_order_relaxed);
    uint64_t excess = pool->class < CW_POOL_HOST ? cw_size_excess(held, bytes) : 0;
    uint8_t device = cw_site_device(owner);
    struct cw_slot *slot;
    int is_put = 0, is_counted;

    cw_tracker_gone(leaving->index, block, 1);
    cw_site_sub(owner, bytes, held);
    slot = cw_slot_enter();
    is_counted = CW_LIKELY(slot != NULL) && cw_usage_leave_slack(slot, device, bytes, excess);
    if (CW_LIKELY(is_counted)) {
        cw_tracker_rest(block, leaving->site, 0);
        is_put = put_inside(slot, pool, leaving, block, held);
        if (CW_UNLIKELY(!is_put)) /* a request without memory waits until it lies somewhere */
            cw_retention_reclaim_begins();
    }
    if (CW_LIKELY(slot != NULL))
        cw_slot_leave(slot);
    if (CW_UNLIKELY(!is_counted)) { /* first, or the next owner would be counted in addition */
        cw_retention_reclaim_begins();
        cw_usage_sub(device, bytes, 0);
        cw_usage_give_excess(device, excess);
        cw_tracker_rest(block, leaving->site, 0);
    }
    return is_put;
}

/* For a block that lies nowhere yet. */
static CW_NOINLINE void retire_slowly(struct cw_pool *pool, const struct cw_leaving *leaving)
{
    uint32_t index = leaving->index;
    int is_wanted = cw_retention_is_wanted(pool->device);

    cw_bucket_kept(pool, index);
    if (is_wanted)
        cw_release_one(pool, index, CW_RELEASE_OOM);
    else if (leaving->is_ready)
        cw_ready_keep(pool, index);
    else if (cw_pending_add(pool, index, leaving->stamp) != 0)
        cw_release_one(pool, index, CW_RELEASE_FULL);
    cw_retention_check(pool->device);
    cw_retention_reclaim_ends((uint64_t)is_wanted);
}

/* Other processes take memory too, and a program that only hits never asks the driver. */
static void look_around(uint32_t api)
{
    if (CW_UNLIKELY(++cw_thread.frees % LOOK_FREES == 0))
        cw_device_sample(api);
    cw_reclaim_look();
}

/* The driver frees a claimed block that the pool may not keep. */
static enum cw_pool_free pass_to_driver(const struct cw_pool *pool, enum cw_bypass why,
                                        uint64_t key, uint32_t index, uint32_t api,
                                        const struct cw_free_probe *probe,
                                        struct cw_request_free *out)
{
    bypass(pool != NULL ? pool->device : 0, why, 1);
    if (why == CW_BYPASS_FULL) /* at level critical every free comes through here */
        look_around(api);
    if (why == CW_BYPASS_BUSY) /* perhaps of blocks that no answer will make ready */
        cw_pending_give_up(pool->pool_context);
    ask_driver(pool_frees(cw_tracker_at(index)), key, index, out);
    out->probe = *probe;
    return CW_POOL_DRIVER;
}

static CW_NOINLINE enum cw_pool_free pass_late(const struct cw_pool *pool, enum cw_bypass why,
                                               uint64_t key, uint32_t index, uint32_t api,
                                               const struct cw_free_probe *probe,
                                               struct cw_request_free *out)
{
    pass_to_driver(pool, why, key, index, api, probe, out);
    out->is_late = 1;
    return CW_POOL_DRIVER;
}

static CW_INLINE enum cw_pool_free keep(struct cw_pool *pool, struct cw_leaving *leaving,
                                        struct cw_live_block *block, uint32_t api)
{
    leaving->site = self.stacks ? cw_site_here(api, pool->kind, pool->device) : 0;
    if (CW_UNLIKELY(!rest(pool, leaving, block)))
        retire_slowly(pool, leaving);
    look_around(api);
    return CW_POOL_KEPT;
}

/* A free that does not wait finds its context busy: that it is strict is why. */
static CW_NOINLINE void tell_put_off(struct cw_pool_context *pool_context)
{
    if ((self.deferred | cw_thread.batches) == 0)
        cw_patience_put_off(pool_context);
}

/* The stamp is read before the wait, whose ticket then covers the free: only the other contexts
 * still have to be waited for. */
static CW_INLINE enum cw_pool_free free_claimed(struct cw_live_block *block, uint32_t index,
                                                uint64_t key, uint32_t api,
                                                struct cw_request_free *out, int *out_wait)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(block->context);
    struct cw_pool *pool =
        pool_context != NULL ? cw_pool_context_pool(pool_context, block->class) : NULL;
    int alone = cw_pool_context_is_alone(), waits = !is_put_off(pool_context, block);
    enum cw_bypass why = obstacle(block, pool_context, pool, !waits);
    struct cw_leaving leaving = {.index = index, .is_ready = waits && alone};
    struct cw_free_probe probe;

    probe.context = 0;
    if (CW_UNLIKELY(!leaving.is_ready))
        leaving.stamp = cw_batch_stamp();
    if (CW_LIKELY(waits && why == CW_NO_OBSTACLE)) {
        why = cw_strict_wait(pool_context, block, self.events, &leaving, &probe, out_wait);
        if (CW_UNLIKELY(why != CW_NO_OBSTACLE))
            return pass_late(pool, why, key, index, api, &probe, out);
    } else if (why == CW_NO_OBSTACLE && cw_patience_is_over(pool_context)) {
        tell_put_off(pool_context);
    }
    if (CW_UNLIKELY(why != CW_NO_OBSTACLE))
        return pass_to_driver(pool, why, key, index, api, &probe, out);
    return keep(pool, &leaving, block, api);
}

/* The pool does not know the address: the block, if there is one, is the driver's to free. */
static enum cw_pool_free free_unpooled(enum cw_freeing how, uint64_t key,
                                       struct cw_request_free *out)
{
    *out = (struct cw_request_free){.space = CW_SPACE_ADDRESS,
                                    .how = how,
                                    .key = key,
                                    .block = cw_tracker_take(CW_SPACE_ADDRESS, key)};
    return CW_POOL_DRIVER;
}

/* Another thread has freed the block, or is about to. */
static enum cw_pool_free refuse(enum cw_freeing how, uint64_t key, struct cw_request_free *out)
{
    *out = (struct cw_request_free){.space = CW_SPACE_ADDRESS, .how = how, .key = key};
    return CW_POOL_REFUSED;
}

static CW_INLINE int is_pooled(const struct cw_live_block *block)
{
    return (atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED) != 0;
}

/* The block that the thread got last needs no look-up in the index. Its record may be another
 * block's by now, whose owner would find it claimed: so the key is compared before the claim, and
 * after the state, which tells that the key is complete. Returns the block's index, or 0. */
static CW_INLINE uint32_t claim_served(uint64_t key)
{
    struct cw_live_block *block = cw_tracker_at(cw_thread.served);

    return cw_thread.served_key == key && key != 0 &&
                   atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE &&
                   atomic_load_explicit(&block->key, memory_order_relaxed) == key &&
                   is_pooled(block) &&
                   cw_tracker_claim(block, cw_thread.served, CW_SPACE_ADDRESS, key)
               ? cw_thread.served
               : 0;
}

CW_HOT enum cw_pool_free cw_pool_free(enum cw_freeing how, uint64_t key, uint32_t api,
                                      struct cw_request_free *out, int *out_wait)
{
    uint32_t index = claim_served(key);
    struct cw_live_block *block = cw_tracker_at(index);

    *out_wait = 0;
    if (index == 0) {
        index = self.on ? cw_tracker_find(CW_SPACE_ADDRESS, key) : 0;
        block = cw_tracker_at(index);
        if (index == 0 || !is_pooled(block))
            return free_unpooled(how, key, out);
        if (CW_UNLIKELY(!cw_tracker_claim(block, index, CW_SPACE_ADDRESS, key)))
            return refuse(how, key, out);
    }
    return CW_LIKELY(how == pool_frees(block)) ? free_claimed(block, index, key, api, out, out_wait)
                                               : ask_driver(how, key, index, out);
}

/* ---- synchronisations of the program ---- */

uint64_t cw_pool_sync_begin(void)
{
    return self.on && cw_batch_is_any() ? cw_batch_sync_begin() : 0;
}

void cw_pool_sync_end(uint32_t context, uint64_t ticket)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(context);

    if (!self.on || pool_context == NULL || !cw_pool_context_is_usable(pool_context))
        return;
    if (cw_patience_is_over(pool_context))
        cw_patience_renew(pool_context);
    if (ticket != 0) {
        cw_batch_sync_end(pool_context, ticket);
        cw_pending_harvest(pool_context, 0, CW_SEARCH_HARVEST, 1);
    }
    cw_reclaim_look();
}

/* ---- what the program sees ---- */

int cw_pool_look(uint64_t key, struct cw_pool_view *out)
{
    uint32_t index = self.on ? cw_tracker_find(CW_SPACE_ADDRESS, key) : 0;
    const struct cw_live_block *block = cw_tracker_at(index);

    if (index == 0 ||
        !(atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED))
        return 0;
    out->block = index;
    out->id = atomic_load_explicit(&block->refs, memory_order_relaxed) > 1 ? cw_owner_id(index) : 0;
    out->bytes = atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE
                     ? atomic_load_explicit(&block->bytes, memory_order_relaxed)
                     : 0;
    return 1;
}
