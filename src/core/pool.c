/* SPDX-License-Identifier: MIT */
/* Serving requests and taking frees. See pool.h. */
#include "core/pool.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/log.h"
#include "core/context.h"
#include "core/device.h"
#include "core/gate.h"
#include "core/growth.h"
#include "core/hoard.h"
#include "core/index.h"
#include "core/keep.h"
#include "core/limit.h"
#include "core/pending.h"
#include "core/pressure.h"
#include "core/prewarm.h"
#include "core/realm.h"
#include "core/relief.h"
#include "core/session.h"
#include "core/site.h"
#include "core/thread.h"
#include "core/tracker.h"

/* Batches asked about when a request finds nothing ready. */
#define QUERIES 2
/* Frees of a thread after which it looks whether the device is due to be asked again. */
#define LOOK_FREES 1024u

static struct {
    int on;
    int deferred;
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

static void bypass(uint8_t device, enum cw_bypass why)
{
    count(&counters(device)->bypassed[why], 1);
}

/* ---- start -------------------------------------------------------------------------------------
 */

static int choose_deferred(const struct cw_options *options)
{
    if (options->free_sync != CW_FREE_DEFERRED)
        return 0;
    if (cw_session.ops->has_context_events())
        return 1;
    cw_log(CW_LOG_INFO, "FREE_SYNC=deferred needs a driver with events of whole contexts (12.5); "
                        "frees wait, as with FREE_SYNC=strict");
    return 0;
}

void cw_pool_init(struct cw_arena *arena, const struct cw_options *options)
{
    self.arena = arena;
    self.options = options;
    self.on = options->mode == CW_MODE_POOL;
    self.deferred = self.on && choose_deferred(options);
    self.stacks = options->stacks != CW_STACKS_OFF;
    cw_bucket_init(arena);
    cw_keep_init(arena, options);
    cw_relief_init(options);
    arena->header->pool_mode = (uint8_t)self.on;
    arena->header->free_sync = (uint8_t)(self.deferred ? CW_FREE_DEFERRED : CW_FREE_STRICT);
}

void cw_pool_reset(void)
{
    self.on = 0;
    cw_relief_reset();
    cw_hoard_reset();
    cw_pending_reset();
    cw_realm_reset();
    cw_bucket_reset();
}

int cw_pool_is_on(void)
{
    return self.on;
}

/* ---- serving -----------------------------------------------------------------------------------
 */

/* From the thread's own blocks, then from the shared ones; the thread takes a few more along. */
static uint32_t take_ready(struct cw_pool *pool, uint64_t bytes)
{
    unsigned size_class = cw_size_class_up(bytes);
    int rounded = pool->class != CW_POOL_PITCHED;
    uint32_t block, list, some;

    if (rounded && bytes <= CW_HOARD_LARGEST) {
        block = cw_hoard_take(pool, size_class, bytes);
        if (CW_LIKELY(block != 0))
            return block;
    }
    if (rounded && bytes <= CW_HOARD_LARGEST / 4 && cw_thread_slot() != 0) {
        list = cw_bucket_take_some(pool, size_class, 4, &some);
        if (list != 0)
            cw_bucket_touch(pool, size_class);
        for (list = cw_hoard_refill(pool, size_class, list, some); list != 0; list = some) {
            some = cw_tracker_next(list);
            cw_keep_put(pool, list, 0);
        }
        block = cw_hoard_take(pool, size_class, bytes);
        if (block != 0)
            return block;
    }
    return cw_bucket_take(pool, bytes);
}

/* What other threads keep to themselves, of this size. */
static uint32_t take_from_others(struct cw_pool *pool, uint64_t bytes)
{
    uint32_t list = cw_hoard_seize(pool, cw_size_class_up(bytes));

    if (list == 0)
        return 0;
    for (uint32_t next; list != 0; list = next) {
        next = cw_tracker_next(list);
        cw_keep_put(pool, list, 0);
    }
    return cw_bucket_take(pool, bytes);
}

static uint32_t take(struct cw_pool *pool, uint64_t bytes)
{
    uint32_t block = take_ready(pool, bytes);

    if (CW_LIKELY(block != 0))
        return block;
    if (cw_pending_is_any() && cw_pending_harvest(pool->realm, QUERIES, 0) != 0)
        block = take_ready(pool, bytes);
    if (block == 0)
        block = take_from_others(pool, bytes);
    if (block == 0 && cw_pending_is_any()) {
        cw_pending_close(0);
        if (cw_pending_harvest(pool->realm, QUERIES, 0) != 0)
            block = take_ready(pool, bytes);
    }
    return block;
}

/* Its address is a newer block's, so it is no block any more. */
static CW_COLD void drop(struct cw_pool *pool, uint32_t block, uint64_t bytes)
{
    cw_bucket_put_back(pool, block, bytes);
    cw_bucket_dropped(pool, block, 0);
    cw_tracker_finish_idle(block);
}

static int is_valid(struct cw_pool *pool, uint32_t block, uint64_t bytes)
{
    if (CW_LIKELY(atomic_load_explicit(&cw_tracker_at(block)->state, memory_order_acquire) ==
                  CW_BLOCK_IDLE))
        return 1;
    drop(pool, block, bytes);
    return 0;
}

uint32_t cw_pool_take(struct cw_pool *pool, uint64_t bytes)
{
    uint32_t block;

    while ((block = take(pool, bytes)) != 0)
        if (CW_LIKELY(is_valid(pool, block, bytes)))
            return block;
    return 0;
}

uint32_t cw_pool_take_larger(struct cw_pool *pool, uint64_t bytes, uint64_t most)
{
    uint32_t block;

    while ((block = cw_bucket_take_larger(pool, bytes, most)) != 0)
        if (is_valid(pool, block, bytes))
            return block;
    return 0;
}

static CW_INLINE struct cw_pool *pool_here(enum cw_pool_class class)
{
    uint8_t device;
    uint32_t context = cw_context_current(&device);
    struct cw_realm *realm = cw_realm_of(context);

    if (!self.on)
        return NULL;
    if (CW_UNLIKELY(context == 0 || realm == NULL)) {
        bypass(device, CW_BYPASS_NO_CONTEXT);
        return NULL;
    }
    if (CW_UNLIKELY(!cw_gate_is_open())) {
        bypass(device, CW_BYPASS_CAPTURE);
        return NULL;
    }
    if (CW_UNLIKELY(!cw_realm_is_usable(realm))) {
        bypass(device, CW_BYPASS_BROKEN);
        return NULL;
    }
    return cw_realm_pool(realm, class);
}

struct cw_pool *cw_pool_here(enum cw_pool_class class)
{
    return pool_here(class);
}

static uint64_t what_to_ask(const struct cw_pool *pool, uint64_t bytes)
{
    return pool->class == CW_POOL_PITCHED ? bytes : cw_keep_round(pool->device, bytes);
}

/* The first of a context takes what PREWARM asks for. */
static inline void warm(struct cw_pool *pool, uint32_t api)
{
    if (CW_UNLIKELY(self.options->prewarm.count != 0) && pool->class == CW_POOL_DEVICE &&
        !atomic_load_explicit(&pool->realm->warmed, memory_order_relaxed) &&
        !atomic_exchange(&pool->realm->warmed, 1))
        cw_prewarm(pool, &self.options->prewarm, api);
}

uint64_t cw_pool_hand_out(struct cw_pool *pool, uint32_t block, uint64_t bytes, uint32_t api)
{
    uint32_t site = cw_site_here(api, pool->kind, pool->device);
    uint64_t now;

    if (CW_UNLIKELY(site == 0)) {
        cw_bucket_put_back(pool, block, bytes);
        cw_keep_put(pool, block, 0);
        return 0;
    }
    now = cw_session_now();
    cw_tracker_reuse(block, site, bytes, now);
    cw_growth_look(now);
    return atomic_load_explicit(&cw_tracker_at(block)->key, memory_order_relaxed);
}

/* The usual hit, with one look inside the slot: a block of the thread's own, accounted for with the
 * thread's own slack. The stack is walked before, because nothing that may take long happens in
 * there. 0: it takes more. */
static CW_INLINE uint64_t serve_own(struct cw_pool *pool, uint64_t bytes, uint32_t api)
{
    uint32_t site = cw_site_here(api, pool->kind, pool->device), block;
    uint64_t now = cw_session_now();
    struct cw_slot *slot = CW_LIKELY(site != 0) ? cw_slot_enter() : NULL;
    struct cw_live_block *record;
    int is_valid, is_counted;
    uint64_t key;

    if (CW_UNLIKELY(slot == NULL))
        return 0;
    block = cw_hoard_take_inside(slot, pool, cw_size_class_up(bytes), bytes);
    record = cw_tracker_at(block);
    is_valid =
        block != 0 && atomic_load_explicit(&record->state, memory_order_acquire) == CW_BLOCK_IDLE;
    if (CW_LIKELY(is_valid))
        cw_tracker_renew(record, site, bytes, now);
    is_counted = is_valid && cw_tally_use_slack(slot, pool->device, bytes);
    cw_slot_leave(slot);
    if (CW_UNLIKELY(!is_counted)) {
        if (block != 0 && !is_valid)
            drop(pool, block, bytes);
        if (!is_valid)
            return 0;
        cw_tally_add(pool->device, bytes, 0, now);
    }
    cw_trace_taken(record);
    cw_growth_look(now);
    key = atomic_load_explicit(&record->key, memory_order_relaxed);
    cw_thread.served = block;
    cw_thread.served_key = key;
    return key;
}

uint64_t cw_pool_serve(struct cw_pool_request *request, uint32_t api)
{
    struct cw_pool *pool;
    uint32_t block;
    uint64_t key;

    request->ask = 0;
    request->pool = NULL;
    if (CW_UNLIKELY(!self.on || request->bytes - 1 >= CW_SIZE_MOST)) /* 0 too */
        return 0;
    pool = pool_here(request->class);
    if (CW_UNLIKELY(pool == NULL))
        return 0;
    request->pool = pool;
    warm(pool, api);
    if (CW_LIKELY(request->bytes <= CW_HOARD_LARGEST && pool->class != CW_POOL_PITCHED)) {
        key = serve_own(pool, request->bytes, api);
        if (CW_LIKELY(key != 0))
            return key;
    }
    block = cw_pool_take(pool, request->bytes);
    key = block != 0 ? cw_pool_hand_out(pool, block, request->bytes, api) : 0;
    if (key != 0)
        return key;
    request->ask = what_to_ask(pool, request->bytes);
    return 0;
}

void cw_pool_granted(const struct cw_pool_request *request, uint64_t given, int is_exact,
                     struct cw_request *out)
{
    struct cw_pool *pool = request->pool;

