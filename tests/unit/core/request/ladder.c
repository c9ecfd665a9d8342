/* SPDX-License-Identifier: MIT */
/* The ladder: each rung in a situation in which it alone helps, their order, what is counted. */
#include "core/request/ladder.h"

#include <criterion/criterion.h>

#include <sched.h>

#include "ask_fixture.h"
#include "core/limits/demand.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/device/graph.h"
#include "core/cache/retention.h"
#include "core/limits/limit.h"
#include "core/pending/pending.h"
#include "core/limits/pressure.h"
#include "core/reclaim/reclaim.h"
#include "core/process/session.h"
#include "core/account/usage.h"
#include "core/pending/ready.h"

/* Before a test: 1000 MiB, and neither a level of pressure nor a lack of demand that gives anything
 * back: what is idle stays until a request finds no memory. */
static void start(enum cw_free_sync free_sync, const char *limit)
{
    core_options()->pool_bucket_max = 32;
    core_options()->free_sync = free_sync;
    core_options()->pressure = (struct cw_levels){{101, 101, 101}};
    cr_assert_eq(cw_sizes_parse("100%", 0, &core_options()->pool_max), 0);
    ask_start(limit, "", 1000 * MIB);
}

/* Tried once, and helped; all others not at all. */
static void expect_only(enum cw_rung rung, uint64_t released)
{
    for (int i = 0; i < CW_RUNG_COUNT; i++) {
        cr_expect_eq(ask_memory()->rung[i].tried, i == (int)rung, "rung %d tried", i);
        cr_expect_eq(ask_memory()->rung[i].helped, i == (int)rung, "rung %d helped", i);
        cr_expect_eq(ask_memory()->rung[i].released, i == (int)rung ? released : 0,
                     "rung %d released", i);
    }
    cr_expect_eq(pool_check(), 0);
}

/* Idle, not ready: work of the context is outstanding. */
static void put_pending(uint64_t key)
{
    fake_submit(FIRST_CONTEXT);
    cr_assert_eq(pool_put(key), CW_POOL_KEPT);
    cw_pending_close(0);
}

/* ---- each rung ---- */

Test(ladder, harvest_serves_from_what_has_become_ready)
{
    struct cw_ladder ladder;

    start(CW_FREE_DEFERRED, "");
    put_pending(ask_get(600 * MIB));
    fake_finish(FIRST_CONTEXT);
    cw_ladder_begin(&ladder, 0, 600 * MIB);
    ladder.pool = cw_pool_here(CW_POOL_DEVICE);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_SERVED);
    cw_ladder_helped(&ladder, 0);
    cr_expect_eq(ask_memory()->rung[CW_RUNG_HARVEST].tried, 1);
    cr_expect_eq(ask_memory()->rung[CW_RUNG_HARVEST].helped, 1);
    cr_expect_eq(ask_events(CW_EVENT_TRIM, NULL), 0); /* nothing was given back */
}

/* It is more than an eighth larger, which no hit may be of a program that has little live. */
PoolTest(ladder, larger_serves_from_a_block_up_to_twice_as_large_where_a_limit_is_in_the_way)
{
    uint64_t key[2];

    start(CW_FREE_STRICT, "950M");
    key[0] = ask_get(930 * MIB);
    key[1] = ask_get(16 * MIB);
    pool_put(key[0]);
    pool_put(key[1]);
    cw_demand_reset();
    cr_expect_eq(ask_get(12 * MIB), key[1]);
    expect_only(CW_RUNG_LARGER, 0);
    cr_expect_eq(fake_driver.taken_bytes, 946 * MIB);
    cr_expect_eq(cw_usage_excess(0), 4 * MIB);
}

PoolTest(ladder, larger_leaves_blocks_alone_whose_excess_is_more_than_there_may_be)
{
    start(CW_FREE_STRICT, "1000M");
    pool_put(ask_get(600 * MIB));
    ask_get(300 * MIB);
    cr_expect_neq(ask_get(310 * MIB), 0);
    expect_only(CW_RUNG_SUFFICIENT, 600 * MIB);
    cr_expect_eq(cw_usage_excess(0), 0);
}

