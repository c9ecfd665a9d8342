/* SPDX-License-Identifier: MIT */
/* The models of other allocators against their rules, and their pieces against a naive version. */
#include "cli/replay/replay_model.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "cli/replay/replay_pieces.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const struct cw_replay_engine *engine;

static void begin(const struct cw_replay_engine *model, uint64_t device_bytes)
{
    engine = model;
    cw_replay_driver_start(device_bytes);
    cr_assert_eq(engine->start(NULL), 0);
}

static struct cw_replay_block last;
static int was_hit;

/* The key, 0: out of memory. */
static uint64_t take(uint64_t bytes)
{
    struct cw_replay_take take = {.bytes = bytes, .kind = CW_KIND_DEVICE};

    engine->take(&take);
    was_hit = take.is_hit;
    last = (struct cw_replay_block){.key = take.key, .bytes = bytes, .kind = CW_KIND_DEVICE};
    return take.key;
}

static void give(const struct cw_replay_block *block)
{
    cr_assert_eq(engine->give(block), 0);
}

static uint64_t held(void)
{
    return engine->sums(0).held;
}

/* ---- a cache without bounds ---- */

Test(replay_model, unbounded_serves_a_request_of_the_same_class_or_an_eighth_smaller)
{
    begin(&cw_replay_unbounded, GIB);
    cr_assert_neq(take(100000), 0);
    cr_expect_eq(was_hit, 0);
    cr_expect_eq(held(), 106496, "eight classes to a doubling");
    give(&last);
    take(98305);
    cr_expect_eq(was_hit, 1, "of the same class");
    give(&last);
    take(94664);
    cr_expect_eq(was_hit, 1, "an eighth smaller than the block");
    give(&last);
    take(94000);
    cr_expect_eq(was_hit, 0);
    cr_expect_eq(held(), 106496 + 98304);
}

Test(replay_model, unbounded_cuts_no_block)
{
    begin(&cw_replay_unbounded, GIB);
    take(100000);
    give(&last);
    take(98305);
    cr_expect_eq(was_hit, 1);
    take(8000);
    cr_expect_eq(was_hit, 0, "of the rest of the block");
}

Test(replay_model, unbounded_keeps_everything)
{
    begin(&cw_replay_unbounded, 4000 * GIB);
    for (uint64_t i = 0; i < 100; i++) {
        take(GIB + i * 256 * MIB);
        cr_assert_eq(was_hit, 0);
        give(&last);
    }
    cr_expect_eq(cw_replay_driver_calls()->frees, 0);
    for (uint64_t i = 100; i-- > 0;) {
        take(GIB + i * 256 * MIB);
        cr_assert_eq(was_hit, 1);
    }
}

/* ---- PyTorch's ---- */

Test(replay_model, pytorch_takes_segments)
{
    static const struct {
        uint64_t bytes, segment;
    } cases[] = {
        {1, 2 * MIB},         {MIB, 2 * MIB},
        {MIB + 1, 20 * MIB},  {10 * MIB - 512, 20 * MIB},
        {10 * MIB, 10 * MIB}, {10 * MIB + 1, 12 * MIB},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(&cw_replay_pytorch, GIB);
        take(cases[i].bytes);
        cr_expect_eq(held(), cases[i].segment, "%ju bytes", (uintmax_t)cases[i].bytes);
        engine->stop();
    }
}

Test(replay_model, pytorch_cuts_and_joins)
{
    struct cw_replay_block first, second;

    begin(&cw_replay_pytorch, GIB);
    take(4 * MIB);
    first = last;
    take(4 * MIB);
    second = last;
    cr_expect_eq(was_hit, 1, "of what is left of the first segment");
    take(12 * MIB);
    cr_expect_eq(was_hit, 1);
    take(2 * MIB);
    cr_expect_eq(was_hit, 0, "nothing is left");
    cr_expect_eq(held(), 40 * MIB);
    give(&first);
    give(&second);
    take(8 * MIB);
    cr_expect_eq(was_hit, 1, "of two that were joined");
    take(19 * MIB);
    cr_expect_eq(held(), 40 * MIB + 20 * MIB, "a block of its own, in steps of 2 MiB");
}

Test(replay_model, pytorch_leaves_a_rest_of_a_mebibyte_on)
{
    begin(&cw_replay_pytorch, GIB);
    take(11 * MIB); /* of 12: the rest does not exceed 1 MiB */
    take(MIB + 1);
    cr_expect_eq(was_hit, 0);
    take(21 * MIB - 512); /* of 22 */
    take(MIB + 512);
    cr_expect_eq(was_hit, 1);
}

Test(replay_model, pytorch_gives_free_segments_back_and_asks_once_more)
{
    begin(&cw_replay_pytorch, 128 * MIB);
    take(60 * MIB);
    give(&last);
    cr_assert_neq(take(100 * MIB), 0);
    cr_expect_eq(held(), 100 * MIB);
    cr_expect_eq(cw_replay_driver_calls()->frees, 1);
    cr_expect_eq(take(100 * MIB), 0);
    cr_expect_eq(take(100 * MIB), 0);
    cr_expect_eq(held(), 100 * MIB);
}

/* ---- RMM's ---- */

