/* SPDX-License-Identifier: MIT */
/* Serving, keeping, giving back. See pool.h. */
#include "core/pool.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/log.h"
#include "core/context.h"
#include "core/freed.h"
#include "core/gate.h"
#include "core/hoard.h"
#include "core/index.h"
#include "core/pending.h"
#include "core/realm.h"
#include "core/session.h"
#include "core/site.h"
#include "core/thread.h"
#include "core/tracker.h"

#define MIB ((uint64_t)1 << 20)

/* Of all hoards of a thread, and in each at most this share of what a device may keep. */
#define HOARD_BYTES (16 * MIB)
#define HOARD_SHARE 64
/* Left free on a device, or a twentieth of a small one. */
#define LEAST_FREE (512 * MIB)
/* Pinned memory is kept up to so much, or what POOL_MAX says for a device of this size. */
#define HOST_MOST (1024 * MIB)
/* Batches asked about when a request finds nothing ready. */
#define QUERIES 2

static struct {
    int on;
    int deferred;
    int stacks; /* a free's site is worth keeping */
    const struct cw_options *options;
    struct cw_arena *arena;
    _Atomic uint64_t most_idle[CW_DEVICES]; /* and 1; 0: not known yet */
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

static uint64_t held_of(uint32_t block)
{
    return atomic_load_explicit(&cw_tracker_at(block)->held, memory_order_relaxed);
}

static uint32_t next_of(uint32_t block)
{
    return atomic_load_explicit(&cw_tracker_at(block)->link, memory_order_relaxed);
}

/* ---- start -------------------------------------------------------------------------------------
 */

static uint64_t hoard_bytes(const struct cw_options *options)
{
    uint64_t most = 0;

    /* What a size or share means for a device of 16 GiB: it only has to be in proportion. */
    if (options->pool_bucket_max == 0 ||
        !cw_sizes_for(&options->pool_max, CW_MAX_DEVICES, NULL, 16 * 1024 * MIB, &most))
        return 0;
    return most / HOARD_SHARE < HOARD_BYTES ? most / HOARD_SHARE : HOARD_BYTES;
}

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
    for (int i = 0; i < CW_DEVICES; i++)
        atomic_store_explicit(&self.most_idle[i], 0, memory_order_relaxed);
    cw_bucket_init(arena);
    cw_hoard_init(hoard_bytes(options));
    cw_request_set_reclaim(self.on ? cw_pool_reclaim : NULL);
    arena->header->pool_mode = (uint8_t)self.on;
    arena->header->free_sync = (uint8_t)(self.deferred ? CW_FREE_DEFERRED : CW_FREE_STRICT);
}

void cw_pool_reset(void)
{
    self.on = 0;
    cw_hoard_reset();
    cw_pending_reset();
    cw_realm_reset();
    cw_bucket_reset();
}

int cw_pool_is_on(void)
{
    return self.on;
}

/* ---- what may be kept --------------------------------------------------------------------------
 */

static uint64_t most_idle_now(uint8_t device)
{
    const struct cw_live_device *live = &self.arena->header->device[device];
    uint64_t most = 0;

    if (device == CW_DEVICE_HOST)
        return cw_sizes_for(&self.options->pool_max, CW_MAX_DEVICES, NULL, 4 * HOST_MOST, &most) &&
                       most < HOST_MOST
                   ? most
                   : HOST_MOST;
    if (!cw_sizes_for(&self.options->pool_max, device, live->uuid, live->total, &most))
        return UINT64_MAX;
    return most;
}

/* Worked out once, when the device's size and uuid are known. */
static uint64_t most_idle(uint8_t device)
{
    uint64_t most = atomic_load_explicit(&self.most_idle[device], memory_order_relaxed);

    if (CW_LIKELY(most != 0))
        return most - 1;
    most = most_idle_now(device);
    if (device == CW_DEVICE_HOST || atomic_load(&self.arena->header->device[device].known))
        atomic_store_explicit(&self.most_idle[device], most == UINT64_MAX ? most : most + 1,
                              memory_order_relaxed);
    return most;
}

