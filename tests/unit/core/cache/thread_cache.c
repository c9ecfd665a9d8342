/* SPDX-License-Identifier: MIT */
/* What a thread keeps to itself, what it was granted for that, and how others get at it. */
#include "core/cache/thread_cache.h"

#include <criterion/criterion.h>

#include <sched.h>

#include "core/control/lifecycle.h"
#include "core/device/device.h"
#include "core/cache/retention.h"
#include "core/cache/pool_context.h"
#include "core/pending/lane.h"
#include "core/pending/waiting.h"
#include "core/process/slot.h"
#include "core/account/tracker.h"
#include "pool_fixture.h"

static struct cw_pool_context *pool_context;
static struct cw_pool *pool;

static void setup(void)
{
    pool_start(CW_FREE_STRICT);
    pool_context = cw_pool_context_of(pool_index(FIRST_CONTEXT));
    pool = cw_pool_context_pool(pool_context, CW_POOL_DEVICE);
    cw_device_describe(0); /* its size says how much may be kept */
}

TestSuite(thread_cache, .init = setup);

static int put(struct cw_pool *in, uint64_t held, uint32_t *out_spill)
{
    return cw_thread_cache_put(in, pool_idle_block(in, held), out_spill);
}

static int keeps(uint64_t held)
{
    uint32_t spill;

    return put(pool, held, &spill);
}

static uint32_t take(uint64_t bytes)
{
    return cw_thread_cache_take(pool, (struct cw_size_fit){.bytes = bytes});
}

/* How many blocks of this size go in before the first does not or makes others leave. */
static unsigned room_for(uint64_t held)
{
    unsigned count = 0;
    uint32_t spill = 0;

    while (put(pool, held, &spill) && spill == 0)
        count++;
    return count;
}

/* All of it granted to threads: nothing lies elsewhere. */
static uint64_t granted(void)
{
    return cw_retention_counted(0);
}

/* ---- which block ---- */

Test(thread_cache, gives_the_newest_block_of_the_class)
{
    uint32_t first = pool_idle_block(pool, 1 * KIB), second = pool_idle_block(pool, 1 * KIB), spill;

    cr_expect_eq(cw_thread_cache_put(pool, first, &spill), 1);
    cr_expect_eq(cw_thread_cache_put(pool, second, &spill), 1);
    cr_expect_eq(take(2 * KIB), 0u);
    cr_expect_eq(take(512), 0u);
    cr_expect_eq(take(1000), second);
    cr_expect_eq(take(1 * KIB), first);
    cr_expect_eq(take(1 * KIB), 0u);
    cr_expect_eq(pool_sums().hits, 2u);
    cr_expect_eq(pool_sums().idle_blocks, 0u);
    cr_expect_eq(pool_sums().idle_bytes, 0u);
}

Test(thread_cache, gives_a_larger_block_for_the_excess_that_may_be_had)
{
    cr_assert(keeps(3 * KIB));
    cr_expect_eq(cw_thread_cache_take(pool, (struct cw_size_fit){2 * KIB, 1 * KIB - 1}), 0u);
    cr_expect_neq(cw_thread_cache_take(pool, (struct cw_size_fit){2 * KIB, 1 * KIB}), 0u);
}

Test(thread_cache, has_a_bin_for_each_size_class)
{
    cr_expect_eq(cw_size_bin(511), CW_BIN_NONE);
    for (unsigned c = 0; c < CW_BINS; c++) {
        cr_expect_eq(cw_size_bin(cw_size_class_bytes(c)), c);
        cr_expect_eq(cw_size_bin(cw_size_class_bytes(c + 1) - 1), c);
    }
    cr_expect_eq(cw_size_bin(cw_size_class_bytes(CW_BINS)), CW_BIN_NONE);
    cr_expect_eq(cw_size_bin(CW_SIZE_MOST), CW_BIN_NONE);
    cr_expect_eq(cw_size_bin(UINT64_MAX), CW_BIN_NONE);
}

/* ---- how much ---- */

Test(thread_cache, keeps_16_blocks_of_a_size)
{
    cr_expect_eq(room_for(4 * KIB), 16u);
}

Test(thread_cache, keeps_a_megabyte_of_a_size)
{
    cr_expect_eq(room_for(128 * KIB), 8u);
}

Test(thread_cache, keeps_four_blocks_of_any_size)
{
    cr_expect_eq(room_for(1 * MIB), 4u);
    cr_expect_eq(room_for(100 * MIB), 4u);
}

Test(thread_cache, what_makes_room_is_the_newer_half)
{
    uint32_t spill = 0, last = 0, list;
    int has_last = 0;

    for (int i = 0; i < 16; i++) {
        last = pool_idle_block(pool, 4 * KIB);
        cr_assert_eq(cw_thread_cache_put(pool, last, &spill), 1);
    }
    cr_assert_eq(put(pool, 4 * KIB, &list), 1);
    cr_expect_eq(pool_list_length(list), 8u);
    for (uint32_t at = list; at != 0; at = cw_tracker_next(at))
        has_last |= at == last;
    cr_expect(has_last);
    for (int i = 0; i < 9; i++)
        cr_expect_neq(take(4 * KIB), 0u);
    cr_expect_eq(take(4 * KIB), 0u);
}

