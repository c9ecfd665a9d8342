/* SPDX-License-Identifier: MIT */
/* What the pool keeps at most, how long, and what it gives back when memory is short. */
#include "core/device.h"
#include "core/keep.h"

#include <criterion/criterion.h>

#include "core/request.h"
#include "core/session.h"
#include "pool_fixture.h"

static void setup(void)
{
    pool_start(CW_FREE_STRICT);
}

TestSuite(keep, .init = setup);

static int serves(uint64_t bytes)
{
    return pool_hits(CW_POOL_DEVICE, bytes, NULL);
}

/* Takes `count` blocks and frees them all: how many the pool still has. */
static uint64_t churn(unsigned count, uint64_t bytes)
{
    uint64_t key[600];

    for (unsigned i = 0; i < count; i++)
        key[i] = pool_get(bytes);
    for (unsigned i = 0; i < count; i++)
        pool_put(key[i]);
    return pool_count(CW_BLOCK_IDLE);
}

/* ---- limits ---- */

Test(keep, a_bucket_keeps_64_mib)
{
    cr_expect_eq(churn(50, 2 * MIB), 32u);
    cr_expect_eq(pool_bypassed(CW_BYPASS_FULL), 18u);
    cr_expect_eq(pool_check(), 0);
}

Test(keep, a_bucket_keeps_eight_blocks_of_any_size)
{
    cr_expect_eq(churn(10, 100 * MIB), 8u);
    cr_expect_eq(pool_check(), 0);
}

Test(keep_with, bucket_max_says_how_many_blocks)
{
    core_options()->pool_bucket_max = 3;
    pool_start(CW_FREE_STRICT);
    cr_expect_eq(churn(5, 100 * MIB), 3u);
}

Test(keep_with, with_bucket_max_0_nothing_is_kept)
{
    core_options()->pool_bucket_max = 0;
    pool_start(CW_FREE_STRICT);
    cr_expect_eq(churn(5, 100 * MIB), 0u);
    cr_expect_eq(churn(5, 4 * KIB), 0u);
    cr_expect_eq(pool_check(), 0);
}

Test(keep_with, small_blocks_beyond_the_limits_go_back_when_they_leave_the_hoard)
{
    core_options()->pool_bucket_max = 1;
    pool_start(CW_FREE_STRICT);
    churn(600, 512 * KIB);
    cr_expect_leq(pool_sums().idle_bytes, 65 * MIB + 512 * KIB);
    cr_expect_gt(pool_counters(0)->trimmed_full, 400u);
    cr_expect_eq(pool_check(), 0);
}

static void start_with_most(const char *most)
{
    cr_assert_eq(cw_sizes_parse(most, 0, &core_options()->pool_max), 0);
    pool_start(CW_FREE_STRICT);
}

Test(keep_with, max_in_bytes_limits_a_device)
{
    start_with_most("256M");
    cr_expect_eq(churn(5, 100 * MIB), 2u);
}

Test(keep_with, max_as_a_share_limits_a_device)
{
    start_with_most("0.5%"); /* of 80 GiB */
    cr_expect_eq(churn(6, 100 * MIB), 4u);
}

Test(keep, pinned_memory_has_a_limit_of_its_own)
{
    uint64_t key[16];

    for (unsigned i = 0; i < 16; i++)
        key[i] = pool_alloc(CW_POOL_HOST + i % 2, 128 * MIB, NULL);
    for (unsigned i = 0; i < 16; i++)
        pool_free(CW_POOL_HOST + i % 2, key[i], NULL);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 8u);
    cr_expect_eq(pool_check(), 0);
}

static void start_with_free(uint64_t total, uint64_t free_bytes)
{
    fake_driver.total_bytes = total;
    fake_driver.free_bytes = free_bytes;
    /* The last look at the device is the one after this. */
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
}