    if (pool == NULL)
        return;
    if (is_exact)
        count(&counters(pool->device)->exact_retries, 1);
    /* Too small or too large for any bucket: when rounding was too much for the device. */
    if (given < CW_SIZE_LEAST || given > CW_SIZE_MOST)
        return;
    out->held = given;
    out->flags |= CW_BLOCK_POOLED;
    out->class = pool->class;
    cw_bucket_miss(pool, request->bytes, given);
}

/* ---- freeing -----------------------------------------------------------------------------------
 */

static enum cw_pool_free ask_driver(uint64_t key, uint32_t index, struct cw_request_free *out)
{
    cw_index_remove_block(CW_SPACE_ADDRESS, key, index);
    *out = (struct cw_request_free){.space = CW_SPACE_ADDRESS, .key = key, .block = index};
    return CW_POOL_DRIVER;
}

/* Some context is current, and not one that is destroyed: without, the driver refuses a free. */
static int is_current_good(const struct cw_realm *realm)
{
    uint64_t handle = 0;
    uint8_t device;

    return cw_session.ops->context_current(&handle) == 0 && handle != 0 &&
           (handle == realm->record->handle || cw_context_current(&device) != 0);
}

/* CW_BYPASS_COUNT: none. */
static enum cw_bypass obstacle(const struct cw_live_block *block, const struct cw_realm *realm,
                               const struct cw_pool *pool)
{
    uint64_t held = atomic_load_explicit(&block->held, memory_order_relaxed);

    if (CW_UNLIKELY(!cw_gate_is_open()))
        return CW_BYPASS_CAPTURE;
    if (CW_UNLIKELY(atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_EXPORTED))
        return CW_BYPASS_EXPORTED;
    if (CW_UNLIKELY(realm == NULL || pool == NULL || !cw_realm_is_usable(realm)))
        return CW_BYPASS_BROKEN;
    /* A wait finds that out by itself. */
    if (self.deferred && !is_current_good(realm))
        return CW_BYPASS_NO_CONTEXT;
    if (CW_UNLIKELY(!cw_realm_is_alone() && !cw_pending_is_possible()))
        return CW_BYPASS_CONTEXTS;
    if (CW_UNLIKELY(held < CW_SIZE_LEAST || held > CW_SIZE_MOST)) /* no bucket is for such */
        return CW_BYPASS_KIND;
    if (CW_UNLIKELY(cw_keep_must_ask(pool, held)))
        return CW_BYPASS_FULL;
    return CW_BYPASS_COUNT;
}

/* The block is idle from now on. 1: it also lies among the thread's own; only if it is ready. */
static CW_INLINE int rest(struct cw_pool *pool, uint32_t index, struct cw_live_block *block,
                          uint32_t site, uint64_t now, int ready)
{
    struct cw_live_site *owner =
        cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed));
    uint64_t bytes = atomic_load_explicit(&block->bytes, memory_order_relaxed);
    uint64_t held = atomic_load_explicit(&block->held, memory_order_relaxed);
    struct cw_slot *slot;
    int is_put = 0, is_counted;

    cw_regrowth_gone(index, block, 1);
    cw_site_sub(owner, bytes, held);
    slot = cw_slot_enter();
    is_counted = CW_LIKELY(slot != NULL) && cw_tally_leave_slack(slot, owner->device, bytes);
    if (CW_LIKELY(is_counted)) {
        cw_tracker_rest(block, site, now);
        is_put = ready && cw_hoard_put_inside(slot, pool, index, block, held);
    }
    if (CW_LIKELY(slot != NULL))
        cw_slot_leave(slot);
    if (CW_UNLIKELY(!is_counted)) { /* first, or a new owner would be counted beside the old one */
        cw_tally_sub(owner->device, bytes, 0);
        cw_tracker_rest(block, site, now);
    }
    return is_put;
}

