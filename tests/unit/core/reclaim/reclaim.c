/* SPDX-License-Identifier: MIT */
/* What goes back to the driver, by level of pressure, by demand, and for a request that found no
 * memory; in turns where nobody waits for it. */
#include "core/reclaim/reclaim.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/limits/demand.h"
#include "core/cache/retention.h"
#include "core/device/device.h"
#include "core/process/gate.h"
#include "core/limits/pressure.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/account/tracker.h"
#include "core/reclaim/sweep.h"
#include "core/control/adjust.h"
#include "core/pending/release.h"

/* A number of blocks for each size: nothing goes for lack of demand. */
static void start_by_count(void)
{
    ask_start_keeping(32);
}

TestSuite(relief, .init = start_by_count);

/* Takes `count` blocks and frees them all. */
static void churn(unsigned count, uint64_t bytes)
{
    static uint64_t key[12000];

    for (unsigned i = 0; i < count; i++)
        key[i] = pool_get(bytes);
    for (unsigned i = 0; i < count; i++)
        pool_put(key[i]);
}

static unsigned idle_of(uint64_t bytes)
{
    unsigned count = 0;

    for (uint32_t i = 1; i < core_header()->table[CW_TABLE_BLOCK].count; i++)
        count += cw_tracker_at(i)->state == CW_BLOCK_IDLE && cw_tracker_at(i)->held == bytes;
    return count;
}

/* By others and us together. */
static void use(uint64_t percent)
{
    uint64_t used = percent * (ASK_TOTAL / 100);

    fake_driver.others = used > fake_driver.taken_bytes ? used - fake_driver.taken_bytes : 0;
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
}

/* One turn after the other, until nothing is due. */
static void work_off(void)
{
    for (int i = 0; i < 1000 && cw_reclaim_is_due(); i++)
        cw_reclaim_work();
    cr_expect_not(cw_reclaim_is_due());
}

/* ---- the level ---- */

PoolTest(relief, low_gives_nothing_back)
{
    churn(32, 10 * MIB);
    use(59);
    work_off();
    cr_expect_eq(pool_idle_bytes(), 320 * MIB);
}

PoolTest(relief, medium_halves_what_each_bucket_keeps)
{
    churn(32, 10 * MIB);
    churn(10, 20 * MIB);
    use(60);
    work_off();
    cr_expect_eq(pool_idle_bytes(),
                 160 * MIB + 200 * MIB); /* 16 of the first, all 10 of the second */
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_PRESSURE].blocks, 16);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_PRESSURE].bytes, 160 * MIB);
    churn(32, 10 * MIB); /* and keeps no more of them */
    cr_expect_eq(pool_idle_bytes(), 160 * MIB + 200 * MIB);
}

PoolTest(relief, high_drops_what_is_large_and_unused_until_it_is_over)
{
    uint64_t key;

    churn(10, 80 * MIB);
    churn(10, 100 * MIB);
    churn(10, 120 * MIB);
    fake_driver.now_ns += 5000 * FAKE_MS;
    cr_assert(pool_hits(CW_POOL_DEVICE, 120 * MIB, &key));
    pool_put(key);
    use(81);
    work_off();
    cr_expect_eq(cw_pressure_excess(0), 0);
    cr_expect_eq(idle_of(120 * MIB), 10); /* was asked for just now */
    cr_expect_eq(idle_of(80 * MIB), 10);  /* is the smaller loss */
    cr_expect_eq(idle_of(100 * MIB), 3);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_PRESSURE].bytes, 700 * MIB);
}

PoolTest(relief, critical_keeps_nothing)
{
    uint64_t key = pool_get(10 * MIB), pinned = pool_alloc(CW_POOL_HOST, MIB, NULL);

    churn(32, 10 * MIB);
    churn(5, 64 * KIB);
    pool_free(CW_POOL_HOST, pinned, NULL);
    use(96);
    work_off();
    cr_expect_eq(pool_idle_bytes(), MIB); /* pinned memory is not of the device */
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_PRESSURE].blocks, 37);
}

