/* SPDX-License-Identifier: MIT */
/* What live blocks have beyond what was asked for: bounded in total, and given back. */
#include "core/limits/excess.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/device/device.h"
#include "core_file.h"
#include "core/process/session.h"
#include "core/account/usage.h"

/* One part in 200 of it is 10 MiB. */
#define TOTAL (2000 * MIB)
#define MOST  (10 * MIB)

static void begin(const char *limit)
{
    ask_start(limit, "", TOTAL);
    pool_settle(0);
}

static void setup(void)
{
    begin("");
}

TestSuite(excess, .init = setup);

Test(excess, there_is_so_much_of_it_and_no_more)
{
    cr_expect_eq(cw_excess_reserve(0, 0, 6 * MIB), 6 * MIB);
    cr_expect_eq(cw_excess_reserve(0, 0, 6 * MIB), 4 * MIB); /* as far as it goes */
    cr_expect_eq(cw_excess_reserve(0, 0, 1), 0u);
    cr_expect_eq(cw_usage_excess(0), MOST);
}

PoolTest(excess, what_is_given_back_can_be_had_again)
{
    cw_excess_reserve(0, 0, MOST);
    cw_usage_give_excess(0, 3 * MIB);
    cr_expect_eq(cw_excess_reserve(0, 0, MOST), 3 * MIB);
    cw_usage_give_excess(0, MOST);
    cr_expect_eq(cw_usage_excess(0), 0u);
}

Test(excess_with, is_of_the_limit_where_there_is_one)
{
    begin("200M");
    cr_expect_eq(cw_excess_reserve(0, 0, MOST), 1 * MIB);
}

/* ---- of what is free ---- */

/* So much was live, and is not any more. */
static void have_had(uint64_t bytes)
{
    pool_put(pool_get(bytes));
    pool_reclaim(0);
}

PoolTest(excess, is_of_what_the_program_leaves_free_at_its_peak)
{
    uint64_t excess;

    have_had(TOTAL / 2);
    cr_expect_eq(cw_excess_reserve(0, 0, MOST), MOST / 2);
    cw_usage_give_excess(0, MOST / 2);
    have_had(TOTAL - 1 * MIB);
    cr_expect_eq(cw_excess_round(0, 35 * MIB, &excess), 35 * MIB);
    cr_expect_eq(cw_usage_excess(0), 0u);
}

PoolTest(excess, what_other_processes_have_is_not_free)
{
    fake_driver.others = TOTAL / 2;
    cr_assert_eq(cw_device_sample_now(0, 0), 0);
    cr_expect_eq(cw_excess_reserve(0, 0, MOST), MOST / 2);
    cw_usage_give_excess(0, MOST);
}

Test(excess_with, a_program_that_has_just_begun_has_none)
{
    uint64_t excess;

    ask_start("", "", TOTAL);
    cr_expect_eq(cw_excess_round(0, 35 * MIB, &excess), 35 * MIB);
    fake_driver.now_ns += 10 * CW_EXCESS_LOOK_NS; /* time alone tells nothing */
    cr_expect_eq(cw_excess_reserve(0, 1 * MIB, 1), 0u);
    pool_settle(0);
    cr_expect_eq(cw_excess_round(0, 35 * MIB, &excess), 36 * MIB);
}

/* It keeps what it takes. */
Test(excess, a_program_that_loads_has_none)
{
    for (unsigned i = 0; i < 30; i++) {
        pool_get(1 * MIB - 100);
        fake_driver.now_ns += CW_EXCESS_LOOK_NS;
    }
    cr_expect_eq(cw_excess_reserve(0, 2 * MIB, 1), 0u);
    pool_settle(0);
    cr_expect_eq(cw_excess_reserve(0, 2 * MIB, 1), 1u);
}

/* One peak among many requests, a hundredth of the device above the one before. */
Test(excess, a_program_that_grows_fast_has_none)
{
    have_had(TOTAL / 100);
    pool_settle(0);
    have_had(TOTAL / 50);
    fake_driver.now_ns += CW_EXCESS_LOOK_NS;
    for (unsigned i = 0; i <= CW_EXCESS_LOOK_WISHES; i++)
        cw_usage_give_excess(0, cw_excess_reserve(0, 0, 1));
    cr_expect_eq(cw_excess_reserve(0, 0, 1), 0u);
}

