/* SPDX-License-Identifier: MIT */
/* What the pool keeps and what it gives back. See keep.h. */
#include "core/keep.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/device.h"
#include "core/freed.h"
#include "core/hoard.h"
#include "core/limit.h"
#include "core/pending.h"
#include "core/pressure.h"
#include "core/realm.h"
#include "core/session.h"
#include "core/tally.h"
#include "core/tracker.h"

#define MIB ((uint64_t)1 << 20)

/* Of all hoards of a thread, and in each at most this share of what a device may keep. */
#define HOARD_BYTES (16 * MIB)
#define HOARD_SHARE 64
/* Left free on a device, or a twentieth of a small one. */
#define LEAST_FREE (512 * MIB)
/* Pinned memory is kept up to so much, or what POOL_MAX says for a device of this size. */
#define HOST_MOST (1024 * MIB)

_Atomic uint64_t cw_keep_unchecked;
_Atomic uint32_t cw_keep_reclaims_running;
_Atomic uint32_t cw_keep_reclaims_done;

static struct {
    const struct cw_options *options;
    struct cw_arena *arena;
    _Atomic uint64_t most_idle[CW_DEVICES]; /* and 1; 0: not known yet */
    _Atomic uint64_t leaving[CW_DEVICES];   /* bytes that the driver is being given back */
} self;

static struct cw_live_pool *counters(uint8_t device)
{
    return &self.arena->header->device[device].pool;
}

