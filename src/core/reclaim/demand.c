/* SPDX-License-Identifier: MIT */
/* The window of what was live, and sweeps over what lies idle. See demand.h. */
#include "core/reclaim/demand.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/process/deadline.h"
#include "core/process/due.h"
#include "core/reclaim/keep.h"
#include "core/limits/pressure.h"
#include "core/cache/realm.h"
#include "core/reclaim/reclaim_due.h"
#include "core/process/session.h"
#include "core/account/tally.h"
#include "core/cache/thread_cache.h"
#include "core/account/tracker.h"

/* In POOL_IDLE. A block waits for one sweep in its thread, and for CW_BUCKET_AGES in a bucket. */
#define SWEEPS   10u
#define LEAST_NS UINT64_C(2000000)
/* Beyond the most that was live so many 64ths of it may be held, and half of that, or nothing,
 * where memory is short: a little less than a quarter, so that of what is held at most a fifth lies
 * idle at the peaks. By a study of ten programs' traces (tests/bench/traces) that has 95 % of the
 * hits of a cache without bounds, if it is chosen well what goes (core/reclaim/relief.c). */
#define SPARE_64THS     15
#define MORE_THAN_SHARE ((uint64_t)47 << 20)

static struct {
    const struct cw_options *options;
    _Atomic unsigned slot;                     /* of the window, that is open */
    _Atomic uint64_t peak[SWEEPS][CW_DEVICES]; /* the most that was live */
    _Atomic uint64_t prewarmed[CW_DEVICES];
    _Atomic int sweeping;
    _Atomic int watched;
} self;

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

uint64_t cw_demand_interval(void)
{
    uint64_t interval = self.options->pool_idle / SWEEPS;

    return interval > LEAST_NS ? interval : LEAST_NS;
}

void cw_demand_init(const struct cw_options *options)
{
    self.options = options;
    cw_demand_reset();
    if (options->mode == CW_MODE_POOL)
        store(&cw_deadlines.demand_ns, cw_demand_interval());
}

void cw_demand_reset(void)
{
    store(&cw_deadlines.demand_ns, UINT64_MAX);
    atomic_store(&self.sweeping, 0);
    atomic_store(&self.watched, 0);
    for (unsigned d = 0; d < CW_DEVICES; d++) {
        store(&self.prewarmed[d], 0);
        for (unsigned i = 0; i < SWEEPS; i++)
            store(&self.peak[i][d], 0);
    }
}

/* ---- the window --------------------------------------------------------------------------------
 */

/* The shared sum is what is live and what threads keep as slack, which is the most that was live
 * since the slack was taken back last: just what is wanted. */
void cw_demand_note(uint8_t device, uint64_t more)
{
    uint64_t most = load(&cw_session.arena.header->device[device].live_bytes), live = 0;
    _Atomic uint64_t *peak =
        &self.peak[atomic_load_explicit(&self.slot, memory_order_relaxed)][device];

    if (more != 0)
        live = cw_tally_device(device).live + more;
    if ((int64_t)most < (int64_t)live)
        most = live;
    if ((int64_t)most > (int64_t)load(peak))
        store(peak, most);
}

uint64_t cw_demand_live(uint8_t device)
{
    uint64_t most = load(&self.prewarmed[device]);

    for (unsigned i = 0; i < SWEEPS; i++)
        if (load(&self.peak[i][device]) > most)
            most = load(&self.peak[i][device]);
    return most;
}

/* Of a program of 64 MiB half of that, which is no loss to anybody, and its few blocks are worth
 * keeping; from 100 MiB on the share. */
static uint64_t spare_for(uint64_t live)
{
    uint64_t share = live / 64 * SPARE_64THS;
    uint64_t least = share < MORE_THAN_SHARE ? MORE_THAN_SHARE - share : 0;

    if (least > CW_DEMAND_LITTLE)
        least = CW_DEMAND_LITTLE;
    return share > least ? share : least;
}

uint64_t cw_demand_cap(uint8_t device)
{
    enum cw_level level = device < CW_MAX_DEVICES ? cw_pressure_level(device) : CW_LEVEL_LOW;
    uint64_t live;

    if (self.options->pool_bucket_max != CW_COUNT_AUTO)
        return UINT64_MAX;
    live = cw_demand_live(device);
    switch (level) {
    case CW_LEVEL_LOW:
        return live + spare_for(live);
    case CW_LEVEL_MEDIUM:
        return live + spare_for(live) / 2;
    default:
        return live;
    }
}

