/* SPDX-License-Identifier: MIT */
/* Events as calls, and what came of them. See replay.h. */
#include "cli/replay.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/replay_csv.h"
#include "cli/replay_map.h"
#include "core/context.h"
#include "core/device.h"
#include "core/ladder.h"
#include "core/limit.h"
#include "core/pool.h"
#include "core/relief.h"
#include "core/request.h"
#include "core/session.h"
#include "core/site.h"
#include "core/tally.h"
#include "core/thread.h"

struct replay {
    struct cw_csv csv;
    struct cw_replay_map map;
    struct cw_replay_result *result;
    uint32_t api;
    uint64_t first_ns;
    uint64_t given_by_program; /* blocks that the program's own frees returned to the driver */
    uint64_t live, held;       /* of all devices, after the last event of each */
    struct cw_live_sums sums[CW_DEVICES];
};

/* A request that the driver has not granted yet. */
struct miss {
    struct cw_pool_request pool;
    struct cw_request request;
    struct cw_ladder ladder;
    enum cw_cause cause;
    uint64_t given, key;
    int is_climbing;
};

/* The class that could serve it, -1: none. */
static int class_of(const struct cw_csv_event *event)
{
    switch (event->kind) {
    case CW_KIND_DEVICE:
        return CW_POOL_DEVICE;
    case CW_KIND_PITCHED:
        return CW_POOL_PITCHED;
    case CW_KIND_PINNED:
        return CW_POOL_HOST;
    default:
        return -1;
    }
}

/* ---- allocations -------------------------------------------------------------------------------
 */

/* 0, or -1: no memory, and why. As a hook does around the driver's call. */
static int ask_driver(struct replay *replay, struct miss *miss)
{
    struct cw_request *request = &miss->request;

    request->reserved = 0;
    if (cw_limit_is_on() && request->device < CW_MAX_DEVICES &&
        cw_limit_reserve(request->device, miss->given, &request->reserved, &miss->cause) != 0)
        return -1;
    request->key = cw_replay_driver_alloc(request->device, miss->given);
    if (request->key == 0) {
        if (request->reserved != 0)
            cw_limit_cancel(request->device, request->reserved);
        miss->cause = CW_CAUSE_DRIVER;
        return -1;
    }
    cw_pool_granted(&miss->pool, miss->given, miss->pool.ask != 0 && miss->given != miss->pool.ask,
                    request);
    if (request->held < request->bytes)
        request->held = request->bytes;
    miss->key = request->key;
    cw_request_granted(request, replay->api);
    return 0;
}

/* 1: ask again; 0: served, or out of memory. */
static int make_do(struct replay *replay, struct miss *miss)
{
    uint32_t block;

    if (!miss->is_climbing) {
        miss->is_climbing = 1;
        cw_ladder_begin(&miss->ladder, miss->request.device % CW_MAX_DEVICES, miss->request.bytes);
        miss->ladder.pool = miss->pool.pool;
        miss->ladder.is_rounded = miss->given != miss->request.bytes;
    }
    for (;;) {
        switch (cw_ladder_climb(&miss->ladder, miss->cause, &block)) {
        case CW_LADDER_SERVED:
            miss->key = cw_pool_hand_out(miss->pool.pool, block, miss->pool.bytes, replay->api);
            if (miss->key == 0)
                break;
            replay->result->hits++;
            return 0;
        case CW_LADDER_EXACT:
            miss->given = miss->request.bytes;
            return 1;
        case CW_LADDER_ASK:
            return 1;
        case CW_LADDER_MANAGED: /* there is none */
            break;
        default:
            return 0;
        }
    }
}

static uint64_t serve_missed(struct replay *replay, struct miss *miss)
{
    while (ask_driver(replay, miss) != 0 && make_do(replay, miss))
        ;
    if (miss->key == 0)
        cw_request_failed(&miss->request, replay->api, 2, miss->cause);
    else if (miss->is_climbing)
        cw_ladder_helped(&miss->ladder,
                         cw_site_here(replay->api, miss->request.kind, miss->request.device));
    return miss->key;
}

static void note_oom(struct replay *replay, const struct miss *miss, uint64_t line)
{
    struct cw_replay_result *result = replay->result;
    uint8_t device = miss->request.device;
    struct cw_live_sums sums = cw_tally_device(device);

    if (result->ooms++ > 0)
        return;
    result->oom = (struct cw_replay_oom){
        .line = line,
        .ns = result->span_ns,
        .event = result->events,
        .asked = miss->request.bytes,
        .live = sums.live,
        .held = sums.held,
        .free = cw_replay_driver_free_bytes(device),
        .largest = cw_replay_driver_largest(device),
        .limit = device < CW_MAX_DEVICES ? cw_limit_of(device) : 0,
        .device = device,
        .cause = (uint8_t)miss->cause,
    };
}