static void count(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static uint64_t hoard_bytes(const struct cw_options *options)
{
    uint64_t most = 0;

    /* What a size or share means for a device of 16 GiB: it only has to be in proportion. */
    if (options->pool_bucket_max == 0 ||
        !cw_sizes_for(&options->pool_max, CW_MAX_DEVICES, NULL, 16 * 1024 * MIB, &most))
        return 0;
    return most / HOARD_SHARE < HOARD_BYTES ? most / HOARD_SHARE : HOARD_BYTES;
}

/* Small blocks find room in the thread's own hoard, or else are sorted out when they leave it; not
 * where nothing may be kept, be it on some devices only. */
static uint64_t most_unchecked(const struct cw_options *options)
{
    return hoard_bytes(options) == 0 || options->pool_max.count != 0 ? 0 : CW_HOARD_LARGEST;
}

void cw_keep_init(struct cw_arena *arena, const struct cw_options *options)
{
    self.arena = arena;
    self.options = options;
    for (int i = 0; i < CW_DEVICES; i++)
        atomic_store_explicit(&self.most_idle[i], 0, memory_order_relaxed);
    for (int i = 0; i < CW_DEVICES; i++)
        atomic_store_explicit(&self.leaving[i], 0, memory_order_relaxed);
    atomic_store(&cw_keep_reclaims_running, 0); /* in a forked child nobody else is at work */
    atomic_store(&cw_keep_unchecked, most_unchecked(options));
    cw_hoard_init(hoard_bytes(options));
}

/* ---- what may be kept --------------------------------------------------------------------------
 */

static uint64_t most_idle_now(uint8_t device)
{
    const struct cw_live_device *live = &self.arena->header->device[device];
    uint64_t most = 0;
    int known = atomic_load_explicit(&live->known, memory_order_acquire) != 0;

    if (device == CW_DEVICE_HOST)
        return cw_sizes_for(&self.options->pool_max, CW_MAX_DEVICES, NULL, 4 * HOST_MOST, &most) &&
                       most < HOST_MOST
                   ? most
                   : HOST_MOST;
    if (!cw_sizes_for(&self.options->pool_max, device, known ? live->uuid : NULL,
                      known ? live->total : 0, &most))
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

/* Threads look at the limits for small blocks too once little may be kept. */
void cw_keep_set_most(uint8_t device, uint64_t bytes)
{
    if (device == CW_DEVICE_HOST && bytes > HOST_MOST)
        bytes = HOST_MOST;
    atomic_store(&self.most_idle[device], bytes == UINT64_MAX ? bytes : bytes + 1);
    if (bytes < HOARD_BYTES * HOARD_SHARE)
        atomic_store(&cw_keep_unchecked, 0);
}

/* What is held counts without the slack of the threads, whose sum is only taken when it matters. */
static int has_free(uint8_t device, uint64_t least)
{
    const struct cw_live_device *live = &self.arena->header->device[device];

    return device == CW_DEVICE_HOST ||
           cw_device_free_when(device,
                               atomic_load_explicit(&live->held_bytes, memory_order_relaxed)) >=
               (int64_t)least ||
           cw_device_free_when(device, cw_tally_device(device).held) >= (int64_t)least;
}

static int leaves_enough_free(uint8_t device)
{
    uint64_t total = atomic_load_explicit(&self.arena->header->device[device].driver_total,
                                          memory_order_relaxed);

    return has_free(device, total / 20 < LEAST_FREE ? total / 20 : LEAST_FREE);
}

/* 1 if so much more still leaves half of the limit, if there is one. */
static int is_half_within(uint8_t device, uint64_t bytes)
{
    uint64_t limit = cw_limit_of(device);

    return limit == 0 || cw_tally_device(device).held + bytes <= limit / 2;
}

/* Rounding takes up to an eighth of what is live, which must not be missing when the device, or the
 * limit, fills up: from half of it on blocks are taken as they are asked for. */
uint64_t cw_keep_round(uint8_t device, uint64_t bytes)
{
    uint64_t total = atomic_load_explicit(&self.arena->header->device[device].driver_total,
                                          memory_order_relaxed);

    if (bytes <= 4096 || (has_free(device, total / 2 + bytes) && is_half_within(device, bytes)))
        return cw_size_round(bytes);
    return (bytes + CW_SIZE_LEAST - 1) & ~(uint64_t)(CW_SIZE_LEAST - 1);
}

int cw_keep_has_room(const struct cw_pool *pool, uint64_t held)
{
    enum cw_level level = cw_pressure_level(pool->device);

    return level != CW_LEVEL_CRITICAL && held >= CW_SIZE_LEAST && held <= CW_SIZE_MOST &&
           cw_bucket_has_room(pool, held, self.options->pool_bucket_max,
                              level >= CW_LEVEL_MEDIUM) &&
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
    uint64_t held = cw_tracker_held(block);
    int is_there = atomic_load_explicit(&record->state, memory_order_acquire) == CW_BLOCK_IDLE &&
                   cw_tracker_take_idle(block);

    atomic_fetch_add(&self.leaving[pool->device], held);
    cw_bucket_dropped(pool, block, is_there);
    if (is_there) {
        cw_freed_remember(key, atomic_load_explicit(&record->maps, memory_order_relaxed));
        cw_session.ops->block_free(realm->record->handle, pool->kind, key);
    }
    atomic_fetch_sub(&self.leaving[pool->device], held);
    cw_tracker_finish_idle(block);
}

void cw_keep_put(struct cw_pool *pool, uint32_t block, int kept)
{
    if (!cw_bucket_put(pool, block, kept)) {
        atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
        cw_realm_defer(pool->realm, block);
    }
}

static void count_release(const struct cw_pool *pool, uint64_t bytes, enum cw_release why)
{
    struct cw_live_memory *memory = &self.arena->header->device[pool->device].memory;

    switch (why) {
    case CW_RELEASE_FULL:
        count(&counters(pool->device)->trimmed_full, 1);
        return;
    case CW_RELEASE_IDLE:
        count(&counters(pool->device)->trimmed_idle, 1);
        return;
    case CW_RELEASE_PRESSURE:
        cw_pressure_relieved(pool->device, 1, bytes);
        return;
    case CW_RELEASE_EMPTY:
        count(&memory->empty_blocks, 1);
        count(&memory->empty_bytes, bytes);
        return;
    default:
        count(&counters(pool->device)->trimmed_oom, 1);
    }
}

void cw_keep_reclaim_begins(void)
{
    atomic_fetch_add(&cw_keep_reclaims_running, 1);
}

uint64_t cw_keep_reclaim_ends(uint64_t bytes)
{
    if (bytes != 0) /* first: who sees none running has to see that it is done */
        atomic_fetch_add(&cw_keep_reclaims_done, 1);
    atomic_fetch_sub(&cw_keep_reclaims_running, 1);
    return bytes;
}

static uint64_t release_list(struct cw_realm *realm, uint32_t list, enum cw_release why)
{
    uint64_t sum = 0, bytes;

    while (list != 0) {
        struct cw_pool *pool = pool_of(realm, list);
        uint32_t next = cw_tracker_next(list);

        if (cw_realm_enter_free(realm)) {
            int dead = atomic_load(&realm->state) == CW_REALM_DEAD;

            bytes = cw_tracker_held(list);
            if (!dead)
                release_block(realm, pool, list);
            cw_realm_leave_free(realm);
            if (dead) { /* the context has ended since: the memory went with it */
                cw_keep_forget(realm, list);
                return sum;
            }
            sum += bytes;
            count_release(pool, bytes, why);
        } else {
            atomic_store_explicit(&cw_tracker_at(list)->link, 0, memory_order_relaxed);
            cw_pending_add_list(realm, list);
        }
        list = next;
    }
    return sum;
}

uint64_t cw_keep_release(struct cw_realm *realm, uint32_t list, enum cw_release why)
{
    if (list == 0)
        return 0;
    cw_keep_reclaim_begins();
    return cw_keep_reclaim_ends(release_list(realm, list, why));
}

void cw_keep_forget(struct cw_realm *realm, uint32_t list)
{
    while (list != 0) {
        uint32_t next = cw_tracker_next(list);

        cw_bucket_dropped(pool_of(realm, list), list, 0);
        cw_tracker_take_idle(list);
        cw_tracker_finish_idle(list);
        list = next;
    }
}

/* At most every eighth of the time that a block may lie idle. */
void cw_keep_trim(struct cw_realm *realm, uint64_t now)
{
    uint64_t idle = self.options->pool_idle;
    uint64_t due = atomic_load_explicit(&realm->next_trim_ns, memory_order_relaxed);

    if (now < due || now <= idle ||
        !atomic_compare_exchange_strong(&realm->next_trim_ns, &due, now + idle / 8))
        return;
    for (unsigned i = 0; i < CW_POOL_CLASSES; i++) {
        struct cw_pool *pool = atomic_load(&realm->pool[i]);

        if (pool == NULL)
            continue;
        cw_keep_reclaim_begins();
        cw_keep_reclaim_ends(
            cw_keep_release(realm, cw_bucket_take_old(pool, now - idle), CW_RELEASE_IDLE));
    }
}

/* ---- keeping -----------------------------------------------------------------------------------
 */

/* Ready, counted blocks for the shared buckets; those beyond the limits go back to the driver. */
static void share(struct cw_pool *pool, uint32_t list)
{
    uint32_t too_many = 0;

    while (list != 0) {
        uint32_t next = cw_tracker_next(list);

        if (cw_keep_has_room(pool, cw_tracker_held(list))) {
            cw_keep_put(pool, list, 0);
        } else {
            atomic_store_explicit(&cw_tracker_at(list)->link, too_many, memory_order_relaxed);
            too_many = list;
        }
        list = next;
    }
    if (CW_UNLIKELY(too_many != 0)) {
        cw_keep_release(pool->realm, too_many, CW_RELEASE_FULL);
    }
}

/* Inside an allocation, where nothing is given back: the device might have to be waited for. */
static void share_all(struct cw_pool *pool, uint32_t list)
{
    for (uint32_t next; list != 0; list = next) {
        next = cw_tracker_next(list);
        cw_keep_put(pool, list, 0);
    }
}

/* A retired block that is ready. */
void cw_keep_block(struct cw_pool *pool, uint32_t block, uint64_t now)
{
    uint64_t held = cw_tracker_held(block);
    uint32_t spill;

    if (cw_tracker_at(block)->cell != CW_HOARD_NONE && cw_hoard_put(pool, block, 1, &spill)) {
        if (CW_UNLIKELY(spill != 0))
            share(pool, spill);
        return;
    }
    if (CW_LIKELY(cw_keep_has_room(pool, held))) {
        cw_keep_put(pool, block, 1);
    } else {
        cw_bucket_kept(pool, block);
        atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
        cw_keep_release(pool->realm, block, CW_RELEASE_FULL);
    }
    if (held >= CW_SIZE_ROUNDED)
        cw_keep_trim(pool->realm, now);
}

void cw_keep_ready(struct cw_realm *realm, uint32_t list, int may_release)
{
    while (list != 0) {
        struct cw_pool *pool = pool_of(realm, list);
        uint32_t next = cw_tracker_next(list), spill;

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

void cw_keep_thread_ends(void)
{
    uint32_t list, next;

    for (list = cw_hoard_empty(); list != 0; list = next) {
        struct cw_realm *realm = cw_realm_of(cw_tracker_at(list)->context);

        next = cw_tracker_next(list);
        cw_keep_put(pool_of(realm, list), list, 0);
    }
    cw_pending_thread_ends();
}

/* ---- how much there is -------------------------------------------------------------------------
 */

uint64_t cw_keep_idle(uint8_t device)
{
    uint64_t idle = atomic_load(&self.leaving[device]);
    struct cw_view view;
    uint32_t total;

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
