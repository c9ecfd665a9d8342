/* SPDX-License-Identifier: MIT */
/* Plays events as calls and records the results. See replay.h. */
#include "cli/replay/replay.h"

#include <string.h>
#include <stdint.h>

#include "cli/replay/replay_csv.h"
#include "cli/replay/replay_engine.h"
#include "cli/replay/replay_memory.h"
#include "cli/ui/message.h"

struct replay {
    const struct cw_replay_engine *engine;
    struct cw_csv csv;
    struct cw_replay_map map;
    struct cw_replay_result *result;
    uint64_t first_ns;
    uint64_t given_by_program; /* blocks that the program's own frees returned to the driver */
    uint64_t live, held;       /* of all devices, after the last event of each */
    struct cw_live_sums sums[CW_DEVICES];
};

/* ---- the curve ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void halve(struct cw_curve *curve)
{
    uint32_t half = (curve->count + 1) / 2;

    for (uint32_t i = 0; i < half; i++) {
        uint32_t second = 2 * i + 1 < curve->count ? 2 * i + 1 : 2 * i;

        curve->point[i].live = larger(curve->point[2 * i].live, curve->point[second].live);
        curve->point[i].held = larger(curve->point[2 * i].held, curve->point[second].held);
    }
    curve->count = half;
    curve->span *= 2;
}

/* x never decreases. */
static void add_point(struct cw_curve *curve, uint64_t x, uint64_t live, uint64_t held)
{
    uint64_t place;

    if (curve->span == 0)
        curve->span = 1;
    while ((place = x / curve->span) >= CW_CURVE_POINTS)
        halve(curve);
    /* Nothing happened in between: the values persist. */
    while (curve->count <= place) {
        uint32_t i = curve->count++;

        curve->point[i].live = i > 0 && i < place ? curve->point[i - 1].live : 0;
        curve->point[i].held = i > 0 && i < place ? curve->point[i - 1].held : 0;
    }
    curve->point[place].live = larger(curve->point[place].live, live);
    curve->point[place].held = larger(curve->point[place].held, held);
}

/* ---- calls ---- */

static void note_oom(struct replay *replay, const struct cw_replay_take *take, uint64_t line)
{
    struct cw_replay_result *result = replay->result;
    struct cw_live_sums sums = replay->engine->sums(take->device);

    if (result->ooms++ > 0)
        return;
    result->oom = (struct cw_replay_oom){
        .line = line,
        .ns = result->span_ns,
        .event = result->events,
        .asked = take->bytes,
        .live = sums.live,
        .held = sums.held,
        .free = cw_replay_driver_free_bytes(take->device),
        .largest = cw_replay_driver_largest(take->device),
        .limit = replay->engine->limit(take->device),
        .device = take->device,
        .cause = take->cause,
    };
}

static uint64_t allocate(struct replay *replay, const struct cw_csv_event *event)
{
    struct cw_replay_result *result = replay->result;
    struct cw_replay_device *device = &result->device[event->device];
    struct cw_replay_take take = {
        .bytes = event->bytes, .device = event->device, .kind = event->kind};

    replay->engine->take(&take);
    if (cw_replay_is_poolable(event->kind)) {
        result->poolable++;
        device->requests++;
    }
    result->hits += take.is_hit;
    device->hits += take.is_hit;
    if (take.key == 0)
        note_oom(replay, &take, event->line);
    return take.key;
}

static void give(struct replay *replay, const struct cw_replay_block *block)
{
    if (block->key != 0)
        replay->given_by_program += (uint64_t)replay->engine->give(block);
}

/* ---- events ---- */

/* A line of another version may attribute host memory to a device, or vice versa. */
static void settle_place(struct cw_csv_event *event)
{
    if (cw_kind_counted(event->kind) == CW_COUNTED_HOST)
        event->device = CW_DEVICE_HOST;
    else if (event->device == CW_DEVICE_HOST)
        event->kind = CW_KIND_PINNED;
}

static void begin_event(struct replay *replay, const struct cw_csv_event *event)
{
    struct cw_replay_result *result = replay->result;

    if (result->events++ == 0)
        replay->first_ns = event->ns;
    result->span_ns = event->ns - replay->first_ns;
    cw_replay_driver_set_time(result->span_ns);
    cw_replay_driver_select(event->device);
}

