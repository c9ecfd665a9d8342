/* SPDX-License-Identifier: MIT */
/* Blocks that wait for an event about which the driver says nothing any more. */
#include "core/pending/pending.h"

#include <criterion/criterion.h>

#include "core/pending/batch.h"
#include "pool_fixture.h"

#define PROBE (4 * KIB)

static void setup(void)
{
    pool_start(CW_FREE_DEFERRED);
}

TestSuite(failing_queries, .init = setup);

PoolTest(failing_queries, a_free_gives_up_the_oldest_batch_whose_query_fails_for_ever)
{
    uint64_t next = pool_get(PROBE), key = pool_free_with_work(PROBE);

    fake_driver.fails[FAKE_EVENT_QUERY] = 1;
    cr_expect_eq(pool_serves(PROBE), 0);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0u);
    cr_expect_eq(pool_put(next), CW_POOL_KEPT);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 1u);
    cr_expect_eq(fake_give(key), -1); /* the driver has it */
    cr_expect_eq(core_held(0), PROBE);
}

PoolTest(failing_queries, blocks_do_not_pile_up_behind_a_query_that_fails_for_ever)
{
    fake_driver.fails[FAKE_EVENT_QUERY] = 1;
    for (int i = 0; i < 2000; i++)
        pool_free_with_work(PROBE);
    cr_expect_leq(cw_pending_bytes(0), 4 * CW_BATCH_MOST_BLOCKS * PROBE);
}

PoolTest(failing_queries, a_query_that_failed_once_costs_no_block)
{
    uint64_t next = pool_get(PROBE);

    pool_free_with_work(PROBE);
    fake_driver.fails[FAKE_EVENT_QUERY] = 1;
    cr_expect_eq(pool_serves(PROBE), 0);
    fake_driver.fails[FAKE_EVENT_QUERY] = 0;
    pool_put(next);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0u);
    cr_expect_eq(pool_serves(PROBE), 0);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(pool_serves(PROBE), 1);
}

PoolTest(failing_queries, a_free_that_goes_to_the_driver_as_busy_gives_up_too)
{
    uint64_t next = pool_get(16 * MIB);

    pool_leave_pending(20);
    fake_driver.clock_step = FAKE_MS;
    cr_expect_not(pool_serves(16 * MIB)); /* patience is over */
    fake_driver.fails[FAKE_EVENT_QUERY] = 1;
    cr_expect_not(pool_serves(16 * MIB));
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0u);
    cr_expect_eq(pool_put(next), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_BUSY), 1u);
    cr_expect_gt(fake_calls(FAKE_BLOCK_FREE), 0u);
}
