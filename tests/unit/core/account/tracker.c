/* SPDX-License-Identifier: MIT */
/* Live blocks and the sums over them, case by case; tracker_model.c does the masses. */
#include "base/round.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"

#include <criterion/criterion.h>

#include "core/account/site.h"
#include "core/process/thread.h"
#include "fake_driver.h"

TestSuite(tracker, .init = core_start);

static void drop(uint64_t key, enum cw_free_result result)
{
    uint32_t block = cw_tracker_take(CW_SPACE_ADDRESS, key);

    cr_assert_neq(block, 0u);
    cw_tracker_finish(block, result);
}

static void expect_live(uint32_t site, uint64_t blocks, uint64_t bytes)
{
    struct cw_site_sums sums = core_sums(site);

    cr_expect_eq(sums.live_blocks, blocks, "%llu blocks", (unsigned long long)sums.live_blocks);
    cr_expect_eq(sums.live_bytes, bytes, "%llu bytes", (unsigned long long)sums.live_bytes);
}

static void expect_at_peak(uint32_t site, uint64_t blocks, uint64_t bytes)
{
    struct cw_view view;
    uint64_t at_blocks, at_bytes;

    cw_arena_view(core_arena, &view);
    cw_view_site_at_peak(&view, cw_site_at(site), &at_blocks, &at_bytes);
    cr_expect_eq(at_blocks, blocks, "%llu blocks at peak", (unsigned long long)at_blocks);
    cr_expect_eq(at_bytes, bytes, "%llu bytes at peak", (unsigned long long)at_bytes);
}

CoreTest(tracker, an_inserted_block_is_live_until_taken_and_finished)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0), block = core_put(site, 0x1000, 64);

    cr_assert_neq(block, 0u);
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), block);
    cr_expect_eq(cw_tracker_at(block)->state, (uint32_t)CW_BLOCK_LIVE);
    cr_expect_eq(cw_tracker_at(block)->born_ns, 10u);
    cr_expect_eq(cw_tracker_at(block)->tid, cw_thread_tid());
    expect_live(site, 1, 64);
    cr_expect_eq(core_live(0), 64u);

    cr_expect_eq(cw_tracker_take(CW_SPACE_ADDRESS, 0x1000), block);
    cr_expect_eq(cw_tracker_at(block)->state, (uint32_t)CW_BLOCK_LEAVING);
    cr_expect_eq(cw_tracker_take(CW_SPACE_ADDRESS, 0x1000), 0u);
    expect_live(site, 1, 64);

    cw_tracker_finish(block, CW_FREE_DONE);
    cr_expect_eq(cw_tracker_at(block)->state, (uint32_t)CW_BLOCK_FREE);
    expect_live(site, 0, 0);
    cr_expect_eq(core_sums(site).frees, 1u);
    cr_expect_eq(core_live(0), 0u);
    cr_expect_eq(core_header()->device[0].peak_bytes, 64u);
}

CoreTest(tracker, a_refused_free_puts_the_block_back)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0), block = core_put(site, 0x1000, 64);

    drop(0x1000, CW_FREE_REFUSED);
    cr_expect_eq(cw_tracker_at(block)->state, (uint32_t)CW_BLOCK_LIVE);
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), block);
    expect_live(site, 1, 64);
    cr_expect_eq(core_sums(site).frees, 0u);
    drop(0x1000, CW_FREE_DONE);
    expect_live(site, 0, 0);
}

CoreTest(tracker, reclaimed_blocks_are_told_from_freed_ones)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0x1000, 64);
    core_put(site, 0x2000, 32);
    drop(0x1000, CW_FREE_RECLAIMED);
    cr_expect_eq(core_sums(site).reclaimed, 1u);
    cr_expect_eq(core_sums(site).reclaimed_bytes, 64u);
    cr_expect_eq(core_sums(site).frees, 0u);
    expect_live(site, 1, 32);
}

CoreTest(tracker, a_key_that_comes_again_closes_the_old_block_as_freed)
{
    uint32_t one = core_site("a", CW_KIND_DEVICE, 0), two = core_site("b", CW_KIND_DEVICE, 0);
    uint32_t block;

    core_put(one, 0x1000, 64);
    block = core_put(two, 0x1000, 16);
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), block);
    expect_live(one, 0, 0);
    cr_expect_eq(core_sums(one).frees, 1u);
    expect_live(two, 1, 16);
    cr_expect_eq(core_live(0), 16u);
}

