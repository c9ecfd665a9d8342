/* SPDX-License-Identifier: MIT */
/* What goes back to the driver: by level of pressure, because little is live, because the program
 * sleeps; in steps that hold no lock for long. */
#include "core/relief.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/device.h"
#include "core/gate.h"
#include "core/hoard.h"
#include "core/keep.h"
#include "core/limit.h"
#include "core/pressure.h"
#include "core/session.h"
#include "core/tracker.h"

#define TOTAL (10000 * MIB)

static void start(void)
{
    cr_assert_eq(cw_sizes_parse("100%", 0, &core_options()->pool_max), 0);
    core_options()->pool_bucket_max = 32;
    ask_start("", "", TOTAL);
}

TestSuite(relief, .init = start);

/* Takes `count` blocks and frees them all. */
static void churn(unsigned count, uint64_t bytes)
{
    static uint64_t key[12000];

    for (unsigned i = 0; i < count; i++)
        key[i] = pool_get(bytes);
    for (unsigned i = 0; i < count; i++)
        pool_put(key[i]);
}

static uint64_t idle(void)
{
    return pool_sums().idle_bytes;
}

/* By others and us together. */
static void use(uint64_t percent)
{
    uint64_t used = percent * (TOTAL / 100);

    fake_driver.others = used > fake_driver.taken_bytes ? used - fake_driver.taken_bytes : 0;
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
}

Test(relief, low_gives_nothing_back)
{
    churn(32, 10 * MIB);
    use(59);
    cw_relief_pressure();
    cr_expect_eq(idle(), 320 * MIB);
}

Test(relief, medium_halves_what_each_bucket_keeps)
{
    churn(32, 10 * MIB);
    churn(10, 20 * MIB);
    use(60);
    cw_relief_pressure();
    cr_expect_eq(idle(), 160 * MIB + 200 * MIB); /* 16 of the first, all 10 of the second */
    cr_expect_eq(ask_memory()->pressure_blocks, 16);
    cr_expect_eq(ask_memory()->pressure_bytes, 160 * MIB);
    cw_relief_pressure();
    cr_expect_eq(ask_memory()->pressure_blocks, 16);
    churn(32, 10 * MIB); /* and keeps no more of them */
    cr_expect_eq(idle(), 160 * MIB + 200 * MIB);
    cr_expect_eq(pool_check(), 0);
}

static unsigned idle_of(uint64_t bytes)
{
    unsigned count = 0;

    for (uint32_t i = 1; i < cw_session.arena.header->table[CW_TABLE_BLOCK].count; i++)
        count += cw_tracker_at(i)->state == CW_BLOCK_IDLE && cw_tracker_at(i)->held == bytes;
    return count;
}

Test(relief, high_drops_the_buckets_that_went_unused_longest_until_it_is_over)
{
    uint64_t key;

    churn(10, 80 * MIB);
    churn(10, 100 * MIB);
    churn(10, 120 * MIB);
    use(81);
    cw_relief_pressure(); /* the first look */
    for (int i = 0; i < 21; i++) {
        cr_expect_eq(idle(), 3000 * MIB); /* steps of a slow loop come again */
        cr_assert(pool_hits(CW_POOL_DEVICE, 100 * MIB, &key));
        pool_put(key);
        use(81);
        cw_relief_pressure();
    }
    /* 80 and 120 were not asked for all that time. */
    cr_expect_eq(idle_of(100 * MIB), 10);
    cr_expect_leq(cw_pressure_excess(0), 0);
    cr_expect_geq(ask_memory()->pressure_bytes, 600 * MIB);
    cr_expect_leq(ask_memory()->pressure_bytes, 801 * MIB);
    use(76);
    cr_expect_eq(pool_check(), 0);
}