/* What it has in excess could be missing for a request that the driver would have granted. */
PoolTest(ladder, larger_leaves_such_blocks_alone_where_the_device_is_full)
{
    start(CW_FREE_STRICT, "");
    pool_put(ask_get(600 * MIB));
    ask_get(300 * MIB);
    cr_expect_neq(ask_get(310 * MIB), 0);
    expect_only(CW_RUNG_SUFFICIENT, 600 * MIB);
    cr_expect_eq(fake_driver.taken_bytes, 610 * MIB);
}

PoolTest(ladder, larger_leaves_blocks_more_than_twice_as_large_alone)
{
    start(CW_FREE_STRICT, "1000M");
    pool_put(ask_get(800 * MIB));
    ask_get(150 * MIB);
    cr_expect_neq(ask_get(350 * MIB), 0);
    expect_only(CW_RUNG_SUFFICIENT, 800 * MIB);
}

/* Rounding is left out once half of the device or the limit is in use; another process may be
 * faster than our look at the device. */
PoolTest(ladder, exact_asks_for_less_than_the_bucket)
{
    struct ask ask;

    start(CW_FREE_STRICT, "");
    ask_get(40 * MIB);
    pool_settle(0);
    fake_driver.others = fake_driver.capacity - 59 * MIB - 512 * KIB;
    ask = ask_for(19 * MIB + 123);
    cr_expect_neq(ask.key, 0);
    cr_expect_eq(ask.refusals, 1);
    expect_only(CW_RUNG_EXACT, 0);
    cr_expect_eq(core_held(0), 59 * MIB + 123);
    cr_expect_eq(pool_counters(0)->exact_retries, 1);
}

PoolTest(ladder, sufficient_gives_back_the_smallest_that_is_enough)
{
    const struct cw_live_event *event;

    start(CW_FREE_STRICT, "920M");
    ask_churn(4, 90 * MIB, 90 * MIB);
    cr_expect_neq(ask_get(140 * MIB), 0); /* 120 are missing */
    expect_only(CW_RUNG_SUFFICIENT, 180 * MIB);
    cr_expect_eq(core_held(0), 860 * MIB);
    cr_assert_eq(ask_events(CW_EVENT_TRIM, &event), 1);
    cr_expect_eq(event->rung, CW_RUNG_SUFFICIENT);
    cr_expect_eq(event->cause, CW_CAUSE_LIMIT);
    cr_expect_eq(event->bytes, 140 * MIB);
    cr_expect_eq(event->released, 180 * MIB);
    cr_expect_eq(event->count, 1);
    cr_expect_neq(ask_get(260 * MIB), 0); /* 200 are missing */
    cr_expect_eq(core_held(0), 850 * MIB);
}

PoolTest(ladder, with_a_limit_no_more_is_given_back_than_is_missing)
{
    start(CW_FREE_STRICT, "900M");
    ask_churn(3, 100 * MIB, 100 * MIB);
    cr_expect_neq(ask_get(750 * MIB), 0); /* 450 are missing */
    cr_expect_eq(core_held(0), 850 * MIB);
    expect_only(CW_RUNG_SUFFICIENT, 500 * MIB);
    cr_expect_eq(ask_memory()->limited, 1);
}

PoolTest(ladder, what_threads_have_in_hand_goes_like_all_that_is_idle)
{
    start(CW_FREE_STRICT, "6M");
    ask_churn(8, 8 * 64 * KIB, 64 * KIB);
    cr_assert_eq(cw_bucket_idle(0), 0);
    cr_expect_neq(ask_get(4 * MIB), 0);
    /* The largest, until the 3.75 MiB are there that are missing. */
    expect_only(CW_RUNG_SUFFICIENT, (15 + 14 + 13 + 12 + 11) * 64 * KIB);
}