Test(replay_model, rmm_begins_with_half_and_grows_by_halves)
{
    begin(&cw_replay_rmm, GIB);
    take(256);
    cr_expect_eq(held(), 512 * MIB);
    cr_expect_eq(was_hit, 0);
    take(512 * MIB - 256);
    cr_expect_eq(was_hit, 1);
    take(MIB); /* nine tenths of 1 GiB, in steps of 2 MiB, are 920 MiB */
    cr_expect_eq(held(), 512 * MIB + 204 * MIB);
    cr_expect_eq(take(500 * MIB), 0);
    cr_assert_neq(take(204 * MIB), 0);
    cr_expect_eq(held(), 920 * MIB);
    cr_expect_eq(take(204 * MIB), 0);
}

/* ---- other kinds ---- */

Test(replay_model, pinned_memory_goes_to_the_driver)
{
    struct cw_replay_take pinned = {
        .bytes = 1000, .kind = CW_KIND_PINNED, .device = CW_DEVICE_HOST};
    struct cw_replay_block block = {
        .bytes = 1000, .kind = CW_KIND_PINNED, .device = CW_DEVICE_HOST};

    begin(&cw_replay_pytorch, GIB);
    engine->take(&pinned);
    cr_assert_neq(pinned.key, 0);
    cr_expect_eq(pinned.is_hit, 0);
    cr_expect_eq(engine->sums(CW_DEVICE_HOST).held, 1000);
    block.key = pinned.key;
    cr_expect_eq(engine->give(&block), 1);
    cr_expect_eq(engine->sums(CW_DEVICE_HOST).held, 0);
    cr_expect_eq(cw_replay_driver_calls()->frees, 1);
}

/* ---- pieces against a plain row of units ---- */

#define UNITS    200u
#define SEGMENTS 3u

static uint8_t taken[SEGMENTS * UNITS];

/* The shortest sufficient run of free units in a segment; among equals the first. */
static unsigned best_fit(unsigned count)
{
    unsigned best = SEGMENTS * UNITS, least = UNITS + 1;

    for (unsigned at = 0; at < SEGMENTS * UNITS;) {
        unsigned end = at, segment = at / UNITS;

        while (end < SEGMENTS * UNITS && end / UNITS == segment && !taken[end])
            end++;
        if (end - at >= count && end - at < least) {
            least = end - at;
            best = at;
        }
        at = end == at ? at + 1 : end;
    }
    return best;
}

Test(replay_pieces, are_cut_and_joined_as_a_plain_row)
{
    struct {
        uint32_t number;
        unsigned at, count;
    } block[SEGMENTS * UNITS];
    struct cw_pieces pieces = {0};
    unsigned blocks = 0;

    srand(11);
    for (uint64_t i = 0; i < SEGMENTS; i++)
        cr_assert_eq(cw_pieces_add(&pieces, (1 + i * UNITS) * 512, UNITS * 512), 0);
    for (int step = 0; step < 50000; step++) {
        unsigned count = 1 + (unsigned)rand() % 20, at = best_fit(count), i;

        if (rand() % 2) {
            uint32_t number = cw_pieces_take(&pieces, count * 512, UINT64_MAX, 512);

            cr_assert_eq(number != 0, at < SEGMENTS * UNITS, "step %d", step);
            if (number == 0)
                continue;
            cr_assert_eq(pieces.piece[number].address, (1 + at) * 512, "step %d", step);
            cr_assert_eq(cw_pieces_bytes(&pieces, number), count * 512);
            memset(taken + at, 1, count);
            block[blocks].number = number;
            block[blocks].at = at;
            block[blocks++].count = count;
        } else if (blocks > 0) {
            i = (unsigned)rand() % blocks;
            cw_pieces_give(&pieces, block[i].number);
            memset(taken + block[i].at, 0, block[i].count);
            block[i] = block[--blocks];
        }
    }
    cw_pieces_destroy(&pieces);
}

Test(replay_pieces, a_segment_goes_when_all_of_it_is_free)
{
    struct cw_pieces pieces = {0};
    uint64_t address, bytes;
    uint32_t first, second;

    cw_pieces_add(&pieces, 4096, 4096);
    first = cw_pieces_take(&pieces, 1024, 4096, 512);
    second = cw_pieces_take(&pieces, 1024, 4096, 512);
    cr_assert(first != 0 && second != 0);
    cr_expect_eq(cw_pieces_drop(&pieces, &address, &bytes), 0);
    cw_pieces_give(&pieces, first);
    cr_expect_eq(cw_pieces_drop(&pieces, &address, &bytes), 0);
    cw_pieces_give(&pieces, second);
    cr_assert_eq(cw_pieces_drop(&pieces, &address, &bytes), 1);
    cr_expect(address == 4096 && bytes == 4096);
    cr_expect_eq(cw_pieces_take(&pieces, 1, UINT64_MAX, 512), 0);
    cw_pieces_destroy(&pieces);
}

Test(replay_pieces, nothing_larger_than_was_allowed)
{
    struct cw_pieces pieces = {0};

    cw_pieces_add(&pieces, 4096, 4096);
    cr_expect_eq(cw_pieces_take(&pieces, 1024, 4095, UINT64_MAX), 0);
    cr_assert_neq(cw_pieces_take(&pieces, 1024, 4096, UINT64_MAX), 0);
    cr_expect_eq(cw_pieces_take(&pieces, 1, UINT64_MAX, 512), 0, "it was not cut");
    cw_pieces_destroy(&pieces);
}