/* As far as the last look at the device tells, with what we took and gave back since. */
static int leaves_enough_free(uint8_t device)
{
    const struct cw_live_device *live = &self.arena->header->device[device];
    uint64_t total = atomic_load_explicit(&live->driver_total, memory_order_relaxed);
    int64_t since = (int64_t)(atomic_load_explicit(&live->held_bytes, memory_order_relaxed) -
                              atomic_load_explicit(&live->sample_held, memory_order_relaxed));
    int64_t used = (int64_t)atomic_load_explicit(&live->driver_used, memory_order_relaxed) + since;
    uint64_t least = total / 20 < LEAST_FREE ? total / 20 : LEAST_FREE;

    return device == CW_DEVICE_HOST || total == 0 || (int64_t)total - used >= (int64_t)least;
}

static int has_room(const struct cw_pool *pool, uint64_t held)
{
    return held >= CW_SIZE_LEAST && held <= CW_SIZE_MOST &&
           cw_bucket_has_room(pool, held, self.options->pool_bucket_max) &&
           cw_bucket_idle(pool->device) + cw_pending_bytes(pool->device) + held <=
               most_idle(pool->device) &&
           leaves_enough_free(pool->device);
}

/* ---- back to the driver ------------------------------------------------------------------------
 */

static struct cw_pool *pool_of(struct cw_realm *realm, uint32_t block)
{
    return cw_realm_pool(realm, cw_tracker_at(block)->class);
}

/* One block; the gate is open. */
static void release_block(struct cw_realm *realm, struct cw_pool *pool, uint32_t block)
{
    const struct cw_live_block *record = cw_tracker_at(block);
    uint64_t key = atomic_load_explicit(&record->key, memory_order_relaxed);

    cw_bucket_dropped(pool, block, 1);
    if (atomic_load_explicit(&record->state, memory_order_acquire) == CW_BLOCK_IDLE &&
        cw_tracker_take_idle(block)) {
        cw_freed_remember(key, record->maps);
        cw_session.ops->block_free(realm->record->handle, pool->kind, key);
    }
    cw_tracker_finish_idle(block);
}

static void put_or_defer(struct cw_pool *pool, uint32_t block, int kept)
{
    if (!cw_bucket_put(pool, block, kept)) {
        atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
        cw_realm_defer(pool->realm, block);
    }
}

uint64_t cw_pool_release(struct cw_realm *realm, uint32_t list, enum cw_release why)
{
    struct cw_live_pool *pool_counters;
    uint64_t bytes = 0;

    while (list != 0) {
        struct cw_pool *pool = pool_of(realm, list);
        uint32_t next = next_of(list);

        /* The driver's free may wait for the device. */
        if (cw_gate_enter_wait()) {
            int dead = atomic_load(&realm->state) == CW_REALM_DEAD;

            if (!dead) {
                bytes += held_of(list);
                release_block(realm, pool, list);
            }
            cw_gate_leave_wait();
            if (dead) { /* the context has ended since: the memory went with it */
                cw_pool_forget(realm, list);
                return bytes;
            }
            pool_counters = counters(pool->device);
            count(why == CW_RELEASE_FULL   ? &pool_counters->trimmed_full
                  : why == CW_RELEASE_IDLE ? &pool_counters->trimmed_idle
                                           : &pool_counters->trimmed_oom,
                  1);
        } else {
            atomic_store_explicit(&cw_tracker_at(list)->link, 0, memory_order_relaxed);
            cw_pending_add_list(realm, list);
        }
        list = next;
    }
    return bytes;
}

void cw_pool_forget(struct cw_realm *realm, uint32_t list)
{
    while (list != 0) {
        uint32_t next = next_of(list);

        cw_bucket_dropped(pool_of(realm, list), list, 0);
        cw_tracker_take_idle(list);
        cw_tracker_finish_idle(list);
        list = next;
    }
}