/* ---- grants ---- */

Test(thread_cache, keeps_no_more_than_it_is_granted)
{
    uint64_t bytes = 0;

    cw_retention_set_most(0, 1 * MIB);
    for (uint64_t held = 32 * KIB; keeps(held) && bytes < 2 * MIB; held += 4 * KIB)
        bytes += held;
    cr_expect_leq(bytes, 1 * MIB);
    cr_expect_gt(bytes, 1 * MIB - 256 * KIB);
    cr_expect_leq(granted(), 1 * MIB);
    cr_expect_eq(keeps(2 * MIB), 0);
}

Test(thread_cache, granted_nothing_keeps_nothing)
{
    cw_retention_set_most(0, 0);
    cr_expect_eq(keeps(512), 0);
    cr_expect_eq(granted(), 0u);
}

Test(thread_cache, gives_up_with_its_blocks_what_it_was_granted)
{
    cr_assert(keeps(4 * KIB) && keeps(8 * KIB) && keeps(16 * MIB));
    cr_expect_geq(granted(), 16 * MIB + 12 * KIB);
    cr_expect_eq(pool_list_length(cw_thread_cache_seize(pool, cw_size_class_up(16 * MIB))), 1u);
    cr_expect_lt(granted(), 1 * MIB);
    cr_expect_eq(pool_list_length(cw_thread_cache_seize(pool, CW_SIZE_CLASSES)), 2u);
    cr_expect_eq(granted(), 0u);
}

Test(thread_cache, what_made_room_took_its_grant_along)
{
    uint32_t spill = 0;

    for (int i = 0; i < 5; i++)
        cr_assert(put(pool, 16 * MIB, &spill));
    cr_expect_eq(pool_list_length(spill), 2u);
    cr_expect_eq(granted(), 48 * MIB);
}

Test(thread_cache, a_sweep_takes_back_what_is_granted_and_not_used)
{
    cr_assert(keeps(4 * KIB));
    cr_expect_gt(granted(), 4 * KIB);
    cr_expect_eq(cw_thread_cache_sweep(), 0u);
    cr_expect_eq(granted(), 4 * KIB);
    cr_assert_neq(take(4 * KIB), 0u);
    cr_expect_eq(granted(), 4 * KIB); /* it will be wanted again */
    cw_thread_cache_sweep();
    cr_expect_eq(granted(), 0u);
}

static uint32_t of_thread[2];

static void keep_and_end(unsigned id)
{
    of_thread[id] = (uint32_t)keeps((id + 1) * 4 * KIB);
}

/* What it kept is for all. */
Test(thread_cache, the_end_of_a_thread_gives_its_grant_back)
{
    run_threads(2, keep_and_end);
    cr_assert(of_thread[0] && of_thread[1]);
    cr_expect_eq(cw_bucket_idle(0), 12 * KIB);
    cr_expect_eq(cw_retention_counted(0), 12 * KIB);
}

Test(thread_cache, the_end_of_a_context_gives_its_grant_back)
{
    cr_assert(keeps(4 * KIB) && keeps(16 * MIB));
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(granted(), 0u);
    cr_expect_eq(take(4 * KIB), 0u);
}

/* ---- when nothing goes ---- */

Test(thread_cache, of_a_pool_context_that_is_not_open_takes_nothing)
{
    pool_context->state = CW_POOL_CONTEXT_CLOSING;
    cr_expect_eq(keeps(512), 0);
    cr_expect_neq(cw_thread_cache_refill(pool, pool_idle_block(pool, 512)), 0u);
    pool_context->state = CW_POOL_CONTEXT_OPEN;
    cr_expect_eq(keeps(512), 1);
}

Test(thread_cache, of_a_thread_without_a_slot_is_none)
{
    cw_lifecycle_thread_ends(); /* takes the slot away */
    cr_expect_eq(keeps(512), 0);
    cr_expect_eq(take(512), 0u);
    cr_expect_eq(cw_thread_cache_empty(), 0u);
}

Test(thread_cache, of_a_stopped_thread_is_left_alone)
{
    uint64_t mask = (uint64_t)1 << cw_thread_slot();

    cr_assert_eq(keeps(512), 1);
    cw_slot_stop(mask);
    cr_expect_eq(take(512), 0u);
    cw_slot_resume(mask);
    cr_expect_neq(take(512), 0u);
}

Test(thread_cache, is_refilled_up_to_its_limit)
{
    uint32_t list = 0, rest;

    for (int i = 0; i < 20; i++) {
        uint32_t block = pool_idle_block(pool, 4 * KIB);

        cw_tracker_at(block)->link = list;
        list = block;
    }
    rest = cw_thread_cache_refill(pool, list);
    cr_expect_geq(pool_list_length(rest), 3u); /* and what made room for the last of them */
    for (int i = 0; i < 9; i++)
        cr_expect_neq(take(4 * KIB), 0u);
}

/* Sets are found by the pool's number: the ninth has the place of the first. */
static struct cw_pool *make_eight_more(void)
{
    struct cw_pool *other = NULL;