PoolTest(ladder, all_makes_the_drivers_pools_give_back_what_a_limit_misses)
{
    start(CW_FREE_STRICT, "500M");
    cw_driver_pool_used(0);
    fake_driver.pool_spare = 200 * MIB;
    cr_expect_neq(ask_get(400 * MIB), 0);
    expect_only(CW_RUNG_ALL, 200 * MIB);
    cr_expect_eq(fake_driver.pool_spare, 0);
}

/* The device finishes while it is polled. */
static unsigned queries;

static void finish_later(enum fake_call call)
{
    if (call == FAKE_EVENT_QUERY && ++queries == 5)
        fake_finish(FIRST_CONTEXT);
}

PoolTest(ladder, poll_waits_a_moment_for_blocks_in_use)
{
    start(CW_FREE_DEFERRED, "");
    put_pending(ask_get(900 * MIB));
    fake_driver.inside = finish_later;
    cr_expect_neq(ask_get(200 * MIB), 0);
    expect_only(CW_RUNG_POLL, 900 * MIB);
    cr_expect_eq(fake_driver.calls[FAKE_CONTEXT_POLL], 0);
}

PoolTest(ladder, poll_serves_with_what_becomes_ready)
{
    start(CW_FREE_DEFERRED, "");
    put_pending(ask_get(900 * MIB));
    fake_driver.inside = finish_later;
    cr_expect_neq(ask_get(900 * MIB), 0);
    expect_only(CW_RUNG_POLL, 0);
    cr_expect_eq(fake_driver.taken_bytes, 900 * MIB);
}

PoolTest(ladder, sync_waits_for_the_device)
{
    start(CW_FREE_DEFERRED, "");
    put_pending(ask_get(900 * MIB));
    fake_driver.clock_step = FAKE_MS;
    cr_expect_neq(ask_get(200 * MIB), 0);
    expect_only(CW_RUNG_SYNC, 900 * MIB);
    cr_expect_eq(fake_driver.calls[FAKE_CONTEXT_POLL], 1);
    cr_expect_leq(fake_driver.now_ns, FAKE_START_NS + 60 * FAKE_MS);
}

PoolTest(ladder, fallback_serves_from_managed_memory)
{
    struct ask ask;

    core_options()->fallback = CW_FALLBACK_MANAGED;
    start(CW_FREE_STRICT, "");
    ask_get(900 * MIB);
    ask = ask_for(200 * MIB);
    cr_expect_neq(ask.key, 0);
    expect_only(CW_RUNG_FALLBACK, 0);
    cr_expect_eq(ask_memory()->fallbacks, 1);
    cr_expect_eq(ask_memory()->fallback_bytes, 200 * MIB);
    cr_expect_eq(core_live(CW_DEVICE_HOST), 200 * MIB);
    cr_expect_eq(core_held(0), 900 * MIB);
    cr_expect_eq(fake_driver.taken_bytes, 900 * MIB);
}

PoolTest(ladder, fallback_is_out_of_the_question_beyond_what_the_host_has)
{
    core_options()->fallback = CW_FALLBACK_MANAGED;
    start(CW_FREE_STRICT, "");
    cr_expect_eq(ask_get((uint64_t)1 << 44), 0);
    cr_expect_eq(fake_driver.calls[FAKE_FALLBACK_ALLOC], 0);
    fake_driver.fails[FAKE_FALLBACK_ALLOC] = 1;
    cr_expect_eq(ask_get(2000 * MIB), 0);
    cr_expect_eq(fake_driver.calls[FAKE_FALLBACK_ALLOC], 1);
    cr_expect_eq(ask_memory()->fallbacks, 0);
    cr_expect_eq(ask_memory()->rung[CW_RUNG_FALLBACK].tried, 2);
    cr_expect_eq(ask_memory()->rung[CW_RUNG_FALLBACK].helped, 0);
    cr_expect_eq(core_live(CW_DEVICE_HOST), 0);
}

