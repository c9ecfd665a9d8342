/* SPDX-License-Identifier: MIT */
/* The pool's own code as the engine of a replay: what the hooks do around the driver's calls. */
#include <string.h>

#include "cli/replay/replay_engine.h"
#include "core/control/lifecycle.h"
#include "core/process/host.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/request/ladder.h"
#include "core/limits/limit.h"
#include "core/pool/pool.h"
#include "core/reclaim/reclaim.h"
#include "core/request/request.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/usage.h"
#include "core/process/thread.h"
#include "report/snapshot/snapshot_pool.h"

static uint32_t api;

/* A request that the driver has not granted yet. */
struct miss {
    struct cw_replay_take *take;
    struct cw_pool_request pool;
    struct cw_request request;
    struct cw_ladder ladder;
    enum cw_cause cause;
    uint64_t given, key;
    int is_climbing;
};

static enum cw_pool_class class_of(unsigned kind)
{
    return kind == CW_KIND_PINNED    ? CW_POOL_HOST
           : kind == CW_KIND_PITCHED ? CW_POOL_PITCHED
                                     : CW_POOL_DEVICE;
}

/* ---- allocations ---- */

/* 0, or -1 if out of memory, with the cause. Like a hook around the driver's call. */
static int ask_driver(struct miss *miss)
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
    cw_request_granted(request, api);
    return 0;
}

/* 1: retry; 0: served, or out of memory. */
static int make_do(struct miss *miss)
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
            miss->key = cw_pool_hand_out(miss->pool.pool, block, miss->pool.bytes, api, NULL);
            if (miss->key == 0)
                break;
            miss->take->is_hit = 1;
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

static void serve_missed(struct miss *miss)
{
    while (ask_driver(miss) != 0 && make_do(miss))
        ;
    cw_pool_cancel(&miss->pool);
    if (miss->key == 0)
        cw_request_failed(&miss->request, api, 2, miss->cause);
    else if (miss->is_climbing)
        cw_ladder_helped(&miss->ladder,
                         cw_site_here(api, miss->request.kind, miss->request.device));
    miss->take->key = miss->key;
    miss->take->cause = (uint8_t)miss->cause;
}

static void take(struct cw_replay_take *take)
{
    struct miss miss = {.take = take,
                        .pool = {.class = class_of(take->kind), .bytes = take->bytes},
                        .request = {.space = CW_SPACE_ADDRESS,
                                    .kind = (enum cw_kind)take->kind,
                                    .device = take->device,
                                    .bytes = take->bytes},
                        .given = take->bytes};
    uint8_t current;

    if (cw_replay_is_poolable(take->kind)) {
        take->key = cw_pool_alloc(&miss.pool, api);
        if (take->key != 0) {
            take->is_hit = 1;
            return;
        }
        if (miss.pool.ask != 0)
            miss.given = miss.pool.ask;
        miss.request.context = cw_context_current(&current);
    }
    serve_missed(&miss);
}

/* ---- frees ---- */

static int give(const struct cw_replay_block *block)
{
    struct cw_request_free freed;
    int wait;

    cw_replay_driver_submit();
    if (cw_pool_free(block->kind == CW_KIND_PINNED ? CW_FREES_HOST : CW_FREES_DEVICE, block->key,
                     api, &freed, &wait) != CW_POOL_DRIVER)
        return 0;
    cw_replay_driver_free(block->key);
    cw_request_free_end(&freed, api, CW_FREE_DONE, 0);
    return 1;
}

/* ---- begin and end ---- */

static uint64_t limit_of(uint8_t device)
{
    return device < CW_MAX_DEVICES ? cw_limit_of(device) : 0;
}

static int finish(struct cw_replay_result *result)
{
    struct cw_snapshot_pool pool;
    struct cw_view view;

    cw_arena_view(&cw_session.arena, &view);
    if (cw_snapshot_pool_init(&pool, &view) != 0)
        return -1;
    for (uint8_t i = 0; i < CW_DEVICES; i++) {
        const struct cw_live_device *live = &cw_session.arena.header->device[i];
        struct cw_replay_device *device = &result->device[i];

        device->peak_live = live->peak_bytes;
        device->peak_held = live->peak_held;
        device->limit = live->memory.limit;
        device->asked = pool.device[i].sums.asked_bytes;
        device->given = pool.device[i].sums.given_bytes;
    }
    cw_snapshot_pool_fini(&pool);
    return 0;
}

/* The only thread has its own blocks, like any thread of a program. */
static int watch_thread(void)
{
    return 0;
}

static int start(const struct cw_options *options)
{
    static const struct cw_launcher no_launcher;
    static const struct cw_host_ops host = {.watch_thread = watch_thread};

    cw_host_set(&host);
    cw_lifecycle_arm(&cw_replay_ops, options, &no_launcher, 12050);
    if (!cw_session_is_armed())
        return -1;
    api = cw_site_text("replay");
    return 0;
}

static void stop(void)
{
}

const struct cw_replay_engine cw_replay_core = {
    .start = start,
    .take = take,
    .give = give,
    .sums = cw_usage_device,
    .limit = limit_of,
    .finish = finish,
    .stop = stop,
};