/* What a thread has freed is not its to use again. */
PoolTest(excess, shrinks_when_the_program_has_filled_the_device)
{
    uint64_t key = pool_get(35 * MIB);

    cr_expect_eq(cw_usage_excess(0), 1 * MIB);
    have_had(TOTAL - 36 * MIB);
    cr_expect_eq(cw_excess_reserve(0, 0, MOST), 0u);
    pool_put(key);
    cr_expect_not(pool_hits(CW_POOL_DEVICE, 35 * MIB, NULL));
    cr_expect(pool_hits(CW_POOL_DEVICE, 36 * MIB, &key));
    cr_expect_eq(cw_usage_excess(0), 0u);
    pool_put(key);
}

Test(excess, pinned_memory_has_no_bound)
{
    cr_expect_eq(cw_excess_reserve(CW_DEVICE_HOST, 0, GIB), GIB);
    cr_expect_eq(cw_excess_reserve(0, 0, MOST), MOST);
}

Test(excess, devices_have_each_their_own)
{
    pooled_context(1, 1);
    pool_settle(1);
    cw_excess_reserve(0, 0, MOST);
    cr_expect_eq(cw_excess_reserve(1, 0, 1 * MIB), 1 * MIB);
}

/* ---- what the driver is asked for ---- */

Test(excess, sizes_are_rounded_and_that_is_counted)
{
    uint64_t excess, ask = cw_excess_round(0, 35 * MIB, &excess);

    cr_expect_eq(ask, 36 * MIB);
    cr_expect_eq(excess, 1 * MIB);
    cr_expect_eq(cw_usage_excess(0), 1 * MIB);
}

Test(excess, beyond_the_bound_sizes_are_exact)
{
    uint64_t excess;

    cw_excess_reserve(0, 0, MOST - 512 * KIB);
    cr_expect_eq(cw_excess_round(0, 35 * MIB + 5, &excess), 35 * MIB + 512);
    cr_expect_eq(excess, 0u);
    cr_expect_eq(cw_usage_excess(0), MOST - 512 * KIB); /* nothing stays reserved */
    cr_expect_eq(cw_excess_round(0, 32 * MIB, &excess), 32 * MIB);
}

PoolTest(excess, no_number_of_requests_exceeds_it)
{
    uint64_t asked = 0;

    for (unsigned i = 0; i < 40; i++) {
        pool_get(35 * MIB);
        asked += 35 * MIB;
    }
    cr_expect_leq(fake_driver.taken_bytes, asked + MOST);
    cr_expect_leq(cw_usage_excess(0), MOST);
    cr_expect_gt(cw_usage_excess(0), 0u);
}

/* ---- the life of a block ---- */

PoolTest(excess, a_block_has_it_as_long_as_it_lives)
{
    uint64_t key = pool_get(35 * MIB);

    cr_expect_eq(cw_usage_excess(0), 1 * MIB);
    pool_put(key);
    cr_expect_eq(cw_usage_excess(0), 0u);
    cr_assert(pool_hits(CW_POOL_DEVICE, 34 * MIB, &key));
    cr_expect_eq(cw_usage_excess(0), 2 * MIB);
    pool_put(key);
    cr_assert(pool_hits(CW_POOL_DEVICE, 36 * MIB, &key));
    cr_expect_eq(cw_usage_excess(0), 0u);
}

Test(excess, a_hit_has_no_more_than_there_is)
{
    pool_get(200 * MIB); /* and what is idle is little beside it */
    pool_put(pool_get(36 * MIB));
    cw_excess_reserve(0, 0, MOST - 3 * MIB);
    cr_expect_not(pool_serves(34 * MIB));
    cr_expect(pool_serves(36 * MIB - 512));
    cr_expect_leq(cw_usage_excess(0), MOST);
}

