/* SPDX-License-Identifier: MIT */
/* What the program has needed lately, what may be held for it, and what nobody needs. */
#include "core/limits/demand.h"

#include <criterion/criterion.h>

#include "core/control/lifecycle.h"
#include "ask_fixture.h"
#include "core/process/deadline.h"
#include "core/device/device.h"
#include "core/process/due.h"
#include "core/cache/retention.h"
#include "core/cache/thread_cache.h"
#include "core/reclaim/reclaim.h"
#include "core/process/session.h"
#include "core/reclaim/sweep.h"

static void setup(void)
{
    ask_start_keeping(CW_COUNT_AUTO);
}

TestSuite(sweep, .init = setup);

/* So many tenths of POOL_IDLE, in which the program does nothing but look at the clock. */
static void pass_tenths(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        fake_driver.now_ns += cw_sweep_interval();
        cw_sweep_serve();
    }
}

/* And what is due then is done. */
static void pass_and_work(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        pass_tenths(1);
        while (cw_reclaim_is_due())
            cw_reclaim_work();
    }
}

/* ---- the window ---- */

PoolTest(sweep, is_the_most_that_was_live_within_pool_idle)
{
    pool_churn(10, 100 * MIB);
    cr_expect_eq(cw_demand_live(0), 1000 * MIB);
    pass_tenths(9);
    cr_expect_eq(cw_demand_live(0), 1000 * MIB);
    pass_tenths(2);
    cr_expect_eq(cw_demand_live(0), 0u);
}

PoolTest(sweep, what_stays_live_is_in_every_part_of_the_window)
{
    pool_get(300 * MIB);
    pass_tenths(25);
    cr_expect_eq(cw_demand_live(0), 300 * MIB);
}

/* A thread that only hits changes nothing that is shared. */
PoolTest(sweep, peaks_that_a_thread_kept_to_itself_count)
{
    pool_churn(3, 100 * MIB);
    pass_tenths(5);
    pool_churn(2, 100 * MIB); /* hits */
    pass_tenths(6);
    cr_expect_eq(cw_demand_live(0), 200 * MIB);
}

PoolTest(sweep, is_by_device)
{
    pool_churn(1, 100 * MIB);
    cr_expect_eq(cw_demand_live(1), 0u);
}

/* ---- the cap ---- */

static void use(uint64_t percent)
{
    fake_driver.others = percent * (ASK_TOTAL / 100) - fake_driver.taken_bytes;
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
}

PoolTest(sweep, while_there_is_room_all_may_be_held)
{
    pool_churn(10, 100 * MIB);
    cr_expect_eq(cw_demand_cap(0), 1000 * MIB + 1000 * MIB / 64 * 15); /* sizes are exact yet */
    pool_settle(0);
    cr_expect_eq(cw_demand_cap(0), ASK_TOTAL / 100 * 60);
    use(30); /* 20 of it others' */
    cr_expect_eq(cw_demand_cap(0), ASK_TOTAL / 100 * 40);
}

PoolTest(sweep, from_medium_on_a_little_less_than_a_quarter_more_may_be_held)
{
    pool_churn(10, 100 * MIB);
    use(60);
    cr_expect_eq(cw_demand_cap(0), 1000 * MIB + 1000 * MIB / 64 * 15);
    use(80);
    cr_expect_eq(cw_demand_cap(0), 1000 * MIB);
}

/* The level is as old as the last sample, but what is held is known. */
PoolTest(sweep, a_level_that_is_out_of_date_lets_no_more_be_held)
{
    use(50);
    pool_churn(12, 100 * MIB);
    pool_settle(0);
    cr_expect_eq(cw_demand_cap(0), 1200 * MIB + 1200 * MIB / 64 * 15);
}

PoolTest(sweep, of_a_small_program_at_least_32_mib_or_so)
{
    use(60);
    cr_expect_eq(cw_demand_cap(0), 32 * MIB);
    pool_churn(1, 64 * MIB);
    cr_expect_eq(cw_demand_cap(0), 64 * MIB + 32 * MIB);
    pool_churn(1, 100 * MIB);
    cr_expect_geq(cw_demand_cap(0), 100 * MIB + 100 * MIB / 64 * 15);
    cr_expect_leq(cw_demand_cap(0), 100 * MIB + 32 * MIB);
}

Test(demand_with, with_a_number_of_blocks_there_is_no_cap)
{
    ask_start_keeping(8);
    cr_expect_eq(cw_demand_cap(0), UINT64_MAX);
}

/* ---- sweeps ---- */

PoolTest(sweep, a_sweep_is_made_at_its_time_and_once)
{
    uint64_t next;

    pass_tenths(1);
    next = cw_deadlines.demand_ns;
    cr_expect_eq(next, cw_session_now() + cw_sweep_interval());
    fake_driver.now_ns += cw_sweep_interval() - 1;
    cw_sweep_serve();
    cr_expect_eq(cw_deadlines.demand_ns, next);
    fake_driver.now_ns++;
    cw_sweep_serve();
    cr_expect_eq(cw_deadlines.demand_ns, next + cw_sweep_interval());
}

