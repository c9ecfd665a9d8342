/* SPDX-License-Identifier: MIT */
/* Samples of sites. See growth.h. */
#include "core/growth/growth.h"

#include <stddef.h>
#include <string.h>

#include "core/process/deadline.h"
#include "core/growth/sample_times.h"
#include "core/process/intern.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/site_count.h"

#define FIRST_PERIOD_NS UINT64_C(1000000)
#define COST_SHARE      1000 /* a sweep costs at most this part of the time until the next */
#define EMPTY_SAMPLES   8    /* after which a series may be handed on */
#define PAUSE_NS        UINT64_C(1000000000) /* what a sweep has seen before it is out of date */
#define FILE_SHARE      8 /* of a file that cannot grow much, series take this part at most */
#define SERIES_LEAST    64u

static struct {
    struct cw_arena *arena; /* NULL: off */
    _Atomic int busy;       /* a thread is inside; all below is its */
    uint32_t most;          /* series */
    uint32_t hand;          /* the series that was looked at last, to be handed on */
    uint32_t looks;         /* that this sweep may still take at others */
    uint64_t next_ns;
    uint64_t cost_ns; /* of the last sweep */
    struct cw_sample_times moments;
    /* A sample that is not complete yet; its slot has no time. */
    struct {
        uint32_t at, end; /* sites that are still to come; 0: there is no such sample */
        unsigned slot;
        uint64_t t_ns, last_ns; /* of its first part, and the one before this */
        uint64_t cost_ns;
    } open;
} self;

static uint64_t numbers[CW_SAMPLES];
static uint64_t held_at[CW_SERIES_MOST + 1]; /* by series: the last sample that was not 0 */

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static struct cw_live_growth *growth(void)
{
    return &self.arena->header->growth;
}

static struct cw_live_series *series_at(uint32_t index)
{
    return cw_arena_at(self.arena, CW_TABLE_SERIES, index);
}

/* The site that a series names: what the file says. */
static struct cw_live_site *owner_at(uint32_t site)
{
    return cw_arena_at(self.arena, CW_TABLE_SITE, site);
}

static uint32_t series_count(void)
{
    return cw_arena_count(self.arena, CW_TABLE_SERIES);
}

/* ---- start ---- */

static uint32_t most_series(const struct cw_backing *backing)
{
    uint64_t most = backing->room / FILE_SHARE / sizeof(struct cw_live_series);

    if (backing->state == CW_BACKING_NONE || most > CW_SERIES_MOST)
        return CW_SERIES_MOST;
    return most < SERIES_LEAST ? SERIES_LEAST : (uint32_t)most;
}

void cw_growth_init(struct cw_arena *arena, const struct cw_options *options)
{
    if (options->growth == CW_GROWTH_OFF)
        return;
    self.arena = arena;
    self.most = most_series(&arena->backing);
    self.hand = 0;
    self.next_ns = 0;
    self.cost_ns = 0;
    self.open.at = 0;
    memset(held_at, 0, sizeof(held_at)); /* of the parent, whose samples had other numbers */
    cw_sample_times_init(&self.moments, numbers, CW_SAMPLES, FIRST_PERIOD_NS);
    cw_timeline_init(arena);
    store(&growth()->period_ns, FIRST_PERIOD_NS);
    atomic_store(&growth()->is_on, 1);
    atomic_store(&cw_deadlines.growth_ns, 0); /* the first allocation */
}

void cw_growth_reset(void)
{
    atomic_store(&cw_deadlines.growth_ns, UINT64_MAX);
    cw_timeline_reset();
    self.arena = NULL;
    atomic_store(&self.busy, 0);
}

/* ---- series ---- */