PoolTest(excess, a_request_that_is_served_by_nobody_keeps_nothing)
{
    struct cw_pool_request request = {.class = CW_POOL_DEVICE, .bytes = 35 * MIB};

    cr_assert_eq(cw_pool_alloc(&request, 0), 0u);
    cr_expect_eq(cw_usage_excess(0), 1 * MIB);
    cw_pool_cancel(&request);
    cw_pool_cancel(&request);
    cr_expect_eq(cw_usage_excess(0), 0u);
}

PoolTest(excess, a_request_that_got_the_exact_size_keeps_nothing)
{
    struct cw_pool_request request = {.class = CW_POOL_DEVICE, .bytes = 35 * MIB};
    struct cw_request granted = {0};

    cr_assert_eq(cw_pool_alloc(&request, 0), 0u);
    cw_pool_granted(&request, 35 * MIB, 1, &granted);
    cr_expect_eq(cw_usage_excess(0), 0u);
}

PoolTest(excess, the_end_of_a_context_gives_it_back)
{
    pool_get(35 * MIB);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(cw_usage_excess(0), 0u);
}

/* ---- blocks of larger classes ---- */

/* A program that asks for what the classes are has 4.5 % to spare. */
Test(excess, an_efficient_program_may_have_blocks_half_as_large_again)
{
    cr_expect_eq(cw_excess_reserve_larger(0, 8 * MIB), 0u); /* nothing is live */
    for (unsigned i = 0; i < 10; i++)
        pool_get(16 * MIB);
    have_had(400 * MIB);
    pool_settle(0);
    fake_driver.now_ns += 1000 * FAKE_MS;
    cr_expect_eq(cw_excess_reserve_larger(0, 8 * MIB), 4 * MIB);
    cr_expect_leq(cw_excess_reserve_larger(0, 20 * MIB),
                  560 * MIB / CW_EXCESS_LIVE_SHARE - 4 * MIB);
    cr_expect_leq(cw_usage_excess(0), 560 * MIB / CW_EXCESS_LIVE_SHARE);
}

PoolTest(excess, a_program_that_wastes_has_exact_sizes)
{
    uint64_t excess;

    /* Half of what is given is asked for. */
    for (unsigned i = 0; i < 1000; i++)
        pool_get(513);
    fake_driver.now_ns += 1000 * FAKE_MS;
    cr_expect_eq(cw_excess_reserve_larger(0, 8 * MIB), 0u);
    cr_expect_eq(cw_excess_round(0, 9 * KIB - 100, &excess), 9 * KIB);
    cr_expect_eq(cw_excess_round(0, 8 * KIB + 100, &excess), 8 * KIB + 512);
    cr_expect_eq(excess, 0u);
}

/* ---- several threads ---- */

static _Atomic uint64_t most_seen;

static void take_and_give(unsigned id)
{
    uint64_t random = id + 1;

    for (int i = 0; i < 20000; i++) {
        uint64_t got = cw_excess_reserve(0, 0, next_random(&random) % (4 * MIB)), there;

        there = cw_usage_excess(0);
        if (there > most_seen)
            most_seen = there;
        cw_usage_give_excess(0, got);
    }
}

PoolTest(excess, threads_that_take_at_once_stay_within_it)
{
    run_threads(4, take_and_give);
    cr_expect_leq(most_seen, MOST);
    cr_expect_eq(cw_usage_excess(0), 0u);
}

/* ---- on a live file ---- */

Test(excess_file, what_others_write_into_the_records_makes_no_size_exact, .fini = core_remove_file)
{
    uint64_t excess;

    core_on_file();
    setup();
    pool_get(35 * MIB);
    for (uint32_t i = 1; i < cw_arena_count(core_arena, CW_TABLE_BUCKET); i++)
        ((struct cw_live_bucket *)cw_arena_at(core_arena, CW_TABLE_BUCKET, i))->given_bytes = GIB;
    fake_driver.now_ns += UINT64_C(1) << CW_SESSION_TICK_SHIFT;
    cr_expect_eq(cw_excess_round(0, 35 * MIB, &excess), 36 * MIB);
}