/* As long as that is not critical. */
static void start_without_pressure(void)
{
    core_options()->pressure = (struct cw_levels){{98, 99, 100}};
    pool_start(CW_FREE_STRICT);
}

Test(keep_with, leaves_512_mib_free)
{
    uint64_t key;

    start_without_pressure();
    key = pool_get(4 * MIB);

    start_with_free(80 * GIB, 511 * MIB);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_FULL), 1u);
    key = pool_get(4 * MIB);
    start_with_free(80 * GIB, 513 * MIB);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
}

Test(keep_with, leaves_a_twentieth_of_a_small_device_free)
{
    uint64_t key;

    start_without_pressure();
    key = pool_get(4 * MIB);

    start_with_free(2 * GIB, 102 * MIB);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    key = pool_get(4 * MIB);
    start_with_free(2 * GIB, 103 * MIB);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
}

Test(keep, what_was_taken_since_the_last_look_counts_as_used)
{
    uint64_t key = pool_get(4 * MIB);

    start_with_free(80 * GIB, 600 * MIB);
    pool_get(100 * MIB);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
}

/* ---- what lies idle for long ---- */

Test(keep, blocks_above_64_mib_leave_after_their_time)
{
    uint64_t large = pool_get(100 * MIB), small = pool_get(64 * MIB), other = pool_get(8 * MIB);

    pool_get(100 * MIB); /* and stays live */
    pool_put(large);
    pool_put(small);
    fake_driver.now_ns += 9000 * FAKE_MS;
    pool_put(other);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 3u);
    fake_driver.now_ns += 2300 * FAKE_MS;
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 2u);
    cr_expect_eq(pool_counters(0)->trimmed_idle, 1u);
    cr_expect_eq(fake_give(large), -1);
    cr_expect_eq(pool_check(), 0);
}

Test(keep, their_time_begins_with_each_free)
{
    uint64_t large = pool_get(100 * MIB);

    pool_get(200 * MIB); /* and stays live */
    for (int i = 0; i < 5; i++) {
        pool_put(large);
        fake_driver.now_ns += 6000 * FAKE_MS;
        pool_sync(FIRST_CONTEXT);
        cr_assert_eq(serves(100 * MIB), 1);
    }
}

/* ---- out of memory ---- */

Test(keep, a_reclaim_gives_back_what_is_ready)
{
    churn(4, 4 * KIB);
    churn(2, 100 * MIB);
    cr_expect_eq(pool_reclaim(0), 200 * MIB + 4 * 4 * KIB);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
    cr_expect_eq(fake_taken(), 0u);
    cr_expect_eq(pool_counters(0)->trimmed_oom, 6u);
    cr_expect_eq(core_held(0), 0u);
    cr_expect_eq(pool_reclaim(0), 0u);
    cr_expect_eq(pool_check(), 0);
}

Test(keep, a_reclaim_leaves_other_devices_alone)
{
    churn(1, 100 * MIB);
    cr_expect_eq(pool_reclaim(1), 0u);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
}

static void free_in_thread(unsigned id)
{
    fake_set_current(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    pool_put(pool_get((id + 1) * 4 * KIB));
}

Test(keep_with, a_reclaim_gives_back_what_is_pending_in_all_threads)
{
    pool_start(CW_FREE_DEFERRED);
    pool_context(1, 1);
    fake_submit(SECOND_CONTEXT);
    run_threads(2, free_in_thread);
    free_in_thread(2);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 3u);
    cr_expect_eq(pool_reclaim(0), 24 * KIB);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
    cr_expect_eq(pool_check(), 0);
}

Test(keep_with, a_reclaim_gives_back_what_is_pending_too)
{
    pool_start(CW_FREE_DEFERRED);
    free_in_thread(0);
    pool_sync(FIRST_CONTEXT);
    free_in_thread(1);
    cr_expect_eq(pool_reclaim(0), 12 * KIB);
    cr_expect_eq(pool_check(), 0);
}
