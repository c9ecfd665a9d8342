/* SPDX-License-Identifier: MIT */
/* Blocks that are replaced by larger ones, while other blocks are: in many threads at once. */
#include "core/account/regrowth.h"

#include <criterion/criterion.h>

#include "pool_fixture.h"

TestSuite(regrowth_race, .init = pool_setup);

#define THREADS 8u
#define ROUNDS  500u

static uint32_t records(void)
{
    return core_count(CW_TABLE_REGROWTH);
}

static const struct cw_live_regrowth *record(void)
{
    return core_at(CW_TABLE_REGROWTH, 1);
}

PoolTest(regrowth_race, chunks_of_a_pair_that_a_free_between_them_has_moved)
{
    uint64_t small[2], large[2];

    for (unsigned i = 0; i < 2; i++) {
        small[i] = pool_get(4 * KIB);
        large[i] = pool_get(8 * KIB);
        cw_regrowth_copied(large[i], small[i], 2 * KIB + i - 1);
    }
    pool_put(small[0]);
    cw_regrowth_copied(large[1] + 2 * KIB, small[1] + 2 * KIB, KIB);
    pool_put(small[1]);
    cr_assert_eq(records(), 1u);
    cr_expect_eq(record()->resizes, 1u);
    cr_expect_eq(record()->copied_bytes, 3 * KIB);
}

static void grow_and_shrink(unsigned id)
{
    (void)id;
    fake_set_current(FIRST_CONTEXT);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t key = pool_get(4 * KIB);

        for (uint64_t bytes = 4 * KIB; bytes < 32 * KIB; bytes *= 2) {
            uint64_t larger = pool_get(2 * bytes);

            cw_regrowth_copied(larger, key, bytes / 2);
            cw_regrowth_copied(larger + bytes / 2, key + bytes / 2, bytes / 2);
            pool_put(key);
            key = larger;
        }
        pool_put(key);
    }
}

PoolTest(regrowth_race, eight_threads_grow_at_one_place)
{
    run_threads(THREADS, grow_and_shrink);
    cr_assert_eq(records(), 1u);
    cr_expect_eq(record()->resizes, 3u * THREADS * ROUNDS);
    cr_expect_eq(record()->chains, THREADS * ROUNDS);
    cr_expect_eq(record()->copied_bytes, 28 * KIB * THREADS * ROUNDS);
    cr_expect_eq(record()->first_bytes, 4 * KIB);
    cr_expect_eq(record()->largest_bytes, 32 * KIB);
}

static _Atomic uint64_t shared[4];

/* A program that frees what others copy: wrong, but no reason for us to break. */
static void copy_while_others_free(unsigned id)
{
    fake_set_current(FIRST_CONTEXT);
    for (unsigned round = 0; round < 4 * ROUNDS; round++) {
        unsigned i = (id + round) % 4;

        if (id % 2 == 0) {
            uint64_t key = atomic_exchange(&shared[i], pool_get((i + 1) * 4 * KIB));

            if (key != 0)
                pool_put(key);
        } else
            cw_regrowth_copied(shared[i], shared[(i + round / 4) % 4], 4 * KIB);
    }
}

PoolTest(regrowth_race, copies_of_blocks_that_others_free)
{
    run_threads(THREADS, copy_while_others_free);
    cr_expect_leq(records(), 1u);
}
