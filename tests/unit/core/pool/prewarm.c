/* SPDX-License-Identifier: MIT */
/* Blocks that the pool of each context begins with. */
#include "core/pool/prewarm.h"

#include <criterion/criterion.h>

#include "core/account/usage.h"
#include "core/limits/demand.h"
#include "core/reclaim/sweep.h"
#include "pool_fixture.h"

PoolTest(prewarm, prewarm_takes_blocks_at_the_first_request_of_a_context)
{
    cr_assert_eq(cw_batches_parse("1M:3,100M:2", &core_options()->prewarm), 0);
    pool_start(CW_FREE_STRICT);
    cr_expect_eq(fake_calls(FAKE_BLOCK_ALLOC), 0u);
    cr_expect_eq(pool_serves(1 * MIB), 1);
    cr_expect_eq(fake_calls(FAKE_BLOCK_ALLOC), 5u);
    cr_expect_eq(pool_counters(0)->prewarmed, 5u);
    cr_expect_eq(core_held(0), 203 * MIB);
    cr_expect_eq(core_live(0), 1 * MIB);
    cr_expect_eq(pool_serves(100 * MIB), 1);
    cr_expect_eq(pool_sums().hits, 2u);
    cr_expect_eq(fake_calls(FAKE_BLOCK_ALLOC), 5u);
    fake_set_current(pooled_context(1, 0));
    cr_expect_eq(pool_serves(1 * MIB), 1);
    cr_expect_eq(fake_calls(FAKE_BLOCK_ALLOC), 10u);
}

/* The program waits once a second. */
static void pass_seconds(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        fake_driver.now_ns += 1000 * FAKE_MS;
        cw_sweep_serve();
        pool_sync(FIRST_CONTEXT);
    }
}

PoolTest(prewarm, prewarmed_blocks_stay_as_long_as_any)
{
    cr_assert_eq(cw_batches_parse("100M:2", &core_options()->prewarm), 0);
    pool_start(CW_FREE_STRICT);
    fake_driver.now_ns += 60000 * FAKE_MS;
    cr_expect_eq(pool_serves(4 * KIB), 0);
    pass_seconds(3);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 2u);
    pass_seconds(12);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
}

PoolTest(prewarm, prewarm_stops_when_the_driver_has_no_memory)
{
    cr_assert_eq(cw_batches_parse("1M:3", &core_options()->prewarm), 0);
    cr_assert_eq(cw_sizes_parse("8M", 0, &core_options()->limit), 0);
    pool_start(CW_FREE_STRICT);
    fake_driver.fails[FAKE_BLOCK_ALLOC] = 1;
    cr_expect_eq(pool_serves(1 * MIB), 0);
    cr_expect_eq(fake_calls(FAKE_BLOCK_ALLOC), 1u);
    cr_expect(core_held(0) == 0 && cw_usage_in_flight(0) == 0, "and of the limit keeps nothing");
}

/* They are wanted, whatever the program has live. */
PoolTest(prewarm, prewarmed_blocks_are_not_beyond_what_is_needed)
{
    cr_assert_eq(cw_batches_parse("100M:5", &core_options()->prewarm), 0);
    pool_start(CW_FREE_STRICT);
    pool_get(60 * MIB);
    cr_expect_geq(cw_demand_cap(0), 500 * MIB);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 5u);
}