/* ---- all of it ---- */

Test(ladder, climbs_in_order)
{
    struct cw_ladder ladder;
    uint64_t key[8];

    core_options()->fallback = CW_FALLBACK_MANAGED;
    start(CW_FREE_DEFERRED, "");
    ask_churn(8, 1 * MIB, 0); /* into the hands of this thread */
    key[0] = ask_get(135 * MIB);
    key[1] = ask_get(100 * MIB);
    key[2] = ask_get(120 * MIB);
    key[3] = ask_get(80 * MIB);
    for (int i = 0; i < 3; i++)
        pool_put(key[i]);
    pool_sync(FIRST_CONTEXT);
    put_pending(key[3]);
    fake_driver.clock_step = FAKE_MS;
    cw_ladder_begin(&ladder, 0, 135 * MIB);
    ladder.pool = cw_pool_here(CW_POOL_DEVICE);
    ladder.is_rounded = 1;
    ladder.may_be_managed = 1;
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_SERVED);
    cr_expect_eq(ladder.last, CW_RUNG_LARGER);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_EXACT);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_ASK);
    cr_expect_eq(ladder.last, CW_RUNG_SUFFICIENT);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_ASK);
    cr_expect_eq(ladder.last, CW_RUNG_ALL);
    fake_driver.others = 1000 * MIB;
    cw_device_sample_now(0, 0);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_ASK);
    cr_expect_eq(ladder.last, CW_RUNG_POLL); /* the frees have waited for what was pending */
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_MANAGED);
    cr_expect_eq(ladder.last, CW_RUNG_FALLBACK);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_END);
    cr_expect_eq(ladder.rounds, 0); /* nobody else was there */
}

PoolTest(ladder, rungs_with_nothing_to_do_are_passed_over)
{
    struct ask ask;

    start(CW_FREE_STRICT, "");
    ask_get(64 * MIB);
    ask = ask_for(1000 * MIB);
    cr_expect_eq(ask.key, 0);
    cr_expect_eq(ask.refusals, 1);
    for (int i = 0; i < CW_RUNG_COUNT; i++)
        cr_expect_eq(ask_memory()->rung[i].tried, 0, "rung %d", i);
    cr_expect_eq(pool_counters(0)->oom_retries, 0);
    cr_expect_eq(ask_memory()->limited, 0);
}

/* What a thread gave back itself is no reason to believe that another one did. */
PoolTest(ladder, asks_once_more_for_each_thing_that_was_given_back)
{
    struct ask ask;

    start(CW_FREE_STRICT, "");
    ask_get(500 * MIB);
    pool_put(ask_get(400 * MIB));
    ask = ask_for(900 * MIB); /* in vain: it stays */
    cr_expect(ask.key == 0 && ask.refusals == 1);
    cr_expect_eq(ask_memory()->rung[CW_RUNG_ALL].tried, 0);
    ask = ask_for(502 * MIB); /* as if the driver's pages might make up for it */
    cr_expect_eq(ask.key, 0);
    cr_expect_eq(ask.refusals, 2);
    cr_expect_eq(ask_memory()->rung[CW_RUNG_ALL].tried, 1);
    pool_put(ask_get(450 * MIB));
    fake_driver.others = 900 * MIB;
    cw_device_sample_now(0, 0);
    ask = ask_for(200 * MIB);
    cr_expect_eq(ask.key, 0);
    cr_expect_leq(ask.refusals, 5); /* some times more: it looks as if there was enough now */
    cr_expect_eq(ask_memory()->rung[CW_RUNG_SUFFICIENT].tried, 1);
    cr_expect_eq(ask_memory()->rung[CW_RUNG_ALL].tried, 1);
}