static uint64_t allocate(struct replay *replay, const struct cw_csv_event *event)
{
    int class = class_of(event);
    struct miss miss = {
        .pool = {.class = (enum cw_pool_class)(class < 0 ? 0 : class), .bytes = event->bytes},
        .request = {.space = CW_SPACE_ADDRESS,
                    .kind = (enum cw_kind)event->kind,
                    .device = event->device,
                    .bytes = event->bytes},
        .given = event->bytes};
    uint64_t key = 0;
    uint8_t current;

    if (class >= 0) {
        replay->result->poolable++;
        key = cw_pool_serve(&miss.pool, replay->api);
        if (key != 0) {
            replay->result->hits++;
            return key;
        }
        if (miss.pool.ask != 0)
            miss.given = miss.pool.ask;
        miss.request.context = cw_context_current(&current);
    }
    key = serve_missed(replay, &miss);
    if (key == 0)
        note_oom(replay, &miss, event->line);
    return key;
}

/* ---- frees -------------------------------------------------------------------------------------
 */

static void give(struct replay *replay, const struct cw_replay_block *block)
{
    struct cw_request_free freed;
    int wait;

    if (block->key == 0)
        return;
    if (cw_pool_free(block->kind == CW_KIND_PINNED ? CW_POOL_FREES_HOST : CW_POOL_FREES_DEVICE,
                     block->key, replay->api, &freed, &wait) != CW_POOL_DRIVER)
        return;
    cw_replay_driver_free(block->key);
    replay->given_by_program++;
    cw_request_free_end(&freed, replay->api, CW_FREE_DONE, 0);
}

/* ---- events ------------------------------------------------------------------------------------
 */

/* A line of another version may name memory of the host as a device's, or the reverse. */
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
    block = (struct cw_replay_block){
        .pointer = event->pointer, .device = event->device, .kind = event->kind};
    if (event->bytes != 0)
        block.key = allocate(replay, event);
    if (cw_replay_map_put(&replay->map, &block) == 0)
        return 0;
    cw_cli_error("no memory for the blocks of the trace");
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
    struct cw_live_sums now = cw_tally_device(event->device);
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
    cw_curve_add(&replay->result->curve,
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

/* Without those that were refused: their frees are still to come, too. */
static uint64_t count_left(const struct cw_replay_map *map)
{
    uint64_t left = 0;

    for (uint64_t i = 0; i < map->slots; i++)
        left += map->slot[i].pointer != 0 && map->slot[i].key != 0;
    return left;
}

static void sum_up(struct replay *replay)
{
    struct cw_replay_result *result = replay->result;

    result->is_cut = (uint8_t)replay->csv.is_cut;
    result->calls = *cw_replay_driver_calls();
    result->given_back = result->calls.frees - replay->given_by_program;
    result->left_blocks = count_left(&replay->map);
    result->left_bytes = cw_tally_total();
    for (uint8_t i = 0; i < CW_DEVICES; i++) {
        const struct cw_live_device *live = &cw_session.arena.header->device[i];

        result->device[i].peak_live = live->peak_bytes;
        result->device[i].peak_held = live->peak_held;
        result->device[i].limit = live->memory.limit;
    }
}

/* The one thread there is has its own blocks, like any thread of a program. */
static int watch_thread(void)
{
    return 0;
}

int cw_replay_run(const char *path, const struct cw_options *options, uint64_t device_bytes,
                  struct cw_replay_result *out)
{
    static const struct cw_launcher no_launcher;
    struct replay replay = {.result = out};
    int rc;

    memset(out, 0, sizeof(*out));
    if (cw_csv_open(&replay.csv, path) != 0)
        return -1;
    cw_replay_driver_start(device_bytes);
    cw_thread_set_watch(watch_thread);
    cw_session_arm(&cw_replay_ops, options, &no_launcher, 12050);
    rc = cw_session_is_armed() ? 0 : -1;
    if (rc == 0) {
        replay.api = cw_site_text("replay");
        rc = play(&replay);
        sum_up(&replay);
    }
    cw_replay_map_destroy(&replay.map);
    cw_csv_close(&replay.csv);
    cw_replay_driver_stop();
    return rc;
}
