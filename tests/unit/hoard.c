/* SPDX-License-Identifier: MIT */
/* What a thread keeps to itself, and how others get at it. */
#include "core/hoard.h"

#include <criterion/criterion.h>

#include <sched.h>

#include "core/realm.h"
#include "core/session.h"
#include "core/slot.h"
#include "core/tracker.h"
#include "pool_fixture.h"

static struct cw_realm *realm;
static struct cw_pool *pool;

static void setup(void)
{
    pool_start(CW_FREE_STRICT);
    realm = cw_realm_of(pool_index(FIRST_CONTEXT));
    pool = cw_realm_pool(realm, CW_POOL_DEVICE);
}

TestSuite(hoard, .init = setup);

static uint32_t block_in(const struct cw_pool *in, uint64_t held)
{
    struct cw_request request = {.kind = in->kind,
                                 .flags = CW_BLOCK_POOLED,
                                 .class = in->class,
                                 .context = in->realm->context,
                                 .held = held};

    request.key = fake_take(FIRST_CONTEXT, in->kind, held);
    return cw_tracker_insert_idle(&request, core_site("a", in->kind, 0), 100);
}

static int put(struct cw_pool *in, uint64_t held, uint32_t *out_spill)
{
    return cw_hoard_put(in, block_in(in, held), 1, out_spill);
}

static uint32_t take(uint64_t bytes)
{
    return cw_hoard_take(pool, cw_size_class_up(bytes), bytes);
}

