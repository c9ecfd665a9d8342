/* SPDX-License-Identifier: MIT */
/* Forecasts of devices. See outlook.h. */
#include "core/growth/outlook.h"

#include <stddef.h>

#include "base/float_env.h"
#include "base/log.h"
#include "base/out.h"
#include "base/sort.h"
#include "core/growth/forecast.h"

#define LOOKS       64 /* in a life, as it grows */
#define TRUSTED_AT  20 /* a forecast must have held for this part of the life, */
#define GOOD_FOR    8  /* and is good for this part */
#define STEPS_LEAST 3

struct look {
    uint64_t begun_ns, next_ns;
    uint64_t held_since_ns; /* since when each look found a forecast; 0: the last found none */
    int has_said;
};

static struct {
    struct cw_arena *arena;
    struct look of[CW_MAX_DEVICES];
    struct cw_forecast_point point[CW_POINTS];
    uint32_t points;
} self;

void cw_outlook_init(struct cw_arena *arena)
{
    self.arena = arena;
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++)
        self.of[i] = (struct look){0};
}

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t need_of(const struct cw_live_extreme *extreme)
{
    return minus(load(&extreme->held), load(&extreme->idle));
}

static int is_before(const void *a, const void *b, const void *unused)
{
    const struct cw_forecast_point *x = a, *y = b;

    (void)unused;
    return x->t_ns < y->t_ns;
}

static void collect(const struct cw_live_timeline *timeline)
{
    self.points = 0;
    for (unsigned i = 0; i < CW_POINTS; i++) {
        const struct cw_live_point *point = &timeline->point[i];
        uint64_t need = minus(load(&point->held), load(&point->idle)), t_ns = load(&point->t_ns);
        struct cw_forecast_point *to = &self.point[self.points];

        if (t_ns == 0)
            continue;
        *to = (struct cw_forecast_point){t_ns, need, need, t_ns, need, t_ns};
        if (load(&point->least.t_ns) != 0) {
            to->least = need_of(&point->least);
            to->least_ns = load(&point->least.t_ns);
        }
        if (load(&point->most.t_ns) != 0) {
            to->most = need_of(&point->most);
            to->most_ns = load(&point->most.t_ns);
        }
        self.points++;
    }
    cw_sort(self.point, self.points, sizeof(self.point[0]), is_before, NULL);
}

/* Others are taken to need what they had when the driver last said how much is in use. */
static uint64_t room_of(const struct cw_live_device *device)
{
    uint64_t limit = load(&device->memory.limit), total = load(&device->driver_total);
    uint64_t others = minus(load(&device->driver_used), load(&device->sample_held));
    uint64_t left = minus(total, others + load(&device->memory.min_free));

    if (total == 0)
        return limit;
    return limit != 0 && limit < left ? limit : left;
}

/* The shortest average step among the tags that still have some; 0: there is none. */
static uint64_t step_ns(uint64_t now_ns)
{
    uint32_t count = cw_arena_count(self.arena, CW_TABLE_TAG);
    uint64_t least = 0;

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_tag *tag = cw_arena_at(self.arena, CW_TABLE_TAG, i);
        uint64_t steps = load(&tag->steps), last_ns = load(&tag->last_ns), each;

        if (steps < STEPS_LEAST)
            continue;
        each = minus(last_ns, load(&tag->first_ns)) / (steps - 1);
        if (each != 0 && minus(now_ns, last_ns) <= 2 * each && (least == 0 || each < least))
            least = each;
    }
    return least;
}

/* As of pressure: a preload is silent while memory is only scarce. */
static void say(uint8_t device, const struct cw_forecast *found, uint64_t room)
{
    char size[2][24];

    if (cw_log_get_level() < CW_LOG_INFO || self.of[device].has_said)
        return;
    self.of[device].has_said = 1;
    cw_log(
        CW_LOG_WARN,
        "device %u: out of memory in about %ju s if this process goes on growing by %s a second: "
        "%s are left (once)",
        device, (uintmax_t)(found->left_ns / 1000000000), cw_format_size(size[0], 24, found->slope),
        cw_format_size(size[1], 24, room - found->peak));
}

static void publish(uint8_t device, uint64_t now_ns, uint64_t life_ns,
                    const struct cw_forecast *found)
{
    struct cw_live_memory *memory = &self.arena->header->device[device].memory;

    store(&memory->full_slope, found != NULL ? found->slope : 0);
    store(&memory->full_until_ns, found != NULL ? now_ns + life_ns / GOOD_FOR : 0);
    store(&memory->full_ns, found != NULL ? now_ns + found->left_ns : 0);
}

void cw_outlook_look(uint8_t device, const struct cw_live_timeline *timeline, uint64_t now_ns)
{
    struct look *look = &self.of[device % CW_MAX_DEVICES];
    struct cw_forecast found;
    struct cw_float_env env;
    uint64_t life_ns, room;
    int is_found;

    if (device >= CW_MAX_DEVICES || now_ns < look->next_ns)
        return;
    if (look->next_ns == 0)
        look->begun_ns = now_ns;
    life_ns = now_ns - look->begun_ns;
    look->next_ns =
        now_ns + (life_ns > CW_FORECAST_LEAST_NS ? life_ns : CW_FORECAST_LEAST_NS) / LOOKS;
    room = room_of(&self.arena->header->device[device]);
    if (life_ns < CW_FORECAST_LEAST_NS || room == 0)
        return;
    collect(timeline);
    env = cw_float_hold();
    is_found = cw_forecast_find(self.point, self.points, room, step_ns(now_ns), &found);
    cw_float_release(&env);
    if (!is_found) {
        look->held_since_ns = 0;
        publish(device, now_ns, life_ns, NULL);
        return;
    }
    if (look->held_since_ns == 0)
        look->held_since_ns = now_ns;
    if (now_ns - look->held_since_ns < life_ns / TRUSTED_AT)
        return;
    publish(device, now_ns, life_ns, &found);
    say(device, &found, room);
}