Test(relief, high_leaves_a_size_alone_that_is_asked_for)
{
    uint64_t key[4];

    churn(10, 80 * MIB);
    for (int i = 0; i < 2; i++) {
        use(81);
        cw_relief_pressure();
        churn(1, 80 * MIB); /* a hit */
    }
    /* New here, and nothing lay there to hit: not unused for all that time. */
    for (int i = 0; i < 4; i++)
        key[i] = pool_get(200 * MIB);
    for (int i = 0; i < 4; i++)
        pool_put(key[i]); /* the first of them looks, because it has got worse */
    cr_expect_not(cw_pressure_is_due());
    cr_expect_eq(idle_of(200 * MIB), 4);
    cr_expect_eq(idle_of(80 * MIB), 10);
}

Test(relief, critical_keeps_nothing)
{
    uint64_t key = pool_get(10 * MIB), pinned = pool_alloc(CW_POOL_HOST, MIB, NULL);

    churn(32, 10 * MIB);
    churn(5, 64 * KIB);
    pool_free(CW_POOL_HOST, pinned, NULL);
    use(96);
    cw_relief_pressure();
    cr_expect_eq(idle(), MIB); /* pinned memory is not of the device */
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(ask_memory()->pressure_blocks, 37);
    cr_expect_eq(pool_check(), 0);
}

Test(relief, nothing_goes_while_the_gate_is_closed)
{
    unsigned taken;

    churn(32, 10 * MIB);
    use(96);
    taken = fake_taken();
    cw_gate_close();
    cw_relief_pressure();
    cr_expect_eq(fake_taken(), taken);
    cr_expect_eq(cw_relief_all(0), 0);
    cr_expect_eq(cw_relief_sufficient(0, 10 * MIB), 0);
    cw_gate_open();
    cr_expect_eq(idle(), 320 * MIB);
    pool_reclaim(0);
    cr_expect_eq(fake_taken(), 0);
    cr_expect_eq(pool_check(), 0);
}

/* ---- sufficient ---- */

Test(relief, the_smallest_sufficient_block_goes)
{
    churn(1, 50 * MIB);
    churn(1, 70 * MIB);
    churn(1, 90 * MIB);
    cr_expect_eq(cw_relief_sufficient(0, 60 * MIB), 70 * MIB);
    cr_expect_eq(cw_relief_sufficient(0, 60 * MIB), 90 * MIB);
    cr_expect_eq(cw_relief_sufficient(0, 60 * MIB), 0); /* all there is is too little */
    cr_expect_eq(idle(), 52 * MIB);
}

Test(relief, without_one_the_largest_go_until_they_are_enough)
{
    churn(1, 20 * MIB);
    churn(1, 64 * MIB);
    churn(1, 48 * MIB);
    cr_expect_eq(cw_relief_sufficient(0, 100 * MIB), 112 * MIB);
    cr_expect_eq(idle(), 20 * MIB);
    cr_expect_eq(cw_relief_sufficient(0, 0), 0);
    cr_expect_eq(cw_relief_sufficient(0, UINT64_MAX), 0);
    cr_expect_eq(cw_relief_sufficient(0, 1), 20 * MIB);
    cr_expect_eq(pool_check(), 0);
}

Test(relief, other_devices_are_left_alone)
{
    churn(2, 50 * MIB);
    cr_expect_eq(cw_relief_sufficient(1, 1), 0);
    cr_expect_eq(cw_relief_all(1), 0);
    cr_expect_eq(idle(), 104 * MIB);
}

/* ---- emptied ---- */

TestSuite(emptied);

