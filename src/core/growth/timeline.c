/* SPDX-License-Identifier: MIT */
/* Points of devices. See timeline.h. */
#include "core/growth/timeline.h"

#include "core/growth/outlook.h"
#include "core/growth/sample_times.h"
#include "core/process/session.h"
#include "core/account/usage.h"
#include "core/account/idle.h"

#define FIRST_PERIOD_NS UINT64_C(1000000)
#define COST_SHARE      1000 /* a point costs at most this part of the time until the next */

_Atomic uint8_t cw_timeline_begun[CW_DEVICES];

/* State that readers do not need. */
struct progress {
    uint32_t record; /* 0: none */
    uint64_t next_ns;
    uint64_t cost_ns; /* of the last point */
    struct cw_sample_times moments;
};

static struct {
    struct cw_arena *arena;
    struct progress of[CW_DEVICES];
} self;

static uint64_t numbers[CW_DEVICES][CW_POINTS]; /* pages that no device uses are never touched */

void cw_timeline_init(struct cw_arena *arena)
{
    self.arena = arena;
    cw_outlook_init(arena);
    for (int i = 0; i < CW_DEVICES; i++) {
        self.of[i].record = 0;
        atomic_store_explicit(&cw_timeline_begun[i], 0, memory_order_relaxed);
    }
}

void cw_timeline_reset(void)
{
    cw_timeline_init(NULL);
}

static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static struct cw_live_timeline *record_of(const struct progress *progress)
{
    return cw_arena_at(self.arena, CW_TABLE_TIMELINE, progress->record);
}

/* Without room, the device has no timeline. */
static void begin(uint8_t device)
{
    struct progress *progress = &self.of[device];

    progress->record = cw_arena_append(self.arena, CW_TABLE_TIMELINE);
    atomic_store_explicit(&cw_timeline_begun[device], 1, memory_order_relaxed);
    if (progress->record == 0)
        return;
    progress->next_ns = 0;
    progress->cost_ns = 0;
    cw_sample_times_init(&progress->moments, numbers[device], CW_POINTS, FIRST_PERIOD_NS);
    record_of(progress)->device = device;
}

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void copy_extreme(const struct cw_live_extreme *from, struct cw_live_extreme *out)
{
    store(&out->t_ns, load(&from->t_ns));
    store(&out->live, load(&from->live));
    store(&out->held, load(&from->held));
    store(&out->idle, load(&from->idle));
}

/* Into those of a point that is not to be read now. */
static void merge(const struct cw_live_extreme *least, const struct cw_live_extreme *most,
                  struct cw_live_point *into)
{
    if (load(&least->t_ns) != 0 &&
        (load(&into->least.t_ns) == 0 || load(&least->live) < load(&into->least.live)))
        copy_extreme(least, &into->least);
    if (load(&most->t_ns) != 0 &&
        (load(&into->most.t_ns) == 0 || load(&most->live) > load(&into->most.live)))
        copy_extreme(most, &into->most);
}

static void close_slot(struct cw_live_point *point)
{
    store(&point->t_ns, 0);
    atomic_thread_fence(memory_order_release);
}

/* What was seen up to a point that goes, the next one has seen. */
static void hand_on(struct cw_live_timeline *record, const struct cw_live_point *point)
{
    struct cw_live_point *next = NULL;
    uint64_t t_ns = load(&point->t_ns);

    for (unsigned i = 0; i < CW_POINTS; i++)
        if (load(&record->point[i].t_ns) > t_ns &&
            (next == NULL || load(&record->point[i].t_ns) < load(&next->t_ns)))
            next = &record->point[i];
    if (next == NULL)
        return;
    t_ns = load(&next->t_ns);
    close_slot(next);
    merge(&point->least, &point->most, next);
    atomic_store_explicit(&next->t_ns, t_ns, memory_order_release);
}

/* The slot for a point: its time is 0 (the slot rule of layout.h), and its extremes are those that
 * a point of the same moment has seen already. */
static struct cw_live_point *open_point(struct progress *progress, uint64_t t_ns)
{
    struct cw_live_timeline *record = record_of(progress);
    struct cw_live_point *point = &record->point[cw_sample_times_take(&progress->moments, t_ns)];

    if (load(&point->t_ns) == t_ns) {
        close_slot(point);
        return point;
    }
    if (load(&point->t_ns) != 0)
        hand_on(record, point);
    close_slot(point);
    store(&point->least.t_ns, 0);
    store(&point->most.t_ns, 0);
    return point;
}

static void put_point(uint8_t device, uint64_t t_ns, const struct cw_live_extreme *least,
                      const struct cw_live_extreme *most)
{
    struct progress *progress = &self.of[device];
    const struct cw_live_device *live = &self.arena->header->device[device];
    struct cw_live_timeline *record = record_of(progress);
    struct cw_live_point *point = open_point(progress, t_ns);
    struct cw_live_sums sums = cw_usage_device(device);

    merge(least, most, point);
    store(&point->live, sums.live);
    store(&point->held, sums.held);
    store(&point->idle, cw_idle_bytes(device));
    store(&point->used, atomic_load_explicit(&live->driver_total, memory_order_relaxed) != 0
                            ? atomic_load_explicit(&live->driver_used, memory_order_relaxed)
                            : 0);
    atomic_store_explicit(&point->t_ns, t_ns, memory_order_release);
    store(&record->period_ns, progress->moments.period_ns);
    store(&record->taken, progress->moments.taken);
}

static void take_point(uint8_t device, uint64_t now_ns)
{
    struct cw_live_extreme least, most;

    cw_usage_take_extremes(device, now_ns, &least, &most);
    put_point(device, now_ns, &least, &most);
}

/* Uses the smaller of two costs in a row: the first point costs more. */
static void plan(struct progress *progress, uint64_t from_ns, uint64_t cost_ns)
{
    uint64_t least = cost_ns < progress->cost_ns ? cost_ns : progress->cost_ns;
    uint64_t wait = COST_SHARE * least;

    if (wait < progress->moments.period_ns)
        wait = progress->moments.period_ns;
    progress->cost_ns = cost_ns;
    progress->next_ns = from_ns + wait;
}

static int holds_something(uint8_t device)
{
    return cw_usage_held_sum(device) != 0;
}

uint64_t cw_timeline_serve(uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < CW_DEVICES; i++) {
        struct progress *progress = &self.of[i];

        if (cw_timeline_is_missing((uint8_t)i) && holds_something((uint8_t)i))
            begin((uint8_t)i);
        if (progress->record == 0)
            continue;
        if (now_ns >= progress->next_ns) {
            uint64_t begun = cw_session.ops->work_ns();

            take_point((uint8_t)i, now_ns);
            plan(progress, now_ns, cw_session.ops->work_ns() - begun);
            cw_outlook_look((uint8_t)i, record_of(progress), now_ns);
        }
        if (progress->next_ns < next)
            next = progress->next_ns;
    }
    return next;
}

void cw_timeline_finish(uint64_t end_ns)
{
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_live_device *live = &self.arena->header->device[i];
        uint64_t last_ns = self.of[i].moments.last_ns;

        if (self.of[i].record != 0)
            put_point((uint8_t)i, end_ns > last_ns ? end_ns : last_ns, &live->least, &live->most);
    }
}
