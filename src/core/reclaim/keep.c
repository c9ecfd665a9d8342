/* SPDX-License-Identifier: MIT */
/* What the pool keeps and what it gives back. See keep.h. */
#include "core/reclaim/keep.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/reclaim/demand.h"
#include "core/device/device.h"
#include "core/account/freed.h"
#include "core/pending/pending.h"
#include "core/limits/pressure.h"
#include "core/cache/realm.h"
#include "core/reclaim/reclaim_due.h"
#include "core/process/session.h"
#include "core/account/tally.h"
#include "core/cache/thread_cache.h"
#include "core/account/tracker.h"

#define MIB ((uint64_t)1 << 20)

/* Left free on a device, or a twentieth of a small one. */
#define LEAST_FREE (512 * MIB)
/* Pinned memory is kept up to so much, or what POOL_MAX says for a device of this size. */
#define HOST_MOST (1024 * MIB)
/* Where POOL_BUCKET_MAX says how many blocks of a size are kept, threads keep no larger ones. */
#define UNCOUNTED (1 * MIB)

CW_HOT_DATA _Atomic uint32_t cw_admission_reasons[CW_DEVICES];
CW_HOT_DATA _Atomic uint32_t cw_keep_wanted[CW_DEVICES];
CW_HOT_DATA _Atomic uint32_t cw_keep_reclaims_running;
CW_HOT_DATA _Atomic uint32_t cw_keep_reclaims_done;

static struct {
    const struct cw_options *options;
    struct cw_arena *arena;
    _Atomic uint64_t most_idle[CW_DEVICES]; /* and 1; 0: not known yet */
    _Atomic uint64_t granted[CW_DEVICES];   /* to threads */
    _Atomic uint64_t leaving[CW_DEVICES];   /* bytes that the driver is being given back */
    _Atomic uint8_t is_off[CW_DEVICES];     /* nothing may be kept: a reason of admission */
    _Atomic uint32_t departures, arrivals;  /* of blocks that the driver is being given back */
} self;

static struct cw_live_pool *counters(uint8_t device)
{
    return &self.arena->header->device[device].pool;
}