PoolTest(relief, nothing_goes_while_the_gate_is_closed_but_to_a_request)
{
    unsigned taken;

    churn(32, 10 * MIB);
    use(96);
    taken = fake_taken();
    cw_gate_close(CW_GATE_CAPTURE);
    cw_reclaim_work();
    cr_expect(cw_reclaim_is_due());
    cr_expect_eq(fake_taken(), taken);
    cr_expect_eq(cw_reclaim_sufficient(0, 10 * MIB, 1), 10 * MIB);
    cr_expect_eq(pool_reclaim_all(0), 310 * MIB);
    cr_expect_eq(fake_capture_mode(), 0);
    cw_gate_open(CW_GATE_CAPTURE);
    pool_reclaim(0);
    cr_expect_eq(fake_taken(), 0);
}

/* ---- sufficient ---- */

PoolTest(relief, the_smallest_sufficient_block_goes)
{
    churn(1, 48 * MIB);
    churn(1, 70 * MIB);
    churn(1, 90 * MIB);
    cr_expect_eq(cw_reclaim_sufficient(0, 60 * MIB, 1), 70 * MIB);
    cr_expect_eq(cw_reclaim_sufficient(0, 60 * MIB, 1), 90 * MIB);
    cr_expect_eq(cw_reclaim_sufficient(0, 60 * MIB, 1), 0); /* all there is is too little */
    cr_expect_eq(pool_idle_bytes(), 48 * MIB);
}

PoolTest(relief, without_one_the_largest_go_until_they_are_enough)
{
    churn(1, 20 * MIB);
    churn(1, 64 * MIB);
    churn(1, 48 * MIB);
    cr_expect_eq(cw_reclaim_sufficient(0, 100 * MIB, 1), 112 * MIB);
    cr_expect_eq(pool_idle_bytes(), 20 * MIB);
    cr_expect_eq(cw_reclaim_sufficient(0, 0, 1), 0);
    cr_expect_eq(cw_reclaim_sufficient(0, UINT64_MAX, 1), 0);
    cr_expect_eq(cw_reclaim_sufficient(0, 1, 1), 20 * MIB);
}

PoolTest(relief, other_devices_are_left_alone)
{
    churn(2, 52 * MIB);
    cr_expect_eq(cw_reclaim_sufficient(1, 1, 1), 0);
    cr_expect_eq(pool_reclaim_all(1), 0);
    cr_expect_eq(pool_idle_bytes(), 104 * MIB);
}

/* ---- what is beyond the cap ---- */

/* Blocks that nobody needs grow with each request. */
static void grow_to(uint64_t bytes)
{
    for (uint64_t at = 40 * MIB; at <= bytes; at += 10 * MIB)
        churn(4, at);
}

/* Demand decides once others leave little room. */
static void start_by_demand(void)
{
    ask_start_keeping(CW_COUNT_AUTO);
    use(60);
}

PoolTest(cap, while_there_is_room_what_was_used_lately_stays)
{
    ask_start_keeping(CW_COUNT_AUTO);
    pool_settle(0);
    churn(4, 40 * MIB);
    churn(4, 80 * MIB);
    churn(4, 160 * MIB);
    work_off();
    cr_expect_eq(core_held(0), 4 * (40 + 80 + 160) * MIB);
}

PoolTest(cap, a_program_that_grows_holds_little_more_than_it_needs)
{
    start_by_demand();
    grow_to(200 * MIB);
    work_off();
    cr_expect_leq(core_held(0), 4 * 200 * MIB * 5 / 4);
    cr_expect_eq(cw_demand_live(0), 4 * 200 * MIB);
}

/* The block for which there was no room goes to the driver, and makes room for those after it. */
PoolTest(cap, at_pool_max_what_is_worth_least_makes_room)
{
    ask_start_keeping(CW_COUNT_AUTO);
    pool_settle(0);
    cw_retention_set_most(0, 800 * MIB);
    churn(1, 400 * MIB);
    fake_driver.now_ns += 1000 * FAKE_MS;
    churn(5, 100 * MIB);
    work_off();
    cr_expect_eq(idle_of(400 * MIB), 0);
    cr_expect_eq(idle_of(100 * MIB), 4);
}

