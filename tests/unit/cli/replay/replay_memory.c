/* SPDX-License-Identifier: MIT */
/* The model of a device's memory, and the map of live blocks, compared with naive versions. */
#include "cli/replay/replay_memory.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "cli/replay/replay_map.h"

#define PAGE CW_REPLAY_PAGE
#define BASE CW_REPLAY_MOST

static struct cw_replay_memory *memory;

static void make(void)
{
    memory = cw_replay_memory_make(BASE, 16 * PAGE);
}

static void destroy(void)
{
    cw_replay_memory_destroy(memory);
}

static uint64_t take(uint64_t bytes)
{
    return cw_replay_memory_take(memory, bytes);
}

TestSuite(replay_memory, .init = make, .fini = destroy);

Test(replay_memory, hands_out_the_first_place_that_fits)
{
    uint64_t a = take(2 * PAGE), b = take(3 * PAGE), c = take(PAGE);

    cr_assert(a != 0 && b == a + 2 * PAGE && c == b + 3 * PAGE);
    cr_expect_eq(cw_replay_memory_give(memory, a), 0);
    cr_expect_eq(take(3 * PAGE), c + PAGE, "does not fit into two pages");
    cr_expect_eq(take(2 * PAGE - 1), a, "the first place");
}

Test(replay_memory, a_request_needs_one_piece)
{
    uint64_t page[16];

    for (unsigned i = 0; i < 16; i++)
        page[i] = take(PAGE);
    cr_assert_neq(page[15], 0);
    cr_expect_eq(take(1), 0);
    for (unsigned i = 0; i < 16; i += 2)
        cw_replay_memory_give(memory, page[i]);
    cr_expect_eq(cw_replay_memory_free(memory), 8 * PAGE);
    cr_expect_eq(cw_replay_memory_largest(memory), PAGE);
    cr_expect_eq(take(PAGE + 1), 0);
    cr_expect_eq(take(PAGE), page[0]);
}

Test(replay_memory, small_blocks_share_pages_and_leave_them)
{
    uint64_t a = take(1), b = take(512), c = take(1 << 20), d = take((1 << 20) - 600);

    cr_expect_eq(b, a + 512);
    cr_expect_eq(d, c + (1 << 20), "two of about a MiB in one page");
    cr_expect_eq(cw_replay_memory_free(memory), 14 * PAGE);
    cr_expect_eq(cw_replay_memory_give(memory, a + 1), -1);
    cr_expect_eq(cw_replay_memory_give(memory, a), 0);
    cr_expect_eq(cw_replay_memory_give(memory, a), -1, "twice");
    cr_expect_eq(cw_replay_memory_give(memory, b), 0);
    cr_expect_eq(cw_replay_memory_free(memory), 15 * PAGE);
}

Test(replay_memory, bad_requests_and_frees_change_nothing)
{
    uint64_t a = take(2 * PAGE);

    cr_expect_eq(take(0), 0);
    cr_expect_eq(take(UINT64_MAX), 0);
    cr_expect_eq(cw_replay_memory_give(memory, a + PAGE), -1);
    cr_expect_eq(cw_replay_memory_give(memory, BASE - PAGE), -1);
    cr_expect_eq(cw_replay_memory_give(memory, BASE + 100 * PAGE), -1);
    cr_expect_eq(cw_replay_memory_free(memory), 14 * PAGE);
}

/* ---- against a plain array of pages ---- */

#define PAGES 100u

static uint8_t taken[PAGES];

static unsigned first_fit(unsigned count)
{
    for (unsigned at = 0; at + count <= PAGES; at++)
        if (memchr(taken + at, 1, count) == NULL)
            return at;
    return PAGES;
}

static unsigned longest(void)
{
    unsigned most = 0, now = 0;

    for (unsigned i = 0; i < PAGES; i++) {
        now = taken[i] ? 0 : now + 1;
        most = now > most ? now : most;
    }
    return most;
}

Test(replay_memory, does_as_a_plain_model_does)
{
    struct {
        unsigned at, count;
    } block[PAGES];
    struct cw_replay_memory *pages = cw_replay_memory_make(BASE, PAGES * PAGE);
    uint64_t origin = BASE + PAGE; /* page 0 is never used */
    unsigned blocks = 0;

    srand(7);
    for (int step = 0; step < 20000; step++) {
        unsigned count = 1 + (unsigned)rand() % 9, at = first_fit(count), i;

        if (rand() % 2) {
            uint64_t got = cw_replay_memory_take(pages, count * PAGE);

            cr_assert_eq(got, at < PAGES ? origin + at * PAGE : 0, "step %d", step);
            if (at == PAGES)
                continue;
            memset(taken + at, 1, count);
            block[blocks].at = at;
            block[blocks++].count = count;
        } else if (blocks > 0) {
            i = (unsigned)rand() % blocks;
            cr_assert_eq(cw_replay_memory_give(pages, origin + block[i].at * PAGE), 0);
            memset(taken + block[i].at, 0, block[i].count);
            block[i] = block[--blocks];
        }
        cr_assert_eq(cw_replay_memory_largest(pages), longest() * PAGE, "step %d", step);
    }
    cw_replay_memory_destroy(pages);
}

/* ---- the map ---- */

#define POINTERS 5000u

Test(replay_map, finds_what_is_in_it_and_nothing_else)
{
    static uint8_t is_in[POINTERS];
    struct cw_replay_map map = {0};
    struct cw_replay_block block = {0};
    uint64_t count = 0;

    srand(3);
    for (int step = 0; step < 200000; step++) {
        unsigned i = (unsigned)rand() % POINTERS;
        uint64_t pointer = (i + 1) * 512;

        if (is_in[i]) {
            cr_assert_eq(cw_replay_map_take(&map, pointer, &block), 1, "step %d", step);
            cr_assert(block.pointer == pointer && block.key == i + 7);
        } else {
            cr_assert_eq(cw_replay_map_take(&map, pointer, &block), 0, "step %d", step);
            block = (struct cw_replay_block){.pointer = pointer, .key = i + 7};
            cr_assert_eq(cw_replay_map_put(&map, &block), 0);
        }
        is_in[i] = !is_in[i];
        count += is_in[i] ? 1 : UINT64_MAX;
        cr_assert_eq(map.count, count);
    }
    cr_expect_eq(cw_replay_map_take(&map, 0, &block), 0);
    cw_replay_map_destroy(&map);
}
