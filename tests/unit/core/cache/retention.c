/* SPDX-License-Identifier: MIT */
/* What the pool keeps at most, how long, and what it gives back when memory is short. */
#include "core/device/device.h"
#include "core/cache/retention.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "core/process/session.h"
#include "pool_fixture.h"

TestSuite(keep, .init = pool_setup);
/* Takes `count` blocks and frees them all: how many the pool still has. */
static uint64_t churn(unsigned count, uint64_t bytes)
{
    pool_churn(count, bytes);
    return pool_count(CW_BLOCK_IDLE);
}

/* ---- limits ---- */

static void start_with_bucket_max(uint64_t blocks)
{
    core_options()->pool_bucket_max = blocks;
    pool_start(CW_FREE_STRICT);
}

/* Demand says what is kept (core/limits/demand.h): all of it was live a moment ago. */
PoolTest(keep, any_number_of_blocks_that_were_just_needed_stays)
{
    cr_expect_eq(churn(300, 2 * MIB), 300u);
}

PoolTest(keep_with, bucket_max_says_how_many_blocks)
{
    start_with_bucket_max(3);
    cr_expect_eq(churn(5, 100 * MIB), 3u);
}

PoolTest(keep_with, with_a_bucket_max_64_mib_are_kept_in_any_case)
{
    start_with_bucket_max(8);
    cr_expect_eq(churn(50, 2 * MIB), 32u);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_FULL].blocks, 18u);
}

PoolTest(keep_with, with_bucket_max_0_nothing_is_kept)
{
    start_with_bucket_max(0);
    cr_expect_eq(churn(5, 100 * MIB), 0u);
    cr_expect_eq(churn(5, 4 * KIB), 0u);
    cr_expect_eq(pool_bypassed(CW_BYPASS_FULL), 10u);
}

/* A thread keeps a few of them besides. */
PoolTest(keep_with, small_blocks_beyond_bucket_max_go_back_when_they_leave_the_thread)
{
    start_with_bucket_max(1);
    churn(600, 512 * KIB);
    cr_expect_leq(pool_sums().idle_bytes, 64 * MIB + 5 * 512 * KIB);
}

PoolTest(keep_with, blocks_that_became_ready_late_are_counted_too)
{
    core_options()->pool_bucket_max = 1;
    pool_start(CW_FREE_DEFERRED);
    churn(40, 8 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_leq(pool_sums().idle_bytes, 64 * MIB);
}

static void start_with_most(const char *most)
{
    cr_assert_eq(cw_sizes_parse(most, 0, &core_options()->pool_max), 0);
    pool_start(CW_FREE_STRICT);
}

PoolTest(keep_with, max_in_bytes_limits_a_device)
{
    start_with_most("256M");
    cr_expect_eq(churn(5, 100 * MIB), 2u);
}

PoolTest(keep_with, max_as_a_share_limits_a_device)
{
    start_with_most("0.5%"); /* of 80 GiB */
    cr_expect_eq(churn(6, 100 * MIB), 4u);
}

PoolTest(keep, pinned_memory_has_a_limit_of_its_own)
{
    uint64_t key[16];

    for (unsigned i = 0; i < 16; i++)
        key[i] = pool_alloc(CW_POOL_HOST + i % 2, 128 * MIB, NULL);
    for (unsigned i = 0; i < 16; i++)
        pool_free(CW_POOL_HOST + i % 2, key[i], NULL);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 8u);
}

static void start_with_free(uint64_t total, uint64_t free_bytes)
{
    fake_driver.total_bytes = total;
    fake_driver.free_bytes = free_bytes;
    /* The last look at the device is the one after this. */
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
}

/* At no level. */
static void start_without_pressure(void)
{
    core_options()->pressure = (struct cw_levels){{101, 101, 101}};
    pool_start(CW_FREE_STRICT);
}

/* The free itself has succeeded either way. */
static int stays_when_freed(uint64_t key)
{
    uint64_t before = pool_count(CW_BLOCK_IDLE);

    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    return pool_count(CW_BLOCK_IDLE) == before + 1;
}

PoolTest(keep_with, leaves_512_mib_free)
{
    uint64_t key[2];

    start_without_pressure();
    key[0] = pool_get(4 * MIB);
    key[1] = pool_get(4 * MIB);
    start_with_free(80 * GIB, 511 * MIB);
    cr_expect_not(stays_when_freed(key[0]));
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_FULL].blocks, 1u);
    start_with_free(80 * GIB, 513 * MIB);
    cr_expect(stays_when_freed(key[1]));
}