/* Its kernel may wait for what the program does next. */
PoolTest(cap, nothing_is_given_back_inside_an_allocation_while_the_context_works)
{
    uint64_t before;
    unsigned frees;

    start_by_demand();
    churn(10, 100 * MIB);
    fake_submit(FIRST_CONTEXT);
    frees = fake_driver.calls[FAKE_BLOCK_FREE];
    before = core_held(0);
    pool_get(400 * MIB);
    cr_expect_eq(fake_driver.calls[FAKE_BLOCK_FREE], frees);
    cr_expect_eq(core_held(0), before + 400 * MIB);
    fake_finish(FIRST_CONTEXT);
    pool_put(pool_get(1 * MIB)); /* a free does what is due */
    work_off();
    cr_expect_leq(core_held(0), cw_demand_cap(0));
}

PoolTest(cap, inside_an_allocation_as_much_goes_as_the_request_makes_too_much)
{
    start_by_demand();
    churn(10, 100 * MIB);
    pool_get(400 * MIB);
    cr_expect_leq(core_held(0), cw_demand_cap(0));
    cr_expect_eq(core_held(0), 1200 * MIB); /* 200 of the idle 1000 went, and not more */
    cr_expect_leq(fake_driver.most_taken, 1200 * MIB);
}

PoolTest(cap, an_allocation_in_a_capture_gives_nothing_back)
{
    struct cw_pool *pool;

    start_by_demand();
    churn(10, 100 * MIB);
    pool = cw_pool_here(CW_POOL_DEVICE);
    cw_gate_close(CW_GATE_CAPTURE);
    cw_reclaim_before_miss(pool, 4000 * MIB);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(core_held(0), 1000 * MIB);
}

PoolTest(cap, without_events_an_allocation_gives_nothing_back)
{
    fake_driver.has_no_context_events = 1;
    start_by_demand();
    churn(10, 100 * MIB);
    pool_get(400 * MIB);
    cr_expect_eq(core_held(0), 1400 * MIB);
}

/* ---- turns ---- */

static uint64_t live_key[64];
static unsigned live_keys;

/* Many blocks lie idle and are doomed; a few are live. */
static void start_doomed(unsigned blocks)
{
    ask_start_keeping(CW_COUNT_AUTO);
    while (live_keys < 64)
        live_key[live_keys++] = pool_get(4 * KIB);
    churn(blocks, 64 * KIB);
    for (int i = 0; i < 12; i++) {
        fake_driver.now_ns += cw_sweep_interval();
        cw_sweep_serve();
    }
    cr_assert_eq(pool_idle_bytes(), blocks * 64 * KIB);
    cr_assert(cw_reclaim_is_due());
}

static unsigned frees_of(void (*call)(void))
{
    unsigned before = fake_driver.calls[FAKE_BLOCK_FREE];

    call();
    return fake_driver.calls[FAKE_BLOCK_FREE] - before;
}

static void free_one(void)
{
    pool_put(live_key[--live_keys]);
}

static void wait_once(void)
{
    pool_sync(FIRST_CONTEXT);
}

PoolTest(turns, a_call_of_the_programs_starts_64_frees_at_most)
{
    unsigned calls = 0, frees;

    start_doomed(1000);
    do {
        frees = frees_of(calls % 2 == 0 ? free_one : wait_once);
        cr_expect_leq(frees, CW_RELIEF_CALLS);
        calls++;
    } while (frees != 0 && calls < 100);
    cr_expect_geq(calls, 1000 / CW_RELIEF_CALLS);
    cr_expect_leq(pool_idle_bytes(), 64 * 4 * KIB);
    cr_expect_not(cw_reclaim_is_due());
}

/* A wait, at whose end a neighbour's request is served. */
static void wait_and_serve(void)
{
    cw_thread.depth = 1;
    wait_once();
    cw_reclaim_work();
    cw_thread.depth = 0;
}

PoolTest(turns, a_call_has_one_turn_whatever_it_is_for)
{
    unsigned calls = 0, frees;

    start_doomed(300);
    while ((frees = frees_of(wait_and_serve)) != 0 && calls++ < 100)
        cr_expect_leq(frees, CW_RELIEF_CALLS);
    cr_expect_eq(calls, 300 / CW_RELIEF_CALLS + 1);
}

PoolTest(turns, the_background_thread_takes_one_after_the_other)
{
    start_doomed(300);
    cw_thread.depth = cw_thread.is_helper = 1;
    cr_expect_eq(frees_of(cw_reclaim_work), CW_RELIEF_CALLS);
    cr_expect_eq(frees_of(cw_reclaim_work), CW_RELIEF_CALLS);
    cw_thread.depth = cw_thread.is_helper = 0;
}