/* At most every eighth of the time that a block may lie idle. */
static void trim_idle(struct cw_realm *realm, uint64_t now)
{
    uint64_t idle = self.options->pool_idle;
    uint64_t due = atomic_load_explicit(&realm->next_trim_ns, memory_order_relaxed);

    if (now < due || now <= idle ||
        !atomic_compare_exchange_strong(&realm->next_trim_ns, &due, now + idle / 8))
        return;
    for (unsigned i = 0; i < CW_POOL_CLASSES; i++) {
        struct cw_pool *pool = atomic_load(&realm->pool[i]);

        if (pool != NULL)
            cw_pool_release(realm,
                            cw_bucket_take_all(pool, cw_size_class_up(CW_SIZE_ROUNDED), now - idle),
                            CW_RELEASE_IDLE);
    }
}

/* ---- keeping -----------------------------------------------------------------------------------
 */

/* Ready, counted blocks for the shared buckets; those beyond the limits go back to the driver. */
static void share(struct cw_pool *pool, uint32_t list)
{
    uint32_t too_many = 0;

    while (list != 0) {
        uint32_t next = next_of(list);

        if (has_room(pool, held_of(list))) {
            put_or_defer(pool, list, 0);
        } else {
            atomic_store_explicit(&cw_tracker_at(list)->link, too_many, memory_order_relaxed);
            too_many = list;
        }
        list = next;
    }
    if (CW_UNLIKELY(too_many != 0))
        cw_pool_release(pool->realm, too_many, CW_RELEASE_FULL);
}

/* Inside an allocation, where nothing is given back: the device might have to be waited for. */
static void share_all(struct cw_pool *pool, uint32_t list)
{
    for (uint32_t next; list != 0; list = next) {
        next = next_of(list);
        put_or_defer(pool, list, 0);
    }
}

/* A retired block that is ready. */
static void keep(struct cw_pool *pool, uint32_t block, uint64_t now)
{
    uint32_t spill;
    uint64_t held;

    if (CW_LIKELY(cw_hoard_put(pool, block, 1, &spill))) {
        if (CW_UNLIKELY(spill != 0))
            share(pool, spill);
        return;
    }
    held = held_of(block);
    if (CW_LIKELY(has_room(pool, held))) {
        put_or_defer(pool, block, 1);
    } else {
        cw_bucket_kept(pool, block);
        atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
        cw_pool_release(pool->realm, block, CW_RELEASE_FULL);
    }
    if (held >= CW_SIZE_ROUNDED)
        trim_idle(pool->realm, now);
}

void cw_pool_ready(struct cw_realm *realm, uint32_t list, int may_release)
{
    while (list != 0) {
        struct cw_pool *pool = pool_of(realm, list);
        uint32_t next = next_of(list), spill;

        if (!cw_hoard_put(pool, list, 0, &spill)) {
            atomic_store_explicit(&cw_tracker_at(list)->link, 0, memory_order_relaxed);
            spill = list;
        }
        if (spill != 0 && may_release)
            share(pool, spill);
        else
            share_all(pool, spill);
        list = next;
    }
}

void cw_pool_thread_ends(void)
{
    uint32_t list, next;

    if (!self.on)
        return;
    for (list = cw_hoard_empty(); list != 0; list = next) {
        struct cw_realm *realm = cw_realm_of(cw_tracker_at(list)->context);

        next = next_of(list);
        put_or_defer(pool_of(realm, list), list, 0);
    }
    cw_pending_thread_ends();
}

/* ---- serving -----------------------------------------------------------------------------------
 */