CoreTest(tracker, a_key_that_comes_again_raises_no_peak)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0x1000, 64);
    core_put(site, 0x1000, 64);
    cr_expect_eq(core_header()->device[0].peak_bytes, 64u);
    cr_expect_eq(core_sums(site).peak_blocks, 1u);
}

CoreTest(tracker, what_the_driver_took_beyond_is_counted_apart)
{
    uint32_t site = core_site("a", CW_KIND_MIPMAP, 1);
    struct cw_request request = core_request(CW_KIND_MIPMAP, 1, 0x1000, 100);

    request.held = 160;
    cw_tracker_insert(&request, site, 10);
    expect_live(site, 1, 100);
    cr_expect_eq(core_sums(site).live_held, 160u);
    cr_expect_eq(core_live(1), 100u);
    cr_expect_eq(core_held(1), 160u);
    drop(0x1000, CW_FREE_DONE);
    cr_expect_eq(core_sums(site).live_held, 0u);
    cr_expect_eq(core_held(1), 0u);
}

CoreTest(tracker, kinds_that_are_not_counted_are_in_no_sum)
{
    uint32_t ipc = core_site("a", CW_KIND_IPC, 0),
             host = core_site("b", CW_KIND_PINNED, CW_DEVICE_HOST);

    core_put(ipc, 0x1000, 64);
    core_put(host, 0x2000, 8);
    expect_live(ipc, 1, 64);
    cr_expect_eq(core_live(0), 0u);
    cr_expect_eq(core_header()->device[0].peak_bytes, 0u);
    cr_expect_eq(core_live(CW_DEVICE_HOST), 8u);
    cr_expect_eq(core_live_total(), 8u);
    cr_expect_eq(core_check(), 0);
    drop(0x1000, CW_FREE_DONE);
    expect_live(ipc, 0, 0);
}

CoreTest(tracker, failures_are_counted_with_their_site)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    cw_tracker_fail(site, 0);
    cw_tracker_fail(site, 1);
    cw_tracker_fail(0, 1);
    cr_expect_eq(core_sums(site).failed, 2u);
    cr_expect_eq(core_sums(site).oom, 1u);
    cr_expect_eq(core_sums(site).allocs, 0u);
}

CoreTest(tracker, a_site_shows_what_it_held_at_its_devices_peak)
{
    uint32_t one = core_site("a", CW_KIND_DEVICE, 0), two = core_site("b", CW_KIND_ASYNC, 0);
    uint32_t other = core_site("a", CW_KIND_DEVICE, 1);

    core_put(one, 0x1000, 64);
    core_put(two, 0x2000, 32); /* the peak: 96 */
    core_put(other, 0x9000, 1000);
    drop(0x1000, CW_FREE_DONE);
    core_put(one, 0x3000, 1);
    core_put(two, 0x4000, 63); /* 96 once more: no new peak */
    expect_at_peak(one, 1, 64);
    expect_at_peak(two, 1, 32);
    expect_at_peak(other, 1, 1000);
    core_put(two, 0x5000, 1);
    expect_at_peak(one, 1, 1);
    expect_at_peak(two, 3, 96);
}

CoreTest(tracker, a_resized_block_counts_with_its_new_size)
{
    uint32_t site = core_site("a", CW_KIND_VMM, 0), block = core_put(site, 0x1000, 64);

    cw_tracker_resize(block, 4096);
    expect_live(site, 1, 4096);
    cr_expect_eq(core_live(0), 4096u);
    cr_expect_eq(core_header()->device[0].peak_bytes, 4096u);
    cr_expect_eq(core_sums(site).peak_bytes, 4096u);
    cr_expect_eq(core_check(), 0);
    drop(0x1000, CW_FREE_DONE);
    expect_live(site, 0, 0);
}

CoreTest(tracker, a_block_of_unknown_size_may_learn_it_later)
{
    uint32_t site = core_site("a", CW_KIND_IMPORTED, 0), block = core_put(site, 0x1000, 0);

    expect_live(site, 1, 0);
    cw_tracker_resize(block, 4096);
    expect_live(site, 1, 4096);
    drop(0x1000, CW_FREE_DONE);
    expect_live(site, 0, 0);
}

static uint32_t put_in_context(uint32_t site, uint64_t key, uint32_t context)
{
    struct cw_request request = core_request(CW_KIND_DEVICE, 0, key, 8);

    request.context = context;
    return cw_tracker_insert(&request, site, 10);
}