/* The owner lets go first: a reader checks once more whether the site names the series. */
static void hand_on(uint32_t index)
{
    struct cw_live_series *series = series_at(index);
    uint32_t owner = atomic_load_explicit(&series->site, memory_order_relaxed);

    atomic_store_explicit(&owner_at(owner)->series, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (unsigned i = 0; i < CW_SAMPLES; i++)
        store(&series->bytes[i], 0);
}

static int is_unused(uint32_t index, uint64_t taken)
{
    const struct cw_live_series *series = series_at(index);
    uint32_t owner = atomic_load_explicit(&series->site, memory_order_relaxed);

    return taken > held_at[index] + EMPTY_SAMPLES && cw_view_site_live(owner_at(owner)) == 0;
}

/* Each is looked at once in a sweep, however many sites ask. 0: none. */
static uint32_t find_unused(uint64_t taken)
{
    for (; self.looks != 0; self.looks--) {
        self.hand = self.hand % self.most + 1;
        if (self.hand >= series_count() || !is_unused(self.hand, taken))
            continue;
        self.looks--;
        return self.hand;
    }
    return 0;
}

/* A series for a site that has none; 0: there is no room. taken: this sample's count. */
static uint32_t give_series(uint32_t site, uint64_t taken)
{
    uint32_t index = series_count() <= self.most ? cw_arena_append(self.arena, CW_TABLE_SERIES) : 0;

    if (index == 0) {
        index = find_unused(taken);
        if (index == 0)
            return 0;
        hand_on(index);
    }
    atomic_store_explicit(&series_at(index)->site, site, memory_order_release);
    atomic_store_explicit(&cw_site_at(site)->series, index, memory_order_release);
    return index;
}

static void count_dropped(struct cw_live_site *site)
{
    if (site->was_dropped)
        return;
    site->was_dropped = 1;
    store(&growth()->dropped, load(&growth()->dropped) + 1);
}

/* ---- samples ---- */

static void put(uint32_t series, unsigned slot, uint64_t bytes, uint64_t taken)
{
    store(&series_at(series)->bytes[slot], bytes);
    if (bytes != 0)
        held_at[series] = taken;
}

/* 0: it has none. */
static uint32_t series_of(const struct cw_live_site *site)
{
    uint32_t series = atomic_load_explicit(&site->series, memory_order_relaxed);

    return series < series_count() ? series : 0;
}

/* Records being added are incomplete until the lock of sites is free. */
static uint32_t complete_sites(void)
{
    uint32_t count;

    cw_lock_acquire(&cw_intern_lock);
    count = cw_arena_count(self.arena, CW_TABLE_SITE);
    cw_lock_release(&cw_intern_lock);
    return count;
}

static void sweep(uint32_t most)
{
    uint64_t taken = self.moments.taken;

    atomic_thread_fence(memory_order_release); /* another thread may have taken the time away */
    for (; self.open.at < self.open.end && most > 0; self.open.at++, most--) {
        struct cw_live_site *site = cw_site_at(self.open.at);
        uint64_t bytes = cw_view_site_live(site);
        uint32_t series = series_of(site);

        if (series == 0 && (bytes == 0 || !cw_site_is_counted(site)))
            continue;
        if (series == 0)
            series = give_series(self.open.at, taken);
        if (series != 0)
            put(series, self.open.slot, bytes, taken);
        else
            count_dropped(site);
    }
}

/* Without a lock no site can be given a series. */
static void sweep_known(void)
{
    uint32_t count = series_count();

    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t site = atomic_load_explicit(&series_at(i)->site, memory_order_relaxed);

        if (site != 0)
            put(i, self.open.slot, cw_view_site_live(owner_at(site)), self.moments.taken);
    }
}

/* The slot rule of layout.h: its time is 0 while its values are written. */
static void open_sample(uint64_t t_ns)
{
    self.open.slot = cw_sample_times_take(&self.moments, t_ns);
    self.open.t_ns = t_ns;
    self.open.at = 1;
    self.open.cost_ns = 0;
    store(&growth()->t_ns[self.open.slot], 0);
}

static void close_sample(void)
{
    struct cw_live_growth *live = growth();

    self.open.at = 0;
    store(&live->period_ns, self.moments.period_ns);
    store(&live->taken, self.moments.taken);
    atomic_store_explicit(&live->t_ns[self.open.slot], self.open.t_ns, memory_order_release);
}

/* Uses the smaller of two costs in a row: a series for a new site is made once only. */
static void plan(uint64_t from_ns, uint64_t cost_ns)
{
    uint64_t least = cost_ns < self.cost_ns ? cost_ns : self.cost_ns;
    uint64_t wait = COST_SHARE * least;

    self.cost_ns = cost_ns;
    self.next_ns = from_ns + (wait > self.moments.period_ns ? wait : self.moments.period_ns);
}

/* The open sample's sweep begins at the first site, and what it sees counts from now on. */
static void begin_sweep(uint64_t now)
{
    self.open.at = 1;
    self.open.end = complete_sites();
    self.open.t_ns = self.moments.last_ns = now;
    self.looks = self.most;
}

/* The first part of a new sample, or the next of an open one. An open sample that waited too long
 * is out of date: it begins anew in its slot and is completed in one go, because a program that
 * calls so rarely would never complete it in parts, and has the time. */
static void take_part(uint64_t now)
{
    uint64_t begun = cw_session.ops->work_ns();
    uint32_t most = CW_GROWTH_PART;

    if (self.open.at == 0) {
        open_sample(now);
        begin_sweep(now);
    } else if (now - self.open.last_ns > PAUSE_NS) {
        begin_sweep(now);
        most = UINT32_MAX;
    }
    sweep(most);
    self.open.last_ns = now;
    self.open.cost_ns += cw_session.ops->work_ns() - begun;
    self.next_ns = now + FIRST_PERIOD_NS;
    if (self.open.at < self.open.end)
        return;
    close_sample();
    plan(now, self.open.cost_ns);
}

void cw_growth_serve(void)
{
    uint64_t now, next;

    if (self.arena == NULL || atomic_exchange(&self.busy, 1))
        return;
    now = cw_session_now();
    if (now >= self.next_ns)
        take_part(now);
    next = cw_timeline_serve(now);
    atomic_store(&cw_deadlines.growth_ns, next < self.next_ns ? next : self.next_ns);
    atomic_store(&self.busy, 0);
}

/* A sample that has begun becomes the last. */
void cw_growth_finish(uint64_t end_ns)
{
    if (self.arena == NULL || atomic_exchange(&self.busy, 1))
        return;
    if (end_ns < self.moments.last_ns)
        end_ns = self.moments.last_ns;
    if (self.open.at == 0)
        open_sample(end_ns);
    self.open.t_ns = end_ns;
    sweep_known();
    close_sample();
    cw_timeline_finish(end_ns);
    atomic_store(&self.busy, 0);
}