/* Each free takes longer than a turn. */
static void be_slow(enum fake_call call)
{
    if (call == FAKE_BLOCK_FREE)
        atomic_fetch_add(&fake_driver.exact_ns, CW_RELIEF_NS);
}

PoolTest(turns, a_driver_that_is_slow_is_called_once_in_a_turn)
{
    start_doomed(10);
    fake_driver.inside = be_slow;
    cr_expect_eq(frees_of(free_one), 1);
    cr_expect_eq(frees_of(free_one), 1);
    cr_expect_eq(pool_idle_bytes(), 8 * 64 * KIB + 2 * 4 * KIB);
}

static void reclaim(void)
{
    cw_reclaim_gather(0);
    pool_reclaim_all(0);
}

static void trim(void)
{
    cw_reclaim_asked(0, 1, 1);
}

PoolTest(turns, a_request_that_found_no_memory_gets_all_at_once)
{
    start_doomed(300);
    cr_expect_eq(frees_of(reclaim), 300);
}

PoolTest(turns, another_process_that_asks_gets_all_at_once)
{
    start_doomed(300);
    cr_expect_eq(frees_of(trim), 300);
    cr_expect_eq(fake_taken(), live_keys);
}

/* ---- under locks ---- */

/* However many are asked for. */
PoolTest(steps, blocks_beyond_a_number_leave_a_bucket_256_at_a_time)
{
    struct cw_pool *pool;
    uint32_t list;

    ask_start_keeping(20000);
    churn(1000, 64 * KIB);
    cw_reclaim_gather(0);
    pool = cw_pool_here(CW_POOL_DEVICE);
    list = cw_bucket_take_excess(pool, cw_size_class_down(64 * KIB), 1, 1, UINT32_MAX);
    cr_expect_eq(pool_list_length(list), 256);
    cw_release_list(pool->pool_context, list, CW_RELEASE_FULL);
}

/* ---- contexts with work ---- */

/* A free there once met work for 20 ms, which has ended since; nobody has freed there again. */
static void be_busy_once(uint64_t context)
{
    uint64_t key;

    fake_set_current(context);
    key = pool_get(4 * MIB);
    fake_submit(context);
    fake_driver.is_persistent = 1;
    fake_driver.clock_step = 10 * FAKE_MS;
    pool_put(key);
    fake_driver.clock_step = 0;
    fake_driver.is_persistent = 0;
    fake_finish(context);
    fake_set_current(FIRST_CONTEXT);
}

PoolTest(relief, one_that_was_busy_once_does_not_hold_up_the_others)
{
    uint64_t other = pooled_context(1, 1);

    churn(32, 10 * MIB);
    be_busy_once(other);
    for (int i = 0; i < 100; i++) { /* frees at level critical */
        use(96);
        pool_put(pool_get(MIB));
    }
    cr_expect_leq(pool_idle_bytes(), 4 * MIB); /* of the other device */
}

TestSuite(relief_deferred);

static void start_deferred_kernel(void)
{
    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
}

PoolTest(relief_deferred, the_background_thread_makes_no_free_that_waits)
{
    uint64_t key;

    pool_start(CW_FREE_DEFERRED);
    key = pool_get(4 * MIB);
    start_deferred_kernel();
    cr_assert_eq(pool_put(key), CW_POOL_KEPT);
    fake_driver.refuses_events = 1;
    cw_thread.is_helper = 1;
    fake_set_current(0);
    cw_reclaim_settle();
    cw_thread.is_helper = 0;
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0);
}

PoolTest(relief_deferred, a_free_does_not_wait_because_a_neighbour_asks)
{
    uint64_t large, small, bytes;

    pool_start(CW_FREE_DEFERRED);
    large = pool_get(64 * MIB);
    small = pool_get(4 * KIB);
    pool_put(large);
    pool_sync(FIRST_CONTEXT);
    start_deferred_kernel();
    cw_thread.is_helper = 1;
    fake_set_current(0);
    cw_adjust_lend(0, 64 * MIB, &bytes);
    cw_thread.is_helper = 0;
    fake_set_current(FIRST_CONTEXT);
    cr_assert_eq(bytes, 0);
    cr_expect_eq(pool_put(small), CW_POOL_KEPT);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0);
}