/* The context has been waited for where that is due; the block may have to wait for others. */
static CW_INLINE void retire(struct cw_pool *pool, uint32_t index, struct cw_live_block *block,
                             uint32_t site, uint64_t stamp, int ready)
{
    uint64_t now =
        CW_UNLIKELY(atomic_load_explicit(&block->held, memory_order_relaxed) >= CW_SIZE_ROUNDED)
            ? cw_session_now()
            : 0;

    if (CW_LIKELY(rest(pool, index, block, site, now, ready)))
        return;
    if (CW_LIKELY(ready)) {
        cw_keep_block(pool, index, now);
        return;
    }
    cw_bucket_kept(pool, index);
    if (cw_pending_add(pool, index, stamp) != 0) {
        atomic_store_explicit(&cw_tracker_at(index)->link, 0, memory_order_relaxed);
        cw_keep_release(pool->realm, index, CW_RELEASE_FULL);
    }
}

/* Other processes take memory too, and a program that only hits never asks the driver. */
static void look_around(uint32_t api)
{
    if (CW_UNLIKELY(++cw_thread.frees % LOOK_FREES == 0))
        cw_device_sample(api);
    if (cw_pressure_is_due())
        cw_relief_pressure();
}

static CW_INLINE enum cw_pool_free free_claimed(struct cw_live_block *block, uint32_t index,
                                                uint64_t key, uint32_t api,
                                                struct cw_request_free *out, int *out_wait)
{
    struct cw_realm *realm = cw_realm_of(block->context);
    struct cw_pool *pool = realm != NULL ? cw_realm_pool(realm, block->class) : NULL;
    enum cw_bypass why = obstacle(block, realm, pool);
    int alone = cw_realm_is_alone();
    uint64_t stamp = 0;

