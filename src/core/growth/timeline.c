/* SPDX-License-Identifier: MIT */
/* Points of devices. See timeline.h. */
#include "core/growth/timeline.h"

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

/* The slot rule of layout.h: its time is 0 while it is written. */
static void put_point(uint8_t device, uint64_t t_ns)
{
    struct progress *progress = &self.of[device];
    const struct cw_live_device *live = &self.arena->header->device[device];
    struct cw_live_timeline *record = record_of(progress);
    struct cw_live_point *point = &record->point[cw_sample_times_take(&progress->moments, t_ns)];
    struct cw_live_sums sums = cw_usage_device(device);

    store(&point->t_ns, 0);
    atomic_thread_fence(memory_order_release);
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
    return atomic_load_explicit(&self.arena->header->device[device].held_bytes,
                                memory_order_relaxed) != 0;
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

            put_point((uint8_t)i, now_ns);
            plan(progress, now_ns, cw_session.ops->work_ns() - begun);
        }
        if (progress->next_ns < next)
            next = progress->next_ns;
    }
    return next;
}

void cw_timeline_finish(uint64_t end_ns)
{
    for (unsigned i = 0; i < CW_DEVICES; i++)
        if (self.of[i].record != 0)
            put_point((uint8_t)i,
                      end_ns > self.of[i].moments.last_ns ? end_ns : self.of[i].moments.last_ns);
}