static unsigned length(uint32_t list)
{
    unsigned count = 0;

    for (; list != 0; list = cw_tracker_at(list)->link)
        count++;
    return count;
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

Test(hoard, gives_the_newest_block_of_the_class)
{
    uint32_t first = block_in(pool, 1 * KIB), second = block_in(pool, 1 * KIB), spill;

    cr_expect_eq(cw_hoard_put(pool, first, 1, &spill), 1);
    cr_expect_eq(cw_hoard_put(pool, second, 1, &spill), 1);
    cr_expect_eq(take(2 * KIB), 0u);
    cr_expect_eq(take(512), 0u);
    cr_expect_eq(take(1000), second);
    cr_expect_eq(take(1 * KIB), first);
    cr_expect_eq(take(1 * KIB), 0u);
    cr_expect_eq(pool_sums().hits, 2u);
    cr_expect_eq(pool_sums().kept, 2u);
    cr_expect_eq(pool_sums().idle_blocks, 0u);
    cr_expect_eq(pool_sums().idle_bytes, 0u);
}

Test(hoard, has_a_cell_for_each_size_up_to_a_megabyte)
{
    cr_expect_eq(cw_hoard_cell(CW_POOL_DEVICE, 511), CW_HOARD_NONE);
    for (unsigned c = 0; c < CW_HOARD_CELLS; c++) {
        uint64_t size = cw_size_class_bytes(c);

        cr_expect_eq(cw_hoard_cell(CW_POOL_DEVICE, size), c);
        cr_expect_eq(cw_hoard_cell(CW_POOL_HOST, cw_size_class_bytes(c + 1) - 1), c);
        cr_expect_eq(cw_hoard_cell(CW_POOL_PITCHED, size), CW_HOARD_NONE);
    }
    cr_expect_eq(cw_size_class_bytes(CW_HOARD_CELLS - 1), CW_HOARD_LARGEST);
    cr_expect_eq(cw_hoard_cell(CW_POOL_DEVICE, cw_size_class_bytes(CW_HOARD_CELLS)), CW_HOARD_NONE);
    cr_expect_eq(cw_hoard_cell(CW_POOL_DEVICE, CW_SIZE_MOST), CW_HOARD_NONE);
    cr_expect_eq(cw_hoard_cell(CW_POOL_DEVICE, UINT64_MAX), CW_HOARD_NONE);
}

Test(hoard, keeps_16_blocks_of_a_size)
{
    cr_expect_eq(room_for(4 * KIB), 16u);
}

Test(hoard, keeps_a_megabyte_of_a_size)
{
    cr_expect_eq(room_for(128 * KIB), 8u);
}

Test(hoard, keeps_one_block_of_the_largest_size)
{
    uint32_t spill;

    cr_expect_eq(room_for(1 * MIB), 1u);
    cr_expect_eq(put(pool, 1 * MIB + 128 * KIB, &spill), 0);
}

Test(hoard, what_makes_room_is_the_newer_half)
{
    uint32_t spill = 0, last = 0, list;

    for (int i = 0; i < 16; i++) {
        last = block_in(pool, 4 * KIB);
        cr_assert_eq(cw_hoard_put(pool, last, 1, &spill), 1);
    }
    cr_assert_eq(put(pool, 4 * KIB, &list), 1);
    cr_expect_eq(list, last);
    cr_expect_eq(length(list), 8u);
    for (int i = 0; i < 9; i++)
        cr_expect_neq(take(4 * KIB), 0u);
    cr_expect_eq(take(4 * KIB), 0u);
}

Test(hoard, keeps_16_mib_in_all)
{
    uint64_t bytes = 0;
    uint32_t spill = 0;

    /* One megabyte, or a little less, of each size from the largest down. */
    for (unsigned c = cw_size_class_up(CW_HOARD_LARGEST);; c--) {
        uint64_t size = cw_size_class_bytes(c);

        for (uint64_t n = 0; n < 1 * MIB / size; n++) {
            if (!put(pool, size, &spill)) {
                cr_expect_gt(bytes + size, 16 * MIB);
                return;
            }
            cr_assert_eq(spill, 0u);
            bytes += size;
            cr_assert(bytes <= 16 * MIB);
        }
    }
}

Test(hoard, of_no_bytes_keeps_nothing)
{
    uint32_t spill;

    cw_hoard_init(0);
    cr_expect_eq(put(pool, 512, &spill), 0);
}

Test(hoard, takes_no_pitched_blocks_which_are_of_no_rounded_size)
{
    uint32_t spill;

    cr_expect_eq(put(cw_realm_pool(realm, CW_POOL_PITCHED), 51200, &spill), 0);
}

Test(hoard, of_a_realm_that_is_not_open_takes_nothing)
{
    uint32_t spill;

    realm->state = CW_REALM_CLOSING;
    cr_expect_eq(put(pool, 512, &spill), 0);
    cr_expect_eq(cw_hoard_refill(pool, 0, block_in(pool, 512), 1) != 0, 1);
    realm->state = CW_REALM_OPEN;
    cr_expect_eq(put(pool, 512, &spill), 1);
}

Test(hoard, of_a_thread_without_a_slot_is_none)
{
    uint32_t spill;

    cw_thread_ends(); /* takes the slot away */
    cr_expect_eq(put(pool, 512, &spill), 0);
    cr_expect_eq(take(512), 0u);
    cr_expect_eq(cw_hoard_empty(), 0u);
}

Test(hoard, of_a_stopped_thread_is_left_alone)
{
    uint64_t mask = (uint64_t)1 << cw_thread_slot();
    uint32_t spill;

    cr_assert_eq(put(pool, 512, &spill), 1);
    cw_slot_stop(mask);
    cr_expect_eq(take(512), 0u);
    cw_slot_resume(mask);
    cr_expect_neq(take(512), 0u);
}

Test(hoard, is_refilled_up_to_its_limit)
{
    uint32_t list = 0, rest;

    for (int i = 0; i < 20; i++) {
        uint32_t block = block_in(pool, 4 * KIB);

        cw_tracker_at(block)->link = list;
        list = block;
    }
    rest = cw_hoard_refill(pool, cw_size_class_up(4 * KIB), list, 20);
    cr_expect_eq(length(rest), 4u);
    for (int i = 0; i < 16; i++)
        cr_expect_neq(take(4 * KIB), 0u);
    cr_expect_eq(take(4 * KIB), 0u);
}

Test(hoard, pools_that_meet_in_a_place_do_not_mix)
{
    struct cw_pool *other = NULL;
    uint32_t spill;

    cr_assert_eq(put(pool, 512, &spill), 1);
    /* Sets are found by the pool's number: the ninth has the place of the first. */
    for (unsigned i = 0; i < 8; i++) {
        cw_context_created(0xd0 + i, 0);
        other = cw_realm_pool(cw_realm_of(pool_index(0xd0 + i)), CW_POOL_DEVICE);
    }
    cr_assert_eq(other->id % 8, pool->id % 8);
    cr_expect_eq(put(other, 512, &spill), 0);
    cr_expect_eq(cw_hoard_take(other, 0, 512), 0u);
    cr_expect_neq(take(512), 0u);
}

/* ---- other threads ---- */

static _Atomic int filled, may_end;
static uint32_t seized_size, seized_pool;

static void fill_or_seize(unsigned id)
{
    if (id == 0) {
        uint32_t spill;

        for (int i = 0; i < 3; i++) {
            put(pool, 4 * KIB, &spill);
            put(pool, 8 * KIB, &spill);
        }
        filled = 1;
        while (!may_end)
            sched_yield();
        return;
    }
    while (!filled)
        sched_yield();
    cr_expect_eq(take(4 * KIB), 0u); /* not ours */
    seized_size = length(cw_hoard_seize(pool, cw_size_class_up(4 * KIB)));
    seized_pool = length(cw_hoard_seize(pool, CW_SIZE_CLASSES));
    cr_expect_eq(cw_hoard_seize(NULL, CW_SIZE_CLASSES), 0u);
    may_end = 1;
}

Test(hoard, others_seize_a_size_or_all_of_a_pool)
{
    run_threads(2, fill_or_seize);
    cr_expect_eq(seized_size, 3u);
    cr_expect_eq(seized_pool, 3u);
}

Test(hoard, a_size_that_no_hoard_has_is_not_looked_for)
{
    cr_expect_eq(cw_hoard_seize(pool, cw_size_class_up(2 * MIB)), 0u);
}

Test(hoard, a_closed_pool_gives_its_place_to_the_next)
{
    struct cw_pool *other = NULL;
    uint32_t spill;

    cr_assert_eq(put(pool, 512, &spill), 1);
    for (unsigned i = 0; i < 8; i++) {
        cw_context_created(0xd0 + i, 0);
        other = cw_realm_pool(cw_realm_of(pool_index(0xd0 + i)), CW_POOL_DEVICE);
    }
    realm->state = CW_REALM_CLOSING;
    cr_expect_eq(length(cw_hoard_seize(pool, CW_SIZE_CLASSES)), 1u);
    cr_expect_eq(put(other, 512, &spill), 1);
    cr_expect_neq(cw_hoard_take(other, 0, 512), 0u);
}

Test(hoard, the_end_of_a_thread_empties_it)
{
    uint32_t spill;

    cr_assert_eq(put(pool, 512, &spill), 1);
    cr_assert_eq(put(pool, 64 * KIB, &spill), 1);
    cr_expect_eq(length(cw_hoard_empty()), 2u);
    cr_expect_eq(cw_hoard_empty(), 0u);
}