    if (CW_UNLIKELY(why != CW_BYPASS_COUNT)) {
        bypass(pool != NULL ? pool->device : 0, why);
        if (why == CW_BYPASS_FULL) /* with the level critical no free is kept */
            look_around(api);
        return ask_driver(key, index, out);
    }
    if (self.deferred || !alone)
        stamp = cw_pending_stamp();
    if (!self.deferred && (cw_pending_wait(realm, out_wait) != 0 || *out_wait != 0)) {
        bypass(pool->device, *out_wait == 0           ? CW_BYPASS_CAPTURE
                             : is_current_good(realm) ? CW_BYPASS_BROKEN
                                                      : CW_BYPASS_NO_CONTEXT);
        return ask_driver(key, index, out);
    }
    retire(pool, index, block, self.stacks ? cw_site_here(api, pool->kind, pool->device) : 0, stamp,
           !self.deferred && alone);
    look_around(api);
    return CW_POOL_KEPT;
}

static int fatal_of(const struct cw_realm *realm)
{
    return realm != NULL ? (int)atomic_load_explicit(&realm->record->fatal, memory_order_relaxed)
                         : 0;
}

static int is_freed_by(enum cw_pool_freeing how, const struct cw_live_block *block)
{
    return how == (block->class >= CW_POOL_HOST ? CW_POOL_FREES_HOST : CW_POOL_FREES_DEVICE);
}