void cw_demand_prewarmed(uint8_t device, uint64_t bytes)
{
    atomic_fetch_add_explicit(&self.prewarmed[device], bytes, memory_order_relaxed);
}

static void turn_window(void)
{
    unsigned next = (atomic_load_explicit(&self.slot, memory_order_relaxed) + 1) % SWEEPS;

    for (unsigned d = 0; d < CW_DEVICES; d++)
        cw_demand_note((uint8_t)d, 0);
    cw_tally_settle_slack();
    for (unsigned d = 0; d < CW_DEVICES; d++)
        store(&self.peak[next][d], 0);
    atomic_store_explicit(&self.slot, next, memory_order_relaxed);
    for (unsigned d = 0; d < CW_DEVICES; d++)
        cw_demand_note((uint8_t)d, 0);
}

/* ---- sweeps ------------------------------------------------------------------------------------
 */

/* What threads had no use for is for all. */
static void sweep_threads(void)
{
    uint32_t list, next;

    cw_keep_reclaim_begins();
    for (list = cw_thread_cache_sweep(); list != 0; list = next) {
        struct cw_realm *realm = cw_realm_of(cw_tracker_at(list)->context);
        struct cw_pool *pool = cw_realm_pool(realm, cw_tracker_at(list)->class);
        uint64_t held = cw_tracker_held(list);

        next = cw_tracker_next(list);
        cw_keep_put(pool, list, 0);
        cw_bucket_not_needed(pool, held);
    }
    cw_keep_reclaim_ends(0);
}

static void sweep_pool(struct cw_pool *pool, unsigned times)
{
    uint32_t doomed = 0;

    for (unsigned c = 0; c < CW_SIZE_CLASSES; c++)
        if (cw_bucket_has_blocks(pool, c))
            doomed += cw_bucket_sweep(pool, c, times);
    if (doomed != 0)
        cw_reclaim_due_set(pool->device, CW_RECLAIM_AGE);
}

static void sweep(unsigned times)
{
    uint32_t contexts = atomic_load_explicit(
        &cw_session.arena.header->table[CW_TABLE_CONTEXT].count, memory_order_acquire);

    sweep_threads();
    if (times > 1)
        sweep_threads();
    for (uint32_t i = 1; i < contexts; i++) {
        struct cw_realm *realm = cw_realm_of(i);

        for (unsigned k = 0; realm != NULL && cw_realm_is_usable(realm) && k < CW_POOL_CLASSES; k++)
            if (atomic_load(&realm->pool[k]) != NULL)
                sweep_pool(atomic_load(&realm->pool[k]), times);
    }
    turn_window();
    for (unsigned d = 0; d < CW_DEVICES; d++)
        cw_keep_check((uint8_t)d);
}

/* A program that made no calls for some sweeps' time has had no need of anything either. */
void cw_demand_serve(void)
{
    uint64_t now = cw_session_now(), due, sweeps;

    if (atomic_exchange(&self.sweeping, 1))
        return;
    due = load(&cw_deadlines.demand_ns);
    if (now >= due) {
        store(&cw_deadlines.demand_ns, now + cw_demand_interval());
        sweeps = (now - due) / cw_demand_interval() + 1;
        sweep(sweeps < SWEEPS ? (unsigned)sweeps : SWEEPS);
    }
    atomic_store(&self.sweeping, 0);
}

/* ---- while the program makes no calls ----------------------------------------------------------
 */

void cw_demand_watch(void)
{
    if (self.options->idle_thread == CW_THREAD_AUTO && !atomic_load(&self.watched) &&
        !atomic_exchange(&self.watched, 1))
        cw_due_set(CW_DUE_WATCH);
}

static int is_much_idle(void)
{
    for (unsigned d = 0; d < CW_DEVICES; d++)
        if (cw_keep_counted((uint8_t)d) > CW_DEMAND_LITTLE)
            return 1;
    return 0;
}

/* Who finds much idle from now on calls for the watcher again. */
int cw_demand_end_watch(void)
{
    if (is_much_idle())
        return 0;
    atomic_store(&self.watched, 0);
    if (!is_much_idle() || atomic_exchange(&self.watched, 1))
        return 1;
    return 0;
}

int cw_demand_is_overdue(void)
{
    uint64_t due = load(&cw_deadlines.demand_ns);

    return due != UINT64_MAX && cw_session_now() >= due + cw_demand_interval() / 2;
}