/* From the thread's own blocks, then from the shared ones; the thread takes a few more along. */
static uint32_t take_ready(struct cw_pool *pool, uint64_t bytes)
{
    unsigned size_class = cw_size_class_up(bytes);
    int rounded = pool->class != CW_POOL_PITCHED;
    uint32_t block, list, some;

    if (CW_LIKELY(rounded)) {
        block = cw_hoard_take(pool, size_class, bytes);
        if (CW_LIKELY(block != 0))
            return block;
    }
    if (rounded && bytes <= CW_HOARD_LARGEST / 4 && cw_thread_slot() != 0) {
        list = cw_bucket_take_some(pool, size_class, 4, &some);
        for (list = cw_hoard_refill(pool, size_class, list, some); list != 0; list = some) {
            some = next_of(list);
            put_or_defer(pool, list, 0);
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
        next = next_of(list);
        put_or_defer(pool, list, 0);
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

/* A block whose address the driver has given out again is no block any more. */
static uint32_t take_valid(struct cw_pool *pool, uint64_t bytes)
{
    uint32_t block;

    while ((block = take(pool, bytes)) != 0) {
        if (CW_LIKELY(atomic_load_explicit(&cw_tracker_at(block)->state, memory_order_acquire) ==
                      CW_BLOCK_IDLE))
            return block;
        cw_tracker_finish_idle(block);
    }
    return 0;
}

static void prewarm(struct cw_pool *pool, uint32_t api)
{
    const struct cw_option_batches *batches = &self.options->prewarm;
    uint32_t site = cw_site_here(api, pool->kind, pool->device);

    for (unsigned i = 0; i < batches->count && site != 0; i++) {
        for (uint32_t k = 0; k < batches->item[i].blocks; k++) {
            struct cw_request request = {.kind = pool->kind,
                                         .device = pool->device,
                                         .flags = CW_BLOCK_POOLED,
                                         .class = pool->class,
                                         .context = pool->realm->context};
            uint32_t block;
            int rc;

            request.held = cw_size_round(batches->item[i].bytes);
            if (!cw_gate_enter())
                return;
            rc = cw_session.ops->block_alloc(request.held, &request.key);
            cw_gate_leave();
            if (rc != 0) {
                cw_log(CW_LOG_WARN,
                       "PREWARM: the driver had no memory for block %u of %u of %ju bytes", k + 1,
                       batches->item[i].blocks, (uintmax_t)batches->item[i].bytes);
                return;
            }
            block = cw_tracker_insert_idle(&request, site);
            if (block == 0)
                return;
            count(&counters(pool->device)->prewarmed, 1);
            cw_bucket_added(pool, block);
            put_or_defer(pool, block, 0);
        }
    }
}

struct cw_pool *cw_pool_here(enum cw_pool_class class)
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

uint64_t cw_pool_serve(struct cw_pool_request *request, uint32_t api)
{
    struct cw_pool *pool;
    uint32_t block, site;

    request->ask = 0;
    request->pool = NULL;
    if (!self.on || request->bytes == 0 || request->bytes > CW_SIZE_MOST)
        return 0;
    pool = cw_pool_here(request->class);
    if (pool == NULL)
        return 0;
    request->pool = pool;
    request->ask = pool->class == CW_POOL_PITCHED ? request->bytes : cw_size_round(request->bytes);
    if (CW_UNLIKELY(self.options->prewarm.count != 0) && pool->class == CW_POOL_DEVICE &&
        !atomic_load_explicit(&pool->realm->warmed, memory_order_relaxed) &&
        !atomic_exchange(&pool->realm->warmed, 1))
        prewarm(pool, api);
    block = take_valid(pool, request->bytes);
    if (block == 0)
        return 0;
    site = cw_site_here(api, pool->kind, pool->device);
    if (CW_UNLIKELY(site == 0)) {
        put_or_defer(pool, block, 0);
        return 0;
    }
    cw_tracker_reuse(block, site, request->bytes, cw_session_now());
    return atomic_load_explicit(&cw_tracker_at(block)->key, memory_order_relaxed);
}

void cw_pool_granted(const struct cw_pool_request *request, uint64_t given, int is_exact,
                     struct cw_request *out)
{
    struct cw_pool *pool = request->pool;

    /* Too small or too large for any bucket: when rounding was too much for the device. */
    if (pool == NULL || given < CW_SIZE_LEAST || given > CW_SIZE_MOST)
        return;
    out->held = given;
    out->flags |= CW_BLOCK_POOLED;
    out->class = pool->class;
    cw_bucket_miss(pool, request->bytes, given);
    if (is_exact)
        count(&counters(pool->device)->exact_retries, 1);
}

/* ---- freeing -----------------------------------------------------------------------------------
 */

static enum cw_pool_free ask_driver(uint64_t key, uint32_t index, struct cw_request_free *out)
{
    cw_index_remove_block(CW_SPACE_ADDRESS, key, index);
    *out = (struct cw_request_free){.space = CW_SPACE_ADDRESS, .key = key, .block = index};
    return CW_POOL_DRIVER;
}

/* No other context can have touched the block. */
static int is_alone(void)
{
    return CW_LIKELY(atomic_load_explicit(&cw_realms_live, memory_order_relaxed) == 1);
}

static int is_any_current(void)
{
    uint64_t handle = 0;

    return cw_session.ops->context_current(&handle) == 0 && handle != 0;
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
    if (self.deferred && !is_any_current())
        return CW_BYPASS_NO_CONTEXT;
    if (CW_UNLIKELY(!is_alone() && !cw_pending_is_possible()))
        return CW_BYPASS_CONTEXTS;
    /* Small ones find room in the thread's own hoard, or else are sorted out when they leave it. */
    if (CW_UNLIKELY(held > CW_HOARD_LARGEST) && !has_room(pool, held))
        return CW_BYPASS_FULL;
    return CW_BYPASS_COUNT;
}

/* Waits for the owner's context as the driver's own free does. -1: the gate is closed. */
static int wait_for(struct cw_realm *realm, int *out_code)
{
    uint64_t ticket = 0;

    if (!cw_gate_enter_wait())
        return -1;
    if (CW_UNLIKELY(!cw_realm_is_usable(realm))) {
        cw_gate_leave_wait();
        return -1;
    }
    if (CW_UNLIKELY(cw_pending_is_any() || !is_alone()))
        ticket = cw_pending_sync_begin();
    *out_code = cw_session.ops->context_wait(realm->record->handle);
    cw_gate_leave_wait();
    if (CW_UNLIKELY(ticket != 0) && *out_code == 0)
        cw_pending_sync_end(realm, ticket);
    return 0;
}

/* The context has been waited for where that is due; the block may have to wait for others. */
static void retire(struct cw_pool *pool, uint32_t index, uint32_t site, uint64_t stamp, int ready)
{
    uint64_t now = held_of(index) >= CW_SIZE_ROUNDED ? cw_session_now() : 0;

    cw_tracker_retire(index, site, now);
    if (CW_LIKELY(ready)) {
        keep(pool, index, now);
        return;
    }
    cw_bucket_kept(pool, index);
    if (cw_pending_add(pool, index, stamp) != 0) {
        atomic_store_explicit(&cw_tracker_at(index)->link, 0, memory_order_relaxed);
        cw_pool_release(pool->realm, index, CW_RELEASE_FULL);
    }
}

static enum cw_pool_free free_claimed(uint32_t index, uint64_t key, uint32_t api,
                                      struct cw_request_free *out, int *out_wait)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    struct cw_realm *realm = cw_realm_of(block->context);
    struct cw_pool *pool = realm != NULL ? cw_realm_pool(realm, block->class) : NULL;
    enum cw_bypass why = obstacle(block, realm, pool);
    int alone = is_alone();
    uint64_t stamp = 0;

    if (CW_UNLIKELY(why != CW_BYPASS_COUNT)) {
        bypass(pool != NULL ? pool->device : 0, why);
        return ask_driver(key, index, out);
    }
    if (self.deferred || !alone)
        stamp = cw_pending_stamp();
    if (!self.deferred && (wait_for(realm, out_wait) != 0 || *out_wait != 0)) {
        bypass(pool->device, *out_wait == 0     ? CW_BYPASS_CAPTURE
                             : is_any_current() ? CW_BYPASS_BROKEN
                                                : CW_BYPASS_NO_CONTEXT);
        return ask_driver(key, index, out);
    }
    retire(pool, index, self.stacks ? cw_site_here(api, pool->kind, pool->device) : 0, stamp,
           !self.deferred && alone);
    return CW_POOL_KEPT;
}

static int is_freed_by(enum cw_pool_freeing how, const struct cw_live_block *block)
{
    return how == (block->class >= CW_POOL_HOST ? CW_POOL_FREES_HOST : CW_POOL_FREES_DEVICE);
}

enum cw_pool_free cw_pool_free(enum cw_pool_freeing how, uint64_t key, uint32_t api,
                               struct cw_request_free *out, int *out_wait)
{
    uint32_t index = self.on ? cw_tracker_find(CW_SPACE_ADDRESS, key) : 0;
    const struct cw_live_block *block = cw_tracker_at(index);

    *out_wait = 0;
    if (index == 0 ||
        !(atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED)) {
        cw_request_free_begin(CW_SPACE_ADDRESS, key, out);
        return CW_POOL_DRIVER;
    }
    if (CW_LIKELY(cw_tracker_claim(index, CW_SPACE_ADDRESS, key)))
        return CW_LIKELY(is_freed_by(how, block)) ? free_claimed(index, key, api, out, out_wait)
                                                  : ask_driver(key, index, out);
    *out = (struct cw_request_free){.space = CW_SPACE_ADDRESS, .key = key};
    return CW_POOL_REFUSED;
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
    trim_idle(realm, cw_session_now());
}

/* ---- out of memory -----------------------------------------------------------------------------
 */

static uint64_t release_ready(struct cw_realm *realm)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < CW_POOL_CLASSES; i++) {
        struct cw_pool *pool = atomic_load(&realm->pool[i]);

        if (pool == NULL)
            continue;
        bytes += cw_pool_release(realm, cw_hoard_seize(pool, CW_SIZE_CLASSES), CW_RELEASE_OOM);
        bytes += cw_pool_release(realm, cw_bucket_take_all(pool, 0, UINT64_MAX), CW_RELEASE_OOM);
    }
    return bytes;
}

