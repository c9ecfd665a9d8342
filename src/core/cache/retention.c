/* SPDX-License-Identifier: MIT */
/* How much may lie idle, and how much of it each thread was granted. See retention.h. */
#include "core/cache/retention.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/limits/demand.h"
#include "core/limits/scope.h"
#include "core/device/device.h"
#include "core/limits/pressure.h"
#include "core/limits/reclaim_due.h"
#include "core/account/idle.h"
#include "core/account/usage.h"
#include "core/process/due.h"

#define MIB ((uint64_t)1 << 20)

/* Left free on a device, or a twentieth of a small one. */
#define LEAST_FREE (512 * MIB)
/* Pinned memory is kept up to so much, or what POOL_MAX says for a device of this size. */
#define HOST_MOST (1024 * MIB)
/* Once POOL_MAX is reached one part of it in so many is cleared: a block that finds no room goes to
 * the driver, whatever it is worth. */
#define CLEAR_SHARE 16
/* Where POOL_BUCKET_MAX says how many blocks of a size are kept, threads keep no larger ones. */
#define UNCOUNTED (1 * MIB)

CW_HOT_DATA _Atomic uint32_t cw_retention_wanted[CW_DEVICES];
CW_HOT_DATA _Atomic uint32_t cw_retention_reclaims_running;
CW_HOT_DATA _Atomic uint32_t cw_retention_reclaims_done;

static struct {
    const struct cw_options *options;
    _Atomic uint64_t most_idle[CW_DEVICES]; /* and 1; 0: not known yet */
    _Atomic uint64_t granted[CW_DEVICES];   /* to threads */
    _Atomic int watched;                    /* the background thread watches idle memory */
    _Atomic uint8_t is_off[CW_DEVICES];     /* nothing may be kept: a reason of admission */
    _Atomic uint8_t was_full[CW_DEVICES];   /* POOL_MAX kept a block out, room is to be made */
} self;

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

void cw_retention_init(const struct cw_options *options)
{
    self.options = options;
    for (int i = 0; i < CW_DEVICES; i++) {
        store(&self.most_idle[i], 0);
        store(&self.granted[i], 0);
        atomic_store(&self.is_off[i], 0);
        atomic_store(&self.was_full[i], 0);
        atomic_store(&cw_retention_wanted[i], 0);
        set_off((uint8_t)i, options->pool_bucket_max == 0);
    }
    atomic_store(&self.watched, 0);
    /* In a forked child nobody else is at work. */
    atomic_store(&cw_retention_reclaims_running, 0);
}

/* ---- what may be kept ---- */

static uint64_t most_idle_now(uint8_t device, int known)
{
    const struct cw_device_state *live = cw_device_state(device);
    uint64_t most = 0;

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
    int known;

    if (CW_LIKELY(most != 0))
        return most - 1;
    known = atomic_load_explicit(&cw_device_state(device)->known, memory_order_acquire) != 0;
    most = most_idle_now(device, known);
    /* Not asked again: it may be known by now, and what was worked out without would stay. */
    if (device == CW_DEVICE_HOST || known)
        set_most(device, most);
    return most;
}

void cw_retention_set_most(uint8_t device, uint64_t bytes)
{
    set_most(device, device == CW_DEVICE_HOST && bytes > HOST_MOST ? HOST_MOST : bytes);
}

/* The slack of threads does not count as held; it is added up only when it matters. */
static int has_free(uint8_t device, uint64_t least)
{
    return device == CW_DEVICE_HOST ||
           cw_device_free_when(device, cw_usage_held_sum(device)) >= (int64_t)least ||
           cw_device_free_when(device, cw_usage_device(device).held) >= (int64_t)least;
}

static int leaves_enough_free(uint8_t device)
{
    uint64_t total = load(&cw_device_state(device)->driver_total);

    return has_free(device, total / 20 < LEAST_FREE ? total / 20 : LEAST_FREE);
}

uint64_t cw_retention_counted(uint8_t device)
{
    return cw_bucket_idle(device) + load(&self.granted[device]) + cw_bucket_listed(device);
}

uint64_t cw_retention_excess(uint8_t device)
{
    uint64_t counted = cw_retention_counted(device), most = most_idle(device);

    return counted > most ? counted - most : 0;
}

uint64_t cw_retention_surplus(uint8_t device)
{
    uint64_t counted, most;

    if (CW_LIKELY(!atomic_load_explicit(&self.was_full[device], memory_order_relaxed)))
        return 0;
    counted = cw_retention_counted(device);
    most = most_idle(device);
    most -= most / CLEAR_SHARE;
    if (counted > most)
        return counted - most;
    atomic_store_explicit(&self.was_full[device], 0, memory_order_relaxed);
    return 0;
}

