/* SPDX-License-Identifier: MIT */
/* See ask_fixture.h. */
#include "ask_fixture.h"

#include <criterion/criterion.h>

#include "core/device.h"
#include "core/fallback.h"
#include "core/limit.h"
#include "core/relief.h"
#include "core/request.h"
#include "core/session.h"
#include "core/site.h"

static uint32_t api(void)
{
    return cw_site_text("cuMemAlloc");
}

static uint32_t site(void)
{
    return cw_site_here(api(), CW_KIND_DEVICE, 0);
}

/* 0, or -1: no memory, and why. */
static int try_driver(struct ask *ask, struct cw_pool_request *pool, uint64_t given)
{
    struct cw_request request = {
        .space = CW_SPACE_ADDRESS, .kind = CW_KIND_DEVICE, .bytes = pool->bytes};
    uint64_t handle = 0;

    fake_driver_ops.context_current(&handle);
    request.context = cw_context_current(&request.device);
    if (cw_limit_reserve(request.device, given, &request.reserved, &ask->cause))
        return -1;
    request.key = fake_take(handle, CW_KIND_DEVICE, given);
    if (request.key == 0) {
        cw_limit_cancel(request.device, request.reserved);
        ask->cause = CW_CAUSE_DRIVER;
        return -1;
    }
    cw_pool_granted(pool, given, pool->ask != 0 && given != pool->ask, &request);
    if (request.held < given)
        request.held = given;
    cw_request_granted(&request, api());
    ask->key = request.key;
    return 0;
}

static int try_managed(struct ask *ask, uint64_t bytes)
{
    struct cw_request request = {.device = CW_DEVICE_HOST};

    if (cw_fallback_alloc(ask->ladder.device, bytes, &request) != 0)
        return -1;
    request.context = cw_context_current(&request.device);
    request.device = CW_DEVICE_HOST;
    cw_request_granted(&request, api());
    ask->key = request.key;
    return 0;
}

/* 1: ask again; 0: served, or out of memory. */
static int make_do(struct ask *ask, struct cw_pool_request *pool, uint64_t *given)
{
    uint32_t block;

    for (;;) {
        ask->last = cw_ladder_climb(&ask->ladder, ask->cause, &block);
        switch (ask->last) {
        case CW_LADDER_SERVED:
            ask->key = cw_pool_hand_out(pool->pool, block, pool->bytes, api());
            return 0;
        case CW_LADDER_MANAGED:
            if (try_managed(ask, pool->bytes) == 0)
                return 0;
            break;
        case CW_LADDER_EXACT:
            *given = pool->bytes;
            return 1;
        case CW_LADDER_ASK:
            return 1;
        default:
            return 0;
        }
    }
}

struct ask ask_for(uint64_t bytes)
{
    struct cw_pool_request pool = {.class = CW_POOL_DEVICE, .bytes = bytes};
    uint32_t reclaims = cw_relief_reclaims();
    struct ask ask = {.key = cw_pool_serve(&pool, api()), .last = CW_LADDER_ASK};
    uint64_t given = pool.ask ? pool.ask : bytes;
    int again;

    ask.was_hit = ask.key != 0;
    if (ask.was_hit)
        return ask;
    do {
        if (try_driver(&ask, &pool, given) == 0)
            break;
        if (ask.refusals++ == 0) {
            cw_ladder_begin(&ask.ladder, 0, bytes);
            ask.ladder.reclaims = reclaims;
            ask.ladder.pool = pool.pool;
            ask.ladder.is_rounded = given != bytes;
            ask.ladder.may_be_managed = 1;
        }
        again = make_do(&ask, &pool, &given);
    } while (again);
    cw_pool_cancel(&pool);
    if (ask.key != 0 && ask.refusals != 0)
        cw_ladder_helped(&ask.ladder, site());
    return ask;
}

uint64_t ask_get(uint64_t bytes)
{
    return ask_for(bytes).key;
}

enum cw_ladder_step ask_climb(struct cw_ladder *ladder, enum cw_cause cause)
{
    uint32_t block;

    return cw_ladder_climb(ladder, cause, &block);
}

void ask_arm(const char *limit, const char *min_free, uint64_t capacity)
{
    struct cw_options *options = core_options();

    if (limit[0] != '\0')
        cr_assert_eq(cw_sizes_parse(limit, 1, &options->limit), 0);
    if (min_free[0] != '\0')
        cr_assert_eq(cw_sizes_parse(min_free, 1, &options->min_free), 0);
    core_arm_pool();
    fake_driver.capacity = capacity;
    if (capacity != 0)
        fake_driver.total_bytes = capacity;
}

void ask_start(const char *limit, const char *min_free, uint64_t capacity)
{
    ask_arm(limit, min_free, capacity);
    fake_set_current(pool_context(0, 0));
}

const struct cw_live_memory *ask_memory(void)
{
    return &cw_device_at(0)->memory;
}

unsigned ask_events(enum cw_event_type type, const struct cw_live_event **out_last)
{
    const struct cw_live_table *table = &cw_session.arena.header->table[CW_TABLE_EVENT];
    unsigned count = 0;

    for (uint32_t i = 1; i < table->count; i++) {
        const struct cw_live_event *event = cw_arena_at(&cw_session.arena, CW_TABLE_EVENT, i);

        if (event->type != type)
            continue;
        count++;
        if (out_last != NULL)
            *out_last = event;
    }
    return count;
}