    for (unsigned i = 0; i < 8; i++) {
        cw_context_created(0xd0 + i, 0);
        other = cw_pool_context_pool(cw_pool_context_of(pool_index(0xd0 + i)), CW_POOL_DEVICE);
    }
    return other;
}

Test(thread_cache, pools_that_meet_in_a_place_do_not_mix)
{
    struct cw_pool *other;
    uint32_t spill;

    cr_assert_eq(put(pool, 512, &spill), 1);
    other = make_eight_more();
    cr_assert_eq(other->id % 8, pool->id % 8);
    cr_expect_eq(put(other, 512, &spill), 0);
    cr_expect_eq(cw_thread_cache_take(other, (struct cw_size_fit){.bytes = 512}), 0u);
    cr_expect_neq(take(512), 0u);
}

Test(thread_cache, a_closed_pool_gives_its_place_to_the_next)
{
    struct cw_pool *other;
    uint32_t spill;

    cr_assert_eq(put(pool, 512, &spill), 1);
    other = make_eight_more();
    pool_context->state = CW_POOL_CONTEXT_CLOSING;
    cr_expect_eq(pool_list_length(cw_thread_cache_seize(pool, CW_SIZE_CLASSES)), 1u);
    cr_expect_eq(put(other, 512, &spill), 1);
    cr_expect_neq(cw_thread_cache_take(other, (struct cw_size_fit){.bytes = 512}), 0u);
}

/* ---- other threads ---- */

static _Atomic int filled, may_end;
static uint32_t seized_size, seized_pool;

static void fill_or_seize(unsigned id)
{
    if (id == 0) {
        for (int i = 0; i < 3; i++)
            cr_assert(keeps(4 * KIB) && keeps(8 * KIB));
        filled = 1;
        while (!may_end)
            sched_yield();
        return;
    }
    while (!filled)
        sched_yield();
    cr_expect_eq(take(4 * KIB), 0u); /* not ours */
    cr_expect(cw_thread_cache_has(pool, cw_size_class_up(4 * KIB)));
    seized_size = pool_list_length(cw_thread_cache_seize(pool, cw_size_class_up(4 * KIB)));
    cr_expect_not(cw_thread_cache_has(pool, cw_size_class_up(4 * KIB)));
    seized_pool = pool_list_length(cw_thread_cache_seize(pool, CW_SIZE_CLASSES));
    cr_expect_eq(cw_thread_cache_seize(pool, CW_SIZE_CLASSES), 0u);
    may_end = 1;
}

Test(thread_cache, others_seize_a_size_or_all_of_a_pool)
{
    run_threads(2, fill_or_seize);
    cr_expect_eq(seized_size, 3u);
    cr_expect_eq(seized_pool, 3u);
    cr_expect_eq(granted(), 0u);
}

Test(thread_cache, a_sweep_takes_what_went_unused_since_the_one_before)
{
    for (int i = 0; i < 5; i++)
        cr_assert(keeps(4 * KIB));
    cr_expect_eq(cw_thread_cache_sweep(), 0u); /* just come in */
    cr_assert_neq(take(4 * KIB), 0u);
    cr_assert_neq(take(4 * KIB), 0u);
    cr_assert(keeps(4 * KIB) && keeps(4 * KIB));
    cr_expect_eq(pool_list_length(cw_thread_cache_sweep()), 3u); /* two were needed */
    cr_expect_eq(pool_list_length(cw_thread_cache_sweep()), 2u);
    cr_expect_eq(cw_thread_cache_sweep(), 0u);
}

Test(thread_cache, the_end_of_a_thread_empties_it)
{
    cr_assert(keeps(512) && keeps(64 * KIB));
    cr_expect_eq(pool_list_length(cw_thread_cache_empty()), 2u);
    cr_expect_eq(cw_thread_cache_empty(), 0u);
    cr_expect_eq(granted(), 0u);
}

/* ---- contexts that come and go ---- */

static struct cw_pool *pool_of_new_context(uint64_t *out_handle)
{
    *out_handle = pooled_context(1, 0);
    fake_set_current(*out_handle);
    return cw_pool_context_pool(cw_pool_context_of(pool_index(*out_handle)), CW_POOL_DEVICE);
}

/* A thread had a batch in hand when the context ended, and only then gave it up. */
PoolTest(thread_cache, bins_of_an_ended_context_go_to_the_next_pool_in_their_place)
{
    uint64_t handle;
    struct cw_pool *old = pool_of_new_context(&handle), *next;
    struct cw_batch *batch;

    pool_free_with_work(64 * KIB);
    batch = cw_lane_detach_open(old->pool_context, 0);
    cr_assert_not_null(batch);
    pool_end_context(handle, CW_CONTEXT_DESTROYED);
    cr_assert_eq(cw_lane_keep(batch, 0), batch);
    cw_waiting_push(batch, 0);
    while ((next = pool_of_new_context(&handle))->id % 8 != old->id % 8)
        pool_end_context(handle, CW_CONTEXT_DESTROYED);
    cr_expect(cw_thread_cache_prepare(next, 5, 64 * KIB));
}