int cw_retention_is_exceeded(uint8_t device)
{
    return cw_idle_bytes(device) > most_idle(device);
}

/* A POOL_MAX that was lowered is CW_RECLAIM_MOST's, and leaves no more than it says. */
static int is_within_most(uint8_t device, uint64_t bytes)
{
    uint64_t counted = cw_retention_counted(device), most = most_idle(device);

    if (CW_LIKELY(counted + bytes <= most))
        return 1;
    if (counted <= most && bytes <= most) {
        atomic_store_explicit(&self.was_full[device], 1, memory_order_relaxed);
        cw_reclaim_due_set(device, CW_RECLAIM_CAP);
    }
    return 0;
}

static int may_keep(uint8_t device, uint64_t bytes)
{
    return cw_pressure_level(device) != CW_LEVEL_CRITICAL && is_within_most(device, bytes) &&
           leaves_enough_free(device);
}

static int is_by_count(void)
{
    return self.options->pool_bucket_max != CW_COUNT_AUTO;
}

int cw_retention_is_too_many(const struct cw_pool *pool, uint64_t held)
{
    return is_by_count() && !cw_bucket_has_room(pool, held, self.options->pool_bucket_max,
                                                cw_pressure_level(pool->device) >= CW_LEVEL_MEDIUM);
}

int cw_retention_has_room(const struct cw_pool *pool, uint64_t held)
{
    return held >= CW_SIZE_LEAST && held <= CW_SIZE_MOST && may_keep(pool->device, held) &&
           !cw_retention_is_too_many(pool, held);
}

int cw_retention_grant(const struct cw_pool *pool, uint64_t bytes, uint64_t held)
{
    if ((is_by_count() && (held > UNCOUNTED || self.options->pool_bucket_max == 0)) ||
        !may_keep(pool->device, bytes))
        return 0;
    atomic_fetch_add(&self.granted[pool->device], bytes);
    /* Other threads may have got a grant at the same moment. */
    if (cw_retention_counted(pool->device) <= most_idle(pool->device))
        return 1;
    atomic_fetch_sub(&self.granted[pool->device], bytes);
    return 0;
}

void cw_retention_want(uint8_t device)
{
    atomic_fetch_add(&cw_retention_wanted[device], 1);
    cw_admission_close(device);
}

void cw_retention_unwant(uint8_t device)
{
    cw_admission_open(device);
    atomic_fetch_sub(&cw_retention_wanted[device], 1);
}

void cw_retention_ungrant(uint8_t device, uint64_t bytes)
{
    if (bytes != 0)
        atomic_fetch_sub(&self.granted[device], bytes);
}

/* ---- blocks in hand ---- */

void cw_retention_reclaim_begins(void)
{
    atomic_fetch_add(&cw_retention_reclaims_running, 1);
}

uint64_t cw_retention_reclaim_ends(uint64_t bytes)
{
    if (bytes != 0) /* first: a thread that sees none running must also see this count */
        atomic_fetch_add(&cw_retention_reclaims_done, 1);
    atomic_fetch_sub(&cw_retention_reclaims_running, 1);
    if (cw_scope_is_on() && bytes != 0) /* others may be waiting for it */
        cw_scope_show_all();
    return bytes;
}

/* ---- while the program makes no calls ---- */

/* If the program makes no more calls, the background thread must sweep. */
static void watch(void)
{
    if (self.options->idle_thread == CW_THREAD_AUTO && !atomic_load(&self.watched) &&
        !atomic_exchange(&self.watched, 1))
        cw_due_set(CW_DUE_WATCH);
}

static int is_much_idle(void)
{
    for (unsigned d = 0; d < CW_DEVICES; d++)
        if (cw_retention_counted((uint8_t)d) > CW_DEMAND_LITTLE)
            return 1;
    return 0;
}

/* A thread that finds much idle from now on calls for the watcher again. */
int cw_retention_end_watch(void)
{
    if (is_much_idle())
        return 0;
    atomic_store(&self.watched, 0);
    if (!is_much_idle() || atomic_exchange(&self.watched, 1))
        return 1;
    return 0;
}

/* ---- keeping ---- */

void cw_retention_check(uint8_t device)
{
    uint64_t cap;

    cw_demand_note(device, 0);
    cap = cw_demand_cap(device);
    if (CW_UNLIKELY(cw_usage_held_sum(device) > cap) && cw_usage_device(device).held > cap)
        cw_reclaim_due_set(device, CW_RECLAIM_CAP);
    if (CW_UNLIKELY(cw_retention_counted(device) > CW_DEMAND_LITTLE))
        watch();
}