Test(emptied, gives_all_back_when_nothing_is_live_at_most_eight_times_in_pool_idle)
{
    start();
    fake_driver.now_ns += FAKE_MS;
    churn(4, 50 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(idle(), 0);
    cr_expect_eq(ask_memory()->empty_blocks, 4);
    cr_expect_eq(ask_memory()->empty_bytes, 208 * MIB);
    churn(4, 50 * MIB);
    fake_driver.now_ns += 1200 * FAKE_MS;
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(idle(), 208 * MIB);
    fake_driver.now_ns += 50 * FAKE_MS;
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(idle(), 0);
    cr_expect_eq(pool_check(), 0);
}

Test(emptied, leaves_it_where_something_is_live_or_little_is_idle)
{
    uint64_t key;

    start();
    churn(1, 30 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(idle(), 30 * MIB);
    key = pool_get(24 * MIB);
    churn(4, 50 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(idle(), 238 * MIB);
    pool_put(key);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(idle(), 0);
}

Test(emptied, leaves_it_to_who_has_the_pool_filled_ahead)
{
    cr_assert_eq(cw_batches_parse("50M:4", &core_options()->prewarm), 0);
    start();
    churn(1, 50 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 4);
}

/* ---- asleep ---- */

static void sleep_for(uint64_t ms)
{
    fake_driver.now_ns += ms * FAKE_MS;
    cw_relief_asleep(0, cw_session_now());
}

Test(relief, asleep_gives_all_back_after_pool_idle_without_a_move)
{
    churn(4, 10 * MIB);
    churn(4, 64 * KIB);
    sleep_for(1);
    sleep_for(9999);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 8);
    churn(1, 10 * MIB); /* a hit: awake */
    sleep_for(1);
    sleep_for(9999);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 8);
    sleep_for(1);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0);
    cr_expect_eq(pool_counters(0)->trimmed_idle, 8);
    cr_expect_eq(pool_check(), 0);
}

Test(relief, a_program_that_uses_pinned_memory_is_awake)
{
    uint64_t key = pool_alloc(CW_POOL_HOST, MIB, NULL);

    churn(4, 10 * MIB);
    pool_free(CW_POOL_HOST, key, NULL);
    sleep_for(1);
    for (int i = 0; i < 4; i++) {
        cr_assert(pool_hits(CW_POOL_HOST, MIB, &key));
        pool_free(CW_POOL_HOST, key, NULL);
        sleep_for(9000);
    }
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 5);
}

/* ---- in steps ---- */

/* Blocks that have left the buckets, by their own count, at the first free that follows: as many as
 * were taken out under the lock in one go, if they are given back before more are taken. */
static uint64_t before_step, longest_step;

static void watch_steps(enum fake_call call)
{
    uint64_t now = cw_bucket_idle(0);

    if (call != FAKE_BLOCK_FREE || now == before_step)
        return;
    if (before_step - now > longest_step)
        longest_step = before_step - now;
    before_step = now;
}

TestSuite(steps);

/* However many are asked for. */
static void expect_256_at_most(void)
{
    struct cw_pool *pool = cw_pool_here(CW_POOL_DEVICE);
    uint32_t list = cw_bucket_take_excess(pool, cw_size_class_down(64 * KIB), 1, 1, UINT32_MAX);
    unsigned count = 0;

    for (uint32_t at = list; at != 0; at = cw_tracker_next(at))
        count++;
    cr_expect_eq(count, 256);
    cw_keep_release(pool->realm, list, CW_RELEASE_FULL);
}

Test(steps, a_trim_of_ten_thousand_blocks_takes_256_at_a_time)
{
    core_options()->pool_bucket_max = 20000;
    cr_assert_eq(cw_sizes_parse("100%", 0, &core_options()->pool_max), 0);
    ask_start("", "", 12000 * MIB);
    churn(10000, 64 * KIB);
    cr_assert_gt(cw_bucket_idle(0), 9900 * 64 * KIB);
    expect_256_at_most();
    core_options()->pool_bucket_max = 8; /* and 64 MiB */
    before_step = cw_bucket_idle(0);
    fake_driver.inside = watch_steps;
    fake_driver.others = 8000 * MIB;
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
    cr_assert_eq(cw_pressure_level(0), CW_LEVEL_MEDIUM);
    cw_relief_pressure();
    cr_expect_eq(cw_bucket_idle(0), 32 * MIB);
    cr_expect_leq(longest_step, 256 * 64 * KIB);
    cr_expect_gt(longest_step, 0);
    cr_expect_eq(pool_check(), 0);
}
