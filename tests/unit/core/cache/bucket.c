/* SPDX-License-Identifier: MIT */
/* The shared buckets: which block serves which request, and what the records say. */
#include "core/cache/bucket.h"

#include <criterion/criterion.h>

#include "core/account/idle.h"
#include "core/cache/pool_context.h"
#include "core/account/tracker.h"
#include "pool_fixture.h"
#include "core_file.h"

static struct cw_pool *pool, *pitched;

static void setup(void)
{
    struct cw_pool_context *pool_context;

    pool_start(CW_FREE_STRICT);
    pool_context = cw_pool_context_of(pool_index(FIRST_CONTEXT));
    pool = cw_pool_context_pool(pool_context, CW_POOL_DEVICE);
    pitched = cw_pool_context_pool(pool_context, CW_POOL_PITCHED);
}

TestSuite(bucket, .init = setup);

static uint32_t put(struct cw_pool *in, uint64_t held)
{
    uint32_t block = pool_idle_block(in, held);

    cr_assert_eq(cw_bucket_put(in, block, 0), 1);
    return block;
}

/* With the excess that a request may have of blocks of its own class. */
static uint32_t take(struct cw_pool *in, uint64_t bytes)
{
    return cw_bucket_take(in,
                          (struct cw_size_fit){.bytes = bytes, .excess = cw_size_tolerance(bytes)});
}

Test(bucket, the_newest_block_serves_first)
{
    uint32_t old = put(pool, 4 * KIB), new = put(pool, 4 * KIB);

    cr_expect_eq(take(pool, 4000), new);
    cr_expect_eq(take(pool, 4096), old);
    cr_expect_eq(take(pool, 4096), 0u);
}

Test(bucket, a_request_takes_its_own_size_before_an_odd_one)
{
    uint32_t odd = put(pool, 4 * KIB + 100), own = put(pool, 4 * KIB + 512);

    cr_expect_eq(take(pool, 4 * KIB + 80), own);
    cr_expect_eq(take(pool, 4 * KIB + 80), odd);
}

Test(bucket, an_odd_block_serves_only_what_fits)
{
    put(pool, 4 * KIB + 100);
    cr_expect_eq(take(pool, 4 * KIB + 101), 0u);
    cr_expect_neq(take(pool, 4 * KIB + 100), 0u);
}

Test(bucket, a_rounded_request_may_take_the_next_size_within_an_eighth)
{
    put(pool, 72 * KIB);
    cr_expect_eq(take(pool, 63 * KIB), 0u); /* 72 is more than 63 and an eighth */
    cr_expect_neq(take(pool, 64 * KIB), 0u);
}

Test(bucket, without_excess_only_a_block_of_just_the_size_serves)
{
    struct cw_size_fit exact = {.bytes = 4 * KIB + 80, .excess = 0};
    uint32_t block;

    put(pool, 5 * KIB);
    cr_expect_eq(cw_bucket_take(pool, exact), 0u);
    block = put(pool, 4 * KIB + 100); /* the driver gives 512 bytes at a time */
    cr_expect_eq(cw_bucket_take(pool, exact), block);
}

Test(bucket, of_a_class_the_smallest_that_fits_serves)
{
    uint32_t large = put(pool, 94 * MIB), small = put(pool, 90 * MIB), medium = put(pool, 92 * MIB);

    cr_expect_eq(take(pool, 100 * MIB), 0u);
    cr_expect_eq(take(pool, 70 * MIB), 0u);
    cr_expect_eq(take(pool, 86 * MIB), small);
    cr_expect_eq(take(pool, 86 * MIB), medium);
    cr_expect_eq(take(pool, 86 * MIB), large);
    cr_expect_eq(take(pool, 86 * MIB), 0u);
}

/* They were asked for exactly, when excess was not to be had. */
Test(bucket, blocks_of_the_class_below_serve_after_those_of_the_requests_own)
{
    uint32_t below = put(pool, 82 * MIB), own = put(pool, 90 * MIB);

    cr_expect_eq(take(pool, 81 * MIB), own);
    cr_expect_eq(take(pool, 81 * MIB), below);
}

Test(bucket, a_request_with_more_excess_takes_from_larger_classes)
{
    struct cw_size_fit fit = {.bytes = 64 * MIB, .excess = 30 * MIB};
    uint32_t large = put(pool, 96 * MIB), small = put(pool, 80 * MIB);

    cr_expect_eq(cw_bucket_take(pool, fit), small);
    cr_expect_eq(cw_bucket_take(pool, fit), 0u);
    fit.excess = 32 * MIB;
    cr_expect_eq(cw_bucket_take(pool, fit), large);
}