PoolTest(keep_with, leaves_a_twentieth_of_a_small_device_free)
{
    uint64_t key[2];

    start_without_pressure();
    key[0] = pool_get(4 * MIB);
    key[1] = pool_get(4 * MIB);
    start_with_free(2 * GIB, 102 * MIB);
    cr_expect_not(stays_when_freed(key[0]));
    start_with_free(2 * GIB, 103 * MIB);
    cr_expect(stays_when_freed(key[1]));
}

PoolTest(keep, what_was_taken_since_the_last_look_counts_as_used)
{
    uint64_t key = pool_get(4 * MIB);

    start_with_free(80 * GIB, 600 * MIB);
    pool_get(100 * MIB);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
}

/* ---- while a request looks for memory ---- */

PoolTest(keep, what_is_freed_while_a_request_looks_for_memory_goes_to_the_driver)
{
    uint64_t key[3];

    for (int i = 0; i < 3; i++)
        key[i] = pool_get(4 * MIB);
    cw_retention_want(0);
    cw_retention_want(0);
    cr_expect_eq(pool_put(key[0]), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_WANTED), 1u);
    cw_retention_unwant(0);
    cr_expect_eq(pool_put(key[1]), CW_POOL_DRIVER); /* the other one still does */
    cr_expect_eq(pool_bypassed(CW_BYPASS_WANTED), 2u);
    cw_retention_unwant(0);
    cr_expect_eq(pool_put(key[2]), CW_POOL_KEPT);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
}

PoolTest(keep, what_another_device_wants_is_no_reason)
{
    uint64_t key = pool_get(4 * MIB);

    cw_retention_want(1);
    cw_retention_want(CW_DEVICE_HOST);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
}

/* The free has been let in, and waits for the device meanwhile. */
static void want_inside(enum fake_call call)
{
    if (call == FAKE_CONTEXT_POLL && !cw_retention_is_wanted(0))
        cw_retention_want(0);
}

PoolTest(keep, a_free_that_was_under_way_gives_its_block_back_too)
{
    uint64_t key = pool_get(4 * MIB);

    fake_driver.inside = want_inside;
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
    cr_expect_eq(fake_taken(), 0u);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_OOM].blocks, 1u);
}

/* ---- out of memory ---- */

PoolTest(keep, a_reclaim_gives_back_what_is_ready)
{
    churn(4, 4 * KIB);
    churn(2, 100 * MIB);
    cr_expect_eq(pool_reclaim(0), 200 * MIB + 4 * 4 * KIB);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
    cr_expect_eq(fake_taken(), 0u);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_OOM].blocks, 6u);
    cr_expect_eq(core_held(0), 0u);
    cr_expect_eq(pool_reclaim(0), 0u);
}

PoolTest(keep, a_reclaim_leaves_other_devices_alone)
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

PoolTest(keep_with, a_reclaim_gives_back_what_is_pending_in_all_threads)
{
    pool_start(CW_FREE_DEFERRED);
    pooled_context(1, 1);
    fake_submit(SECOND_CONTEXT);
    run_threads(2, free_in_thread);
    free_in_thread(2);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 3u);
    cr_expect_eq(pool_reclaim(0), 24 * KIB);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
}

PoolTest(keep_with, a_reclaim_gives_back_what_is_pending_too)
{
    pool_start(CW_FREE_DEFERRED);
    free_in_thread(0);
    pool_sync(FIRST_CONTEXT);
    free_in_thread(1);
    cr_expect_eq(pool_reclaim(0), 12 * KIB);
}

/* ---- a device that is not known yet ---- */

static pthread_t second;
static _Atomic int second_is_done;

static void *churn_in_second_thread(void *arg)
{
    (void)arg;
    fake_set_current(FIRST_CONTEXT);
    pool_churn(100, 4 * KIB);
    second_is_done = 1;
    return NULL;
}

static uint64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The thread that asks how large the device is loses the processor. */
static void answer_late(enum fake_call call)
{
    uint64_t begun = clock_ms();

    if (call != FAKE_DEVICE_FACTS)
        return;
    fake_driver.inside = NULL;
    cr_assert_eq(pthread_create(&second, NULL, churn_in_second_thread, NULL), 0);
    while (!second_is_done && clock_ms() < begun + 50)
        sched_yield();
}

PoolTest(keep, what_other_threads_free_while_one_asks_how_large_the_device_is)
{
    fake_driver.inside = answer_late;
    pool_churn(1, 4 * KIB);
    pthread_join(second, NULL);
    cr_expect_eq(second_is_done, 1);
    cr_expect_eq(pool_counters(0)->released[CW_RELEASE_FULL].blocks, 0u);
    cr_expect_eq(pool_bypassed(CW_BYPASS_FULL), 0u);
}