static void count(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static void set_off(uint8_t device, int is_off)
{
    if (atomic_exchange(&self.is_off[device], (uint8_t)is_off) == is_off)
        return;
    if (is_off)
        cw_admission_close(device);
    else
        cw_admission_open(device);
}

void cw_keep_init(struct cw_arena *arena, const struct cw_options *options)
{
    self.arena = arena;
    self.options = options;
    for (int i = 0; i < CW_DEVICES; i++) {
        store(&self.most_idle[i], 0);
        store(&self.granted[i], 0);
        store(&self.leaving[i], 0);
        atomic_store(&self.is_off[i], 0);
        atomic_store(&cw_keep_wanted[i], 0);
        set_off((uint8_t)i, options->pool_bucket_max == 0);
    }
    /* In a forked child nobody else is at work. */
    atomic_store(&cw_keep_reclaims_running, 0);
    atomic_store(&self.departures, 0);
    atomic_store(&self.arrivals, 0);
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

static void set_most(uint8_t device, uint64_t bytes)
{
    store(&self.most_idle[device], bytes == UINT64_MAX ? bytes : bytes + 1);
    set_off(device, bytes == 0 || self.options->pool_bucket_max == 0);
}

/* Worked out once, when the device's size and uuid are known. */
static uint64_t most_idle(uint8_t device)
{
    uint64_t most = load(&self.most_idle[device]);

    if (CW_LIKELY(most != 0))
        return most - 1;
    most = most_idle_now(device);
    if (device == CW_DEVICE_HOST || atomic_load(&self.arena->header->device[device].known))
        set_most(device, most);
    return most;
}

void cw_keep_set_most(uint8_t device, uint64_t bytes)
{
    set_most(device, device == CW_DEVICE_HOST && bytes > HOST_MOST ? HOST_MOST : bytes);
}

/* What is held counts without the slack of the threads, whose sum is only taken when it matters. */
static int has_free(uint8_t device, uint64_t least)
{
    const struct cw_live_device *live = &self.arena->header->device[device];

    return device == CW_DEVICE_HOST ||
           cw_device_free_when(device, load(&live->held_bytes)) >= (int64_t)least ||
           cw_device_free_when(device, cw_tally_device(device).held) >= (int64_t)least;
}

static int leaves_enough_free(uint8_t device)
{
    uint64_t total = load(&self.arena->header->device[device].driver_total);

    return has_free(device, total / 20 < LEAST_FREE ? total / 20 : LEAST_FREE);
}

uint64_t cw_keep_counted(uint8_t device)
{
    return cw_bucket_idle(device) + load(&self.granted[device]) + cw_pending_listed(device);
}

static int may_keep(uint8_t device, uint64_t bytes)
{
    return cw_pressure_level(device) != CW_LEVEL_CRITICAL &&
           cw_keep_counted(device) + bytes <= most_idle(device) && leaves_enough_free(device);
}

static int is_by_count(void)
{
    return self.options->pool_bucket_max != CW_COUNT_AUTO;
}

int cw_keep_has_room(const struct cw_pool *pool, uint64_t held)
{
    return held >= CW_SIZE_LEAST && held <= CW_SIZE_MOST && may_keep(pool->device, held) &&
           (!is_by_count() ||
            cw_bucket_has_room(pool, held, self.options->pool_bucket_max,
                               cw_pressure_level(pool->device) >= CW_LEVEL_MEDIUM));
}

int cw_keep_grant(const struct cw_pool *pool, uint64_t bytes, uint64_t held)
{
    if ((is_by_count() && (held > UNCOUNTED || self.options->pool_bucket_max == 0)) ||
        !may_keep(pool->device, bytes))
        return 0;
    atomic_fetch_add(&self.granted[pool->device], bytes);
    /* Others may have been granted something at the same moment. */
    if (cw_keep_counted(pool->device) <= most_idle(pool->device))
        return 1;
    atomic_fetch_sub(&self.granted[pool->device], bytes);
    return 0;
}

void cw_keep_want(uint8_t device)
{
    atomic_fetch_add(&cw_keep_wanted[device], 1);
    cw_admission_close(device);
}

void cw_keep_unwant(uint8_t device)
{
    cw_admission_open(device);
    atomic_fetch_sub(&cw_keep_wanted[device], 1);
}

void cw_keep_ungrant(uint8_t device, uint64_t bytes)
{
    if (bytes != 0)
        atomic_fetch_sub(&self.granted[device], bytes);
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

    atomic_fetch_add(&self.departures, 1);
    atomic_fetch_add(&self.leaving[pool->device], held);
    cw_bucket_dropped(pool, block, is_there);
    if (is_there) {
        cw_freed_remember(key, atomic_load_explicit(&record->maps, memory_order_relaxed));
        cw_session.ops->block_free(cw_context_name(realm->record), pool->kind, key);
    }
    atomic_fetch_sub(&self.leaving[pool->device], held);
    atomic_fetch_add(&self.arrivals, 1);
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
    switch (why) {
    case CW_RELEASE_FULL:
    case CW_RELEASE_CONTEXT:
        count(&counters(pool->device)->trimmed_full, 1);
        return;
    case CW_RELEASE_IDLE:
        count(&counters(pool->device)->trimmed_idle, 1);
        return;
    case CW_RELEASE_PRESSURE:
        cw_pressure_relieved(pool->device, 1, bytes);
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

void cw_keep_release_one(struct cw_pool *pool, uint32_t block, enum cw_release why)
{
    atomic_store_explicit(&cw_tracker_at(block)->link, 0, memory_order_relaxed);
    cw_keep_release(pool->realm, block, why);
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

/* ---- keeping -----------------------------------------------------------------------------------
 */

void cw_keep_check(uint8_t device)
{
    const struct cw_live_device *live = &self.arena->header->device[device];
    uint64_t cap;

    cw_demand_note(device, 0);
    cap = cw_demand_cap(device);
    if (CW_UNLIKELY(load(&live->held_bytes) > cap) && cw_tally_device(device).held > cap)
        cw_reclaim_due_set(device, CW_RECLAIM_CAP);
    if (CW_UNLIKELY(cw_keep_counted(device) > CW_DEMAND_LITTLE))
        cw_demand_watch();
}

/* Where blocks are counted, one that has left a thread may be one too many; inside an allocation it
 * must not go. */
static void put_counted(struct cw_pool *pool, uint32_t block)
{
    uint64_t held = cw_tracker_held(block);

    if (is_by_count() && !cw_bucket_has_room(pool, held, self.options->pool_bucket_max,
                                             cw_pressure_level(pool->device) >= CW_LEVEL_MEDIUM))
        cw_reclaim_due_set(pool->device, CW_RECLAIM_COUNT);
    cw_keep_put(pool, block, 0);
}

void cw_keep_share(struct cw_realm *realm, uint32_t list)
{
    for (uint32_t next; list != 0; list = next) {
        next = cw_tracker_next(list);
        put_counted(pool_of(realm, list), list);
    }
}

void cw_keep_block(struct cw_pool *pool, uint32_t block)
{
    uint32_t spill;

    if (cw_keep_is_wanted(pool->device)) {
        cw_keep_release_one(pool, block, CW_RELEASE_OOM);
    } else if (cw_thread_cache_put(pool, block, &spill)) {
        cw_keep_share(pool->realm, spill);
    } else if (CW_LIKELY(cw_keep_has_room(pool, cw_tracker_held(block)))) {
        cw_keep_put(pool, block, 0);
    } else {
        cw_keep_release_one(pool, block, CW_RELEASE_FULL);
    }
}

void cw_keep_ready(struct cw_realm *realm, uint32_t list)
{
    for (uint32_t next; list != 0; list = next) {
        struct cw_pool *pool = pool_of(realm, list);
        uint32_t spill;

        next = cw_tracker_next(list);
        if (!cw_thread_cache_put(pool, list, &spill))
            put_counted(pool, list);
        cw_keep_share(realm, spill);
    }
}

void cw_keep_thread_ends(void)
{
    uint32_t list, next;

    cw_keep_reclaim_begins();
    cw_pending_thread_ends();
    for (list = cw_thread_cache_empty(); list != 0; list = next) {
        struct cw_realm *realm = cw_realm_of(cw_tracker_at(list)->context);

        next = cw_tracker_next(list);
        cw_keep_put(pool_of(realm, list), list, 0);
    }
    cw_keep_reclaim_ends(0);
}

/* ---- how much there is -------------------------------------------------------------------------
 */

uint64_t cw_keep_motion(void)
{
    uint64_t arrivals = atomic_load(&self.arrivals); /* first: never more than departures */

    return (uint64_t)atomic_load(&self.departures) << 32 | arrivals;
}

int cw_keep_is_settled(uint64_t before)
{
    return cw_keep_motion() == before && before >> 32 == (uint32_t)before;
}

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