Test(bucket, pitched_blocks_are_of_any_size)
{
    uint32_t block = put(pitched, 51300);

    cr_expect_eq(take(pitched, 51301), 0u);
    cr_expect_eq(take(pitched, 45000), 0u);
    cr_expect_eq(take(pool, 51300), 0u);
    cr_expect_eq(take(pitched, 51300), block);
}

/* Whatever is taken is large enough, and has no more excess than was said. */
Test(bucket, random_requests_get_what_is_legal)
{
    uint64_t state = 7;

    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = (next_random(&state) >> (36 + i % 27)) + 1, held;
        uint32_t block;

        if (i % 2 != 0) {
            put(pool, bytes < CW_SIZE_LEAST ? CW_SIZE_LEAST : bytes);
            continue;
        }
        block = take(pool, bytes);
        if (block == 0)
            continue;
        held = cw_tracker_at(block)->held;
        cr_assert(held >= bytes);
        cr_assert(cw_size_excess(held, bytes) <= cw_size_tolerance(bytes));
    }
}

Test(bucket, some_are_taken_at_once_and_are_no_hits)
{
    uint32_t count, list;

    for (int i = 0; i < 6; i++)
        put(pool, 1 * KIB);
    list = cw_bucket_take_some(pool, cw_size_class_up(1 * KIB), 4, &count);
    cr_expect_eq(count, 4u);
    cr_expect_eq(pool_list_length(list), 4u);
    list = cw_bucket_take_some(pool, cw_size_class_up(1 * KIB), 4, &count);
    cr_expect_eq(count, 2u);
    cr_expect_eq(pool_list_length(list), 2u);
    cr_expect_eq(cw_bucket_take_some(pool, cw_size_class_up(1 * KIB), 4, &count), 0u);
    cr_expect_eq(count, 0u);
    cr_expect_eq(pool_sums().hits, 0u);
    cr_expect_eq(pool_sums().idle_blocks, 6u);
}

Test(bucket, all_are_taken)
{
    put(pool, 1 * MIB);
    put(pool, 70 * MIB);
    put(pool, 70 * MIB);
    cr_expect_eq(pool_list_length(cw_bucket_take_all(pool)), 3u);
    cr_expect_eq(cw_bucket_idle(0), 0u);
    cr_expect_eq(cw_bucket_take_all(pool), 0u);
}

Test(bucket, the_oldest_are_taken_and_the_newest_stay)
{
    unsigned class = cw_size_class_up(1 * KIB);
    uint32_t block[5], list;

    for (int i = 0; i < 5; i++)
        block[i] = put(pool, 1 * KIB);
    list = cw_bucket_take_oldest(pool, class, 2);
    cr_expect_eq(pool_list_length(list), 2u);
    for (; list != 0; list = cw_tracker_next(list))
        cr_expect(list == block[0] || list == block[1]);
    for (int i = 4; i > 1; i--)
        cr_expect_eq(take(pool, 1 * KIB), block[i]);
    cr_expect_eq(cw_bucket_take_oldest(pool, class, 2), 0u);
}

Test(bucket, room_is_by_count_or_by_bytes)
{
    for (int i = 0; i < 8; i++)
        put(pool, 1 * MIB);
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 8, 0), 1); /* 9 MiB of 64 */
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 0, 0), 0);
    for (int i = 0; i < 56; i++)
        put(pool, 1 * MIB);
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 8, 0), 0);
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 65, 0), 1);
    put(pool, 80 * MIB);
    cr_expect_eq(cw_bucket_has_room(pool, 80 * MIB, 2, 0), 1);
    cr_expect_eq(cw_bucket_has_room(pool, 80 * MIB, 1, 0), 0);
}

Test(bucket, a_pool_context_that_is_not_open_takes_nothing)
{
    uint32_t block = pool_idle_block(pool, 4 * KIB);

    pool->pool_context->state = CW_POOL_CONTEXT_CLOSING;
    cr_expect_eq(cw_bucket_put(pool, block, 0), 0);
    pool->pool_context->state = CW_POOL_CONTEXT_OPEN;
    cr_expect_eq(cw_bucket_put(pool, block, 0), 1);
}

Test(bucket, records_count_what_happened)
{
    uint32_t block = put(pool, 4 * KIB), other = put(pool, 8 * KIB);
    struct pool_sums sums;

    cw_bucket_kept(pool, other); /* counted twice, as if it were two blocks */
    cr_expect_eq(take(pool, 4000), block);
    cw_bucket_miss(pool, 300, 512);
    cw_bucket_dropped(pool, other, 1);
    cw_bucket_dropped(pool, other, 0);
    sums = pool_sums();
    cr_expect_eq(sums.hits, 1u);
    cr_expect_eq(sums.misses, 1u);
    cr_expect_eq(sums.asked, 4300u);
    cr_expect_eq(sums.given, 4 * KIB + 512);
    cr_expect_eq(sums.kept, 1u);
    cr_expect_eq(sums.released, 1u);
    cr_expect_eq(sums.released_bytes, 8 * KIB);
    cr_expect_eq(sums.idle_blocks, 0u);
    cr_expect_eq(sums.idle_bytes, 0u);
}