/* A thread gives up what it has not used since the last sweep. */
PoolTest(sweep, sweeps_that_were_missed_are_made_up_for_in_threads_too)
{
    pool_churn(4, 4 * KIB);
    pass_tenths(1);
    cr_expect(cw_thread_cache_has(cw_pool_here(CW_POOL_DEVICE), cw_size_class_up(4 * KIB)));
    pool_churn(4, 4 * KIB);
    fake_driver.now_ns += 2 * cw_sweep_interval();
    cw_sweep_serve();
    cr_expect_not(cw_thread_cache_has(cw_pool_here(CW_POOL_DEVICE), cw_size_class_up(4 * KIB)));
}

PoolTest(sweep, an_allocation_after_its_time_makes_a_sweep_due)
{
    pass_tenths(1);
    cw_due_take(CW_DUE_DEMAND);
    pool_get(512);
    cr_expect_not(cw_due_take(CW_DUE_DEMAND));
    fake_driver.now_ns += cw_sweep_interval();
    cr_expect_not(cw_sweep_is_overdue());
    pool_get(512);
    cr_expect(cw_due_take(CW_DUE_DEMAND));
    fake_driver.now_ns += cw_sweep_interval();
    cr_expect(cw_sweep_is_overdue()); /* and nobody came */
}

PoolTest(sweep, what_nobody_needs_decays_and_is_gone_after_pool_idle)
{
    uint64_t before, after;

    pool_churn(64, 4 * MIB);
    pass_and_work(1);
    cr_expect_eq(pool_idle_bytes(), 256 * MIB); /* nothing at once */
    pass_and_work(3);
    before = pool_idle_bytes();
    cr_expect_lt(before, 256 * MIB);
    cr_expect_gt(before, 128 * MIB);
    pass_and_work(3);
    after = pool_idle_bytes();
    cr_expect_lt(after, before);
    cr_expect_gt(after, 0u);
    pass_and_work(3);
    cr_expect_eq(pool_idle_bytes(), 0u);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_IDLE].blocks +
                     pool_counters(0)->released[CW_RELEASE_FULL].blocks,
                 64u);
    cr_expect_gt(pool_counters(0)->released[CW_RELEASE_IDLE].blocks, 0u);
}

PoolTest(sweep, a_loop_that_empties_and_refills_keeps_its_hits)
{
    uint64_t misses;

    pool_churn(20, 4 * MIB);
    misses = pool_sums().misses;
    for (unsigned i = 0; i < 50; i++) {
        pass_and_work(1);
        pool_churn(20, 4 * MIB);
    }
    cr_expect_eq(pool_sums().misses, misses);
    cr_expect_eq(pool_idle_bytes(), 80 * MIB);
}

PoolTest(sweep, a_step_as_long_as_half_of_pool_idle_keeps_most_of_its_hits)
{
    uint64_t misses;

    pool_churn(40, 4 * MIB);
    misses = pool_sums().misses;
    for (unsigned i = 0; i < 10; i++) {
        pass_and_work(5);
        pool_churn(40, 4 * MIB);
    }
    cr_expect_leq(pool_sums().misses, misses + 10 * 40 / 2, "%ju",
                  (uintmax_t)(pool_sums().misses - misses));
}

PoolTest(sweep, a_program_that_shrank_gives_back_what_it_had)
{
    uint64_t key[4];

    pool_churn(40, 20 * MIB);
    for (unsigned i = 0; i < 40; i++) {
        for (unsigned k = 0; k < 4; k++)
            key[k] = pool_get(20 * MIB);
        for (unsigned k = 0; k < 4; k++)
            pool_put(key[k]);
        pass_and_work(1);
    }
    cr_expect_leq(core_held(0), 80 * MIB + 32 * MIB);
    cr_expect_geq(core_held(0), 80 * MIB);
}

/* ---- the watch ---- */

PoolTest(sweep, calls_for_somebody_to_look_after_much_that_is_idle)
{
    pool_churn(1, 20 * MIB);
    cr_expect_not(cw_due_take(CW_DUE_WATCH));
    pool_churn(4, 20 * MIB);
    cr_expect(cw_due_take(CW_DUE_WATCH));
    pool_churn(6, 20 * MIB);
    cr_expect_not(cw_due_take(CW_DUE_WATCH)); /* somebody is there */
    cr_expect_not(cw_retention_end_watch());
    pool_reclaim(0);
    cw_lifecycle_thread_ends(); /* and what it was granted */
    cr_expect(cw_retention_end_watch());
    pool_churn(6, 20 * MIB);
    cr_expect(cw_due_take(CW_DUE_WATCH));
}