PoolTest(ladder, in_a_capture_nothing_is_given_back)
{
    struct cw_ladder ladder;
    unsigned calls;

    start(CW_FREE_STRICT, "900M");
    pool_put(ask_get(800 * MIB));
    cw_capture_begin();
    cw_capture_started(7, pool_index(FIRST_CONTEXT), 1);
    calls = fake_gated_calls();
    cw_ladder_begin(&ladder, 0, 300 * MIB);
    ladder.is_rounded = 1;
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_LIMIT), CW_LADDER_EXACT);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_LIMIT), CW_LADDER_END);
    cr_expect_eq(ask_memory()->limited, 1);
    cr_expect_eq(fake_gated_calls(), calls);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1);
    cw_capture_ended(7, cw_capture_find(7));
    for (int i = 0; i < CW_RUNG_COUNT; i++)
        cr_expect_eq(ask_memory()->rung[i].tried, 0, "rung %d", i);
    cr_expect_neq(ask_get(300 * MIB), 0);
}

PoolTest(ladder, without_known_size_all_idle_memory_goes)
{
    struct cw_ladder ladder;

    start(CW_FREE_STRICT, "");
    pool_put(ask_get(300 * MIB));
    pool_put(ask_get(400 * MIB));
    cw_ladder_begin(&ladder, 0, 0);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_ASK);
    cr_expect_eq(ladder.last, CW_RUNG_ALL);
    cr_expect_eq(ladder.released, 700 * MIB);
    cr_expect_eq(ask_climb(&ladder, CW_CAUSE_DRIVER), CW_LADDER_END);
}

/* ---- events ---- */

/* A sufficient block goes, `ms` after the last. */
static void trim_after(uint64_t ms)
{
    pool_put(ask_get(900 * MIB));
    fake_driver.now_ns += ms * FAKE_MS;
    pool_put(ask_get(300 * MIB));
    pool_reclaim_all(0);
}

PoolTest(ladder, events_of_the_same_kind_that_follow_closely_are_one)
{
    const struct cw_live_event *event;

    start(CW_FREE_STRICT, "");
    trim_after(1);
    trim_after(900);
    cr_assert_eq(ask_events(CW_EVENT_TRIM, &event), 1);
    cr_expect_eq(event->count, 2);
    cr_expect_eq(event->released, 1800 * MIB);
    trim_after(1001);
    cr_assert_eq(ask_events(CW_EVENT_TRIM, &event), 2);
    cr_expect_eq(event->count, 1);
    cw_limit_set(0, 950 * MIB); /* another cause */
    trim_after(1);
    cr_assert_eq(ask_events(CW_EVENT_TRIM, &event), 3);
    cr_expect_eq(event->cause, CW_CAUSE_LIMIT);
    cr_expect_eq(event->released, 900 * MIB);
}

/* ---- several threads ---- */

static _Atomic int failures, is_inside;
static void (*body_inside)(void);

/* Each of `threads` has up to its share of the device at a time: there is always memory, but what
 * lies idle may have to go first, and another thread may be about to give it back. Even MiB: no
 * block is rounded beyond the share. */
#define SHARE (126 * MIB)

static void use_share(unsigned id)
{
    uint64_t random = id + 7;

    fake_set_current(FIRST_CONTEXT);
    for (int i = 0; i < 1500; i++) {
        uint64_t now = next_random(&random), bytes = SHARE - (now >> 8) % 40 * 2 * MIB, key;

        key = ask_get(bytes);
        if (key == 0)
            failures++;
        else
            pool_put(key);
        if (now >> 62 == 0)
            sched_yield();
    }
}

static void run_shares(unsigned threads, const char *limit, enum cw_free_sync free_sync)
{
    core_options()->free_sync = free_sync;
    core_options()->pressure = (struct cw_levels){{98, 99, 100}};
    cr_assert_eq(cw_sizes_parse("100%", 0, &core_options()->pool_max), 0);
    ask_start(limit, "", limit[0] ? 4 * GIB : threads * SHARE);
    fake_driver.clock_step = FAKE_MS / 4;
    run_threads(threads, use_share);
    cr_expect_eq(failures, 0, "%d", failures);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_eq(pool_check(), 0);
}