Test(bucket, what_was_put_back_is_no_hit)
{
    uint32_t block = put(pool, 4 * KIB);

    cr_expect_eq(take(pool, 4000), block);
    cw_bucket_put_back(pool, block, 4000);
    cr_expect_eq(pool_sums().hits, 0u);
    cr_expect_eq(pool_sums().asked, 0u);
    cr_expect_eq(pool_sums().given, 0u);
    cr_expect_eq(pool_sums().idle_blocks, 1u);
    cr_expect_eq(pool_sums().idle_bytes, 4 * KIB);
}

Test(bucket, idle_bytes_are_by_device)
{
    put(pool, 4 * KIB);
    put(pool, 70 * MIB);
    cr_expect_eq(cw_bucket_idle(0), 70 * MIB + 4 * KIB);
    cr_expect_eq(cw_bucket_idle(1), 0u);
    take(pool, 4 * KIB);
    cr_expect_eq(cw_bucket_idle(0), 70 * MIB);
}

/* ---- what nobody needs ---- */

#define CLASS cw_size_class_up(1 * KIB)

static void fill(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        put(pool, 1 * KIB);
}

static unsigned left_of(void)
{
    return cw_bucket_of(pool, CLASS)->count;
}

/* The sweep, and what follows from it. */
static void sweep(void)
{
    cw_bucket_sweep(pool, CLASS, 1);
    while (cw_bucket_take_doomed(pool, CLASS, 10) != 0)
        ;
}

/* Slowly at first and at the end, and nothing is left after so many sweeps. */
Test(bucket, what_nobody_needs_leaves_along_a_smooth_curve)
{
    unsigned before = 1000, gone[CW_BUCKET_AGES + 1];

    fill(1000);
    sweep(); /* they came after the one before: nothing is known of them yet */
    cr_expect_eq(left_of(), 1000u);
    for (unsigned i = 0; i < CW_BUCKET_AGES; i++) {
        sweep();
        gone[i] = before - left_of();
        before = left_of();
    }
    cr_expect_eq(left_of(), 0u);
    cr_expect_leq(gone[0], 50u);
    cr_expect_lt(gone[0], gone[1]);
    cr_expect_lt(gone[1], gone[2]);
    cr_expect_gt(gone[0] + gone[1] + gone[2] + gone[3], 100u);
    cr_expect_lt(gone[0] + gone[1] + gone[2] + gone[3], 600u);
}

Test(bucket, what_is_needed_once_in_a_sweep_stays)
{
    fill(100);
    for (unsigned i = 0; i < 50; i++) {
        uint32_t count, list = cw_bucket_take_some(pool, CLASS, 100, &count);

        cr_expect_eq(count, 100u);
        for (uint32_t next; list != 0; list = next) {
            next = cw_tracker_next(list);
            cw_bucket_put(pool, list, 0);
        }
        sweep();
    }
}

Test(bucket, what_is_needed_in_part_keeps_that_part)
{
    fill(100);
    for (unsigned i = 0; i < 20; i++) {
        uint32_t block[30];

        for (unsigned k = 0; k < 30; k++)
            cr_assert_neq(block[k] = take(pool, 1 * KIB), 0u);
        for (unsigned k = 0; k < 30; k++)
            cw_bucket_put(pool, block[k], 0);
        sweep();
    }
    cr_expect_eq(left_of(), 30u);
}

Test(bucket, no_more_of_the_doomed_are_taken_than_were_doomed)
{
    uint32_t doomed;

    fill(1000);
    for (unsigned i = 0; i < 4; i++)
        doomed = cw_bucket_sweep(pool, CLASS, 1);
    cr_assert_gt(doomed, 20u);
    cr_expect_eq(pool_list_length(cw_bucket_take_doomed(pool, CLASS, 7)), 7u);
    cr_expect_eq(pool_list_length(cw_bucket_take_doomed(pool, CLASS, UINT32_MAX)), doomed - 7);
    cr_expect_eq(cw_bucket_take_doomed(pool, CLASS, UINT32_MAX), 0u);
}

/* ---- the end of a pool ---- */

static struct cw_pool *next_pool(void)
{
    return cw_bucket_make_pool(pool->pool_context, CW_POOL_DEVICE, 0);
}