static int do_allocate(struct replay *replay, const struct cw_csv_event *event)
{
    struct cw_replay_block block;

    replay->result->allocs++;
    if (event->pointer == 0)
        return 0; /* of no bytes */
    if (cw_replay_map_take(&replay->map, event->pointer, &block)) {
        replay->result->doubled++;
        give(replay, &block);
    }
    block = (struct cw_replay_block){.pointer = event->pointer,
                                     .bytes = event->bytes,
                                     .device = event->device,
                                     .kind = event->kind};
    if (event->bytes != 0)
        block.key = allocate(replay, event);
    if (cw_replay_map_put(&replay->map, &block) == 0)
        return 0;
    cw_cli_error("not enough memory for the blocks of the trace");
    return -1;
}

static void do_free(struct replay *replay, const struct cw_csv_event *event)
{
    struct cw_replay_block block;

    replay->result->frees++;
    if (event->pointer == 0)
        return;
    if (!cw_replay_map_take(&replay->map, event->pointer, &block)) {
        replay->result->unknown_frees++;
        return;
    }
    cw_replay_driver_select(block.device);
    give(replay, &block);
}

static void note_device(struct replay *replay, const struct cw_csv_event *event)
{
    struct cw_replay_device *device = &replay->result->device[event->device];
    struct cw_live_sums now = replay->engine->sums(event->device);
    uint64_t unused = now.held - now.live, largest;

    if (unused > device->peak_unused)
        device->peak_unused = unused;
    if (!device->is_used || event->action == CW_CSV_ALLOCATE) {
        largest = cw_replay_driver_largest(event->device);
        if (!device->is_used || largest < device->least_largest) {
            device->least_largest = largest;
            device->free_then = cw_replay_driver_free_bytes(event->device);
        }
    }
    device->is_used = 1;
    if (event->device == CW_DEVICE_HOST)
        return;
    replay->live += now.live - replay->sums[event->device].live;
    replay->held += now.held - replay->sums[event->device].held;
    replay->sums[event->device] = now;
    add_point(&replay->result->curve,
              replay->result->has_times ? replay->result->span_ns : replay->result->events,
              replay->live, replay->held);
}

static int play(struct replay *replay)
{
    struct cw_csv_event event;
    int rc;

    replay->result->has_times = replay->csv.has[CW_CSV_TIME] || replay->csv.has[CW_CSV_NANOSECONDS];
    while ((rc = cw_csv_next(&replay->csv, &event)) > 0) {
        settle_place(&event);
        begin_event(replay, &event);
        if (event.action == CW_CSV_FAILURE)
            replay->result->failures++;
        else if (event.action == CW_CSV_FREE)
            do_free(replay, &event);
        else if (do_allocate(replay, &event) != 0)
            return -1;
        if (event.action != CW_CSV_FAILURE)
            note_device(replay, &event);
    }
    return rc;
}

/* Excludes refused requests: their frees are still to come, too. */
static uint64_t count_left(const struct cw_replay_map *map)
{
    uint64_t left = 0;

    for (uint64_t i = 0; i < map->slots; i++)
        left += map->slot[i].pointer != 0 && map->slot[i].key != 0;
    return left;
}

static int sum_up(struct replay *replay)
{
    struct cw_replay_result *result = replay->result;

    result->is_cut = (uint8_t)replay->csv.is_cut;
    result->calls = *cw_replay_driver_calls();
    result->given_back = result->calls.frees - replay->given_by_program;
    result->left_blocks = count_left(&replay->map);
    for (uint8_t i = 0; i < CW_DEVICES; i++)
        result->left_bytes += replay->engine->sums(i).live;
    if (replay->engine->finish(result) == 0)
        return 0;
    cw_cli_error("not enough memory for the results of the replay");
    return -1;
}

int cw_replay_run(const char *path, const struct cw_replay_engine *engine,
                  const struct cw_options *options, uint64_t device_bytes,
                  struct cw_replay_result *out)
{
    struct replay replay = {.engine = engine, .result = out};
    int rc;

    memset(out, 0, sizeof(*out));
    if (cw_csv_open(&replay.csv, path) != 0)
        return -1;
    cw_replay_driver_start(engine->has_endless_device ? CW_REPLAY_MOST - CW_REPLAY_PAGE
                                                      : device_bytes);
    rc = engine->start(options);
    if (rc == 0) {
        rc = play(&replay);
        if (sum_up(&replay) != 0)
            rc = -1;
    }
    engine->stop();
    cw_replay_map_destroy(&replay.map);
    cw_csv_close(&replay.csv);
    cw_replay_driver_stop();
    return rc;
}