PoolTest(ladder, two_threads_at_the_end_of_memory_both_get_theirs)
{
    run_shares(2, "", CW_FREE_STRICT);
}

PoolTest(ladder, two_threads_at_the_limit_both_get_theirs)
{
    run_shares(2, "252M", CW_FREE_STRICT);
}

PoolTest(ladder, many_threads_at_the_end_of_memory_get_theirs)
{
    run_shares(8, "", CW_FREE_STRICT);
}

PoolTest(ladder, many_threads_at_the_limit_get_theirs_when_frees_are_deferred)
{
    run_shares(4, "504M", CW_FREE_DEFERRED);
}

/* One thread is giving back what lay idle because of the level of pressure, and has it neither in
 * the pool nor in the driver, when another finds no memory. */
static void wait_inside(enum fake_call call)
{
    static _Atomic int once;

    if (call != FAKE_BLOCK_FREE || atomic_exchange(&once, 1))
        return;
    is_inside = 1;
    for (int i = 0; i < 2000; i++)
        sched_yield();
}

static void give_or_ask(unsigned id)
{
    fake_set_current(FIRST_CONTEXT);
    if (id == 0) {
        body_inside();
        return;
    }
    while (!is_inside)
        sched_yield();
    if (ask_get(600 * MIB) == 0)
        failures++;
}

static void relieve(void)
{
    cw_reclaim_work();
}

static void trim(void)
{
    cw_reclaim_due_set(0, CW_RECLAIM_CAP);
    cw_reclaim_work();
}

static void reclaim(void)
{
    pool_reclaim_rest(0);
}

static void run_while(void (*body)(void))
{
    body_inside = body;
    fake_driver.inside = wait_inside;
    run_threads(2, give_or_ask);
    cr_expect_eq(is_inside, 1);
    cr_expect_eq(failures, 0);
    cr_expect_eq(pool_check(), 0);
}

PoolTest(ladder, waits_for_what_the_level_of_pressure_makes_another_thread_give_back)
{
    start(CW_FREE_STRICT, "");
    pool_put(ask_get(900 * MIB));
    fake_driver.others = 90 * MIB;
    fake_driver.now_ns += 200 * FAKE_MS;
    core_options()->pressure = (struct cw_levels){{60, 80, 95}};
    cw_pressure_init(core_options());
    cw_device_sample_now(0, 0);
    cr_assert_eq(cw_pressure_level(0), CW_LEVEL_CRITICAL);
    run_while(relieve);
}

PoolTest(ladder, waits_for_what_another_thread_gives_back_because_it_is_beyond_the_cap)
{
    start(CW_FREE_STRICT, "");
    pool_put(ask_get(900 * MIB));
    core_options()->pool_bucket_max = CW_COUNT_AUTO;
    core_options()->pressure = (struct cw_levels){{60, 98, 99}};
    cw_pressure_init(core_options());
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample_now(0, 0);
    cw_demand_reset(); /* as if it had been long ago */
    run_while(trim);
}

/* On its way from the other thread's own blocks to where all find them. */
static void move(void)
{
    struct cw_pool *pool = cw_pool_here(CW_POOL_DEVICE);
    uint32_t list;

    cw_retention_reclaim_begins();
    list = cw_bucket_take_all(pool);
    is_inside = 1;
    for (int i = 0; i < 2000; i++)
        sched_yield();
    cw_ready_share(pool->pool_context, list);
    cw_retention_reclaim_ends(0);
}

PoolTest(ladder, waits_for_what_another_thread_has_in_its_hands)
{
    start(CW_FREE_STRICT, "");
    pool_put(ask_get(900 * MIB));
    run_while(move);
}

PoolTest(ladder, waits_for_what_another_request_makes_room_with)
{
    start(CW_FREE_DEFERRED, "");
    put_pending(ask_get(900 * MIB));
    run_while(reclaim);
}