static uint64_t release_on(uint8_t device, struct cw_realm *const *realm, uint32_t total)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < total; i++)
        if (realm[i]->device == device && cw_realm_is_usable(realm[i]))
            bytes += release_ready(realm[i]);
    return bytes;
}

/* Every context, because what is pending has to wait for each. */
static void wait_for_all(struct cw_realm *const *realm, uint32_t total)
{
    for (uint32_t i = 0; i < total; i++) {
        int code = 0;

        cw_pending_publish(realm[i]);
        if (cw_realm_is_usable(realm[i]))
            wait_for(realm[i], &code);
    }
    for (uint32_t i = 0; i < total; i++)
        cw_pending_harvest(realm[i], 0, 1);
}

uint64_t cw_pool_reclaim(uint8_t device)
{
    struct cw_realm *realm[CW_REALMS_LIVE];
    uint32_t total;
    uint64_t bytes;

    if (!self.on)
        return 0;
    total = cw_realm_list(realm, CW_REALMS_LIVE);
    if (total > CW_REALMS_LIVE)
        total = CW_REALMS_LIVE;
    for (uint32_t i = 0; i < total && cw_pending_is_any(); i++)
        cw_pending_harvest(realm[i], UINT32_MAX, 1);
    bytes = release_on(device, realm, total);
    /* Without us the frees would have waited: what they freed must be there now. */
    if (cw_pending_bytes(device) != 0) {
        wait_for_all(realm, total);
        bytes += release_on(device, realm, total);
    }
    return bytes;
}