/* What lay in it, and is no more. */
static void retire(void)
{
    pool->pool_context->state = CW_POOL_CONTEXT_DEAD;
    cw_pool_context_forget(pool->pool_context, cw_bucket_retire(pool));
}

Test(bucket, those_of_an_ended_pool_serve_the_next_as_new)
{
    struct cw_bucket *bucket = cw_bucket_of(pool, CLASS);
    struct cw_pool *next;

    fill(3);
    cw_bucket_add_pending(pool, CLASS, 2);
    cw_bucket_sweep(pool, CLASS, 2);
    retire();
    cr_expect_eq(cw_bucket_idle(0), 0u);
    cr_expect_null(cw_bucket_of(pool, CLASS));
    next = next_pool();
    cr_assert_eq(cw_bucket_of(next, CLASS), bucket);
    cr_expect_eq(bucket->head | bucket->count | bucket->bytes | bucket->low, 0u);
    cr_expect_eq(bucket->pending | bucket->doomed | bucket->stamp | bucket->unused[0], 0u);
    cr_expect_eq(pool_sums().idle_blocks, 0u);
}

Test(bucket, the_next_pool_of_the_same_kind_counts_in_the_same_records)
{
    uint32_t records;

    cw_bucket_miss(pool, 1000, 1024);
    records = core_count(CW_TABLE_BUCKET);
    retire();
    cw_bucket_miss(next_pool(), 1000, 1024);
    cr_expect_eq(core_count(CW_TABLE_BUCKET), records);
    cr_expect_eq(pool_sums().misses, 2u);
    cw_bucket_miss(cw_bucket_make_pool(pool->pool_context, CW_POOL_PITCHED, 0), 1000, 1024);
    cw_bucket_miss(cw_bucket_make_pool(pool->pool_context, CW_POOL_DEVICE, 1), 1000, 1024);
    cr_expect_eq(core_count(CW_TABLE_BUCKET), records + 2);
}

/* A thread that has come by the pool before its context ended. */
Test(bucket, whoever_comes_late_finds_nothing_of_the_next_pool)
{
    struct cw_pool *next, *late = pool;
    uint32_t block, count;

    retire();
    next = next_pool();
    next->pool_context = cw_pool_context_of(pool_index(pooled_context(1, 0)));
    block = put(next, 1 * KIB);
    cr_expect_eq(take(late, 1 * KIB), 0u);
    cr_expect_eq(cw_bucket_take_least(late, CLASS, 1), 0u);
    cr_expect_eq(cw_bucket_take_some(late, CLASS, 10, &count), 0u);
    cr_expect_eq(cw_bucket_take_oldest(late, CLASS, 10), 0u);
    cr_expect_eq(cw_bucket_take_all(late), 0u);
    cr_expect_eq(cw_bucket_retire(late), 0u);
    cw_bucket_add_pending(late, CLASS, 1);
    cr_expect_eq(cw_bucket_pending(late, CLASS) + cw_bucket_pending(next, CLASS), 0u);
    cr_expect_eq(take(next, 1 * KIB), block);
}

Test(bucket, a_block_that_comes_late_stays_outside_and_is_counted)
{
    uint32_t block = pool_idle_block(pool, 1 * KIB);
    struct pool_sums before = pool_sums();

    retire();
    cr_expect_eq(cw_bucket_put(pool, block, 1), 0);
    cr_expect_eq(pool_sums().kept, before.kept + 1);
    cr_expect_eq(pool_sums().idle_blocks, before.idle_blocks + 1);
    cw_bucket_dropped(pool, block, 0);
    cr_expect_eq(pool_sums().idle_blocks, before.idle_blocks);
    cr_expect_eq(pool_sums().released, 0u);
}

Test(bucket, a_dead_context_gets_no_pool)
{
    pool->pool_context->state = CW_POOL_CONTEXT_DEAD;
    cr_expect_null(cw_pool_context_pool(pool->pool_context, CW_POOL_HOST));
}

/* ---- on a live file ---- */

Test(bucket_file, what_others_write_into_the_records_is_not_idle, .fini = core_remove_file)
{
    uint64_t idle, most;

    core_on_file();
    setup();
    put(pool, 4 * KIB);
    put(pool, 8 * KIB);
    idle = cw_idle_bytes(0);
    most = cw_idle_most(0);
    core_scribble(CW_TABLE_BUCKET, 0xff);
    cr_expect_eq(cw_idle_bytes(0), idle);
    cr_expect_eq(cw_idle_most(0), most);
    core_scribble(CW_TABLE_BUCKET, 0);
    cr_expect_neq(take(pool, 4 * KIB), 0u);
    cr_expect_eq(cw_idle_bytes(0), idle - 4 * KIB);
}