CoreTest(tracker, a_context_takes_its_blocks_and_no_others)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0), list, in_flight;

    for (uint64_t i = 0; i < 300; i++)
        put_in_context(site, 0x1000 + i, (uint32_t)(i % 3));
    in_flight = cw_tracker_take(CW_SPACE_ADDRESS, 0x1000 + 1); /* somebody is freeing it */
    list = cw_tracker_take_context(1);
    for (uint64_t i = 0; i < 300; i++)
        cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000 + i) == 0, i % 3 == 1);
    cw_tracker_finish_list(list, CW_FREE_RECLAIMED);
    cw_tracker_finish(in_flight, CW_FREE_DONE);
    expect_live(site, 200, 1600);
    cr_expect_eq(core_sums(site).reclaimed, 99u);
    cr_expect_eq(core_sums(site).frees, 1u);
    cr_expect_eq(cw_tracker_take_context(1), 0u);
    cr_expect_eq(cw_tracker_take_context(7), 0u);
}

CoreTest(tracker, a_context_that_stays_gets_its_blocks_back)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    for (uint64_t i = 0; i < 300; i++)
        put_in_context(site, 0x1000 + i, 1);
    cw_tracker_finish_list(cw_tracker_take_context(1), CW_FREE_REFUSED);
    for (uint64_t i = 0; i < 300; i++)
        cr_expect_neq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000 + i), 0u);
    expect_live(site, 300, 2400);
}

CoreTest(tracker, handles_are_in_no_index)
{
    uint32_t site = core_site("a", CW_KIND_VMM, 0), block;
    struct cw_request request = core_request(CW_KIND_VMM, 0, 77, 4096);

    request.space = CW_SPACE_HANDLE;
    block = cw_tracker_insert(&request, site, 10);
    cr_expect_eq(cw_tracker_find(CW_SPACE_HANDLE, 77), 0u);
    cr_expect_eq(cw_tracker_take(CW_SPACE_HANDLE, 77), 0u);
    cw_tracker_take_block(block);
    cw_tracker_finish(block, CW_FREE_REFUSED);
    expect_live(site, 1, 4096);
    cr_expect_eq(cw_tracker_find(CW_SPACE_HANDLE, 77), 0u);
    cw_tracker_take_block(block);
    cw_tracker_finish(block, CW_FREE_DONE);
    expect_live(site, 0, 0);
}

CoreTest(tracker, a_call_without_a_site_is_a_lost_block)
{
    struct cw_request request = core_request(CW_KIND_DEVICE, 0, 0x1000, 8);

    cr_expect_eq(cw_tracker_insert(&request, 0, 1), 0u);
    cr_expect_eq(core_header()->lost_blocks, 1u);
    cr_expect_eq(core_live_total(), 0u);
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), 0u);
}

CoreTest(tracker, blocks_that_find_no_room_are_counted_as_lost, .init = NULL)
{
    uint32_t site;
    uint64_t held = 0;

    core_start_within((size_t)16 << 20);
    site = core_site("a", CW_KIND_DEVICE, 0);
    while (core_put(site, 0x1000 + held, 8) != 0)
        held++;
    cr_expect_gt(held, 10000u);
    cr_expect_eq(core_put(site, 0x1000 + held, 8), 0u);
    cr_expect_eq(core_header()->lost_blocks, 2u);
    expect_live(site, held, held * 8);
    cr_expect_eq(core_check(), 0);

    for (uint64_t i = 0; i < held; i++)
        drop(0x1000 + i, CW_FREE_DONE);
    for (uint64_t i = 0; i < held; i++)
        cr_assert_neq(core_put(site, 0x1000 + i, 8), 0u);
    cr_expect_eq(core_header()->lost_blocks, 2u);
}

CoreTest(tracker, records_are_used_again)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    for (int round = 0; round < 100; round++) {
        for (uint64_t i = 0; i < 500; i++)
            core_put(site, 0x1000 + i, 8);
        for (uint64_t i = 0; i < 500; i++)
            drop(0x1000 + i, CW_FREE_DONE);
    }
    /* They are made in groups. */
    cr_expect_leq((uint32_t)core_header()->table[CW_TABLE_BLOCK].count,
                  cw_round_up(501, CW_OWNERS_APART));
}

static void put_and_drop_one(unsigned id)
{
    core_put(core_site("a", CW_KIND_DEVICE, 0), 0x1000 + id, 8);
    drop(0x1000 + id, CW_FREE_DONE);
}

CoreTest(tracker, records_of_threads_that_have_ended_are_used_again)
{
    for (int i = 0; i < 500; i++)
        run_threads(1, put_and_drop_one);
    cr_expect_leq((uint32_t)core_header()->table[CW_TABLE_BLOCK].count, 100u);
}