/* ---- what the program sees ---------------------------------------------------------------------
 */

uint64_t cw_pool_idle(uint8_t device)
{
    uint64_t idle = 0;
    struct cw_view view;
    uint32_t total;

    if (!self.on)
        return 0;
    cw_arena_view(self.arena, &view);
    total = cw_view_count(&view, CW_TABLE_BUCKET);
    for (uint32_t i = 1; i < total; i++) {
        const struct cw_live_bucket *bucket = cw_view_bucket(&view, i);

        if (bucket != NULL && bucket->device == device)
            idle += atomic_load_explicit(&bucket->idle_bytes, memory_order_relaxed);
    }
    /* One thread's record may be read before a block came in, another's after it left. */
    return (int64_t)idle > 0 ? idle : 0;
}

int cw_pool_look(uint64_t key, struct cw_pool_view *out)
{
    uint32_t index = self.on ? cw_tracker_find(CW_SPACE_ADDRESS, key) : 0;
    const struct cw_live_block *block = cw_tracker_at(index);

    if (index == 0 ||
        !(atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED))
        return 0;
    out->block = index;
    out->reuses = block->refs - 1;
    out->bytes = atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE
                     ? atomic_load_explicit(&block->bytes, memory_order_relaxed)
                     : 0;
    return 1;
}