static CW_INLINE int is_pooled(const struct cw_live_block *block)
{
    return (atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED) != 0;
}

/* The block that the thread was served last needs no look into the index. By now its record may be
 * another block's, whose owner would find it claimed: so the key is looked at before the claim,
 * after a state that says that it is complete. Its index, or 0. */
static CW_INLINE uint32_t claim_served(uint64_t key)
{
    struct cw_live_block *block = cw_tracker_at(cw_thread.served);

    return cw_thread.served_key == key && key != 0 &&
                   atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE &&
                   atomic_load_explicit(&block->key, memory_order_relaxed) == key &&
                   is_pooled(block) && cw_tracker_claim(block, CW_SPACE_ADDRESS, key)
               ? cw_thread.served
               : 0;
}

enum cw_pool_free cw_pool_free(enum cw_pool_freeing how, uint64_t key, uint32_t api,
                               struct cw_request_free *out, int *out_wait)
{
    uint32_t index = claim_served(key);
    struct cw_live_block *block = cw_tracker_at(index);

    *out_wait = 0;
    if (index == 0) {
        index = self.on ? cw_tracker_find(CW_SPACE_ADDRESS, key) : 0;
        block = cw_tracker_at(index);
        if (index == 0 || !is_pooled(block)) {
            cw_request_free_begin(CW_SPACE_ADDRESS, key, out);
            return CW_POOL_DRIVER;
        }
        if (CW_UNLIKELY(!cw_tracker_claim(block, CW_SPACE_ADDRESS, key))) {
            *out = (struct cw_request_free){.space = CW_SPACE_ADDRESS, .key = key};
            *out_wait = fatal_of(cw_realm_of(block->context));
            return CW_POOL_REFUSED;
        }
    }
    return CW_LIKELY(is_freed_by(how, block)) ? free_claimed(block, index, key, api, out, out_wait)
                                              : ask_driver(key, index, out);
}

/* ---- synchronisations of the program -----------------------------------------------------------
 */

uint64_t cw_pool_sync_begin(void)
{
    return self.on && cw_pending_is_any() ? cw_pending_sync_begin() : 0;
}

void cw_pool_sync_end(uint32_t context, uint64_t ticket)
{
    struct cw_realm *realm = cw_realm_of(context);

    if (!self.on || realm == NULL || !cw_realm_is_usable(realm))
        return;
    if (ticket != 0) {
        cw_pending_sync_end(realm, ticket);
        cw_pending_harvest(realm, 0, 1);
    }
    cw_keep_trim(realm, cw_session_now());
    cw_relief_emptied(realm->device, cw_session_now());
    if (cw_pressure_is_due())
        cw_relief_pressure();
}

/* ---- what the program sees ---------------------------------------------------------------------
 */

int cw_pool_look(uint64_t key, struct cw_pool_view *out)
{
    uint32_t index = self.on ? cw_tracker_find(CW_SPACE_ADDRESS, key) : 0;
    const struct cw_live_block *block = cw_tracker_at(index);

    if (index == 0 ||
        !(atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED))
        return 0;
    out->block = index;
    out->reuses = atomic_load_explicit(&block->refs, memory_order_relaxed) - 1;
    out->bytes = atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE
                     ? atomic_load_explicit(&block->bytes, memory_order_relaxed)
                     : 0;
    return 1;
}
