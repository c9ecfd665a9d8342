/* SPDX-License-Identifier: MIT */
/* The index of live blocks by key: insert, find, remove, growth, deletion, races. */
#include "core/account/index.h"

#include <criterion/criterion.h>

#include <stdatomic.h>

#include "fake_driver.h"

static uint32_t insert(enum cw_space space, uint64_t key, uint32_t block)
{
    uint32_t old = 99;

    cr_assert_eq(cw_index_insert(space, key, block, &old), 0);
    return old;
}

Test(index, is_empty_at_first)
{
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 0), 0u);
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 4096), 0u);
    cr_expect_eq(cw_index_remove(CW_SPACE_ADDRESS, 4096), 0u);
    cr_expect_eq(cw_index_remove_block(CW_SPACE_ADDRESS, 4096, 1), 0);
}

Test(index, finds_what_was_inserted_until_it_is_removed)
{
    cr_expect_eq(insert(CW_SPACE_ADDRESS, 0x7000, 5), 0u);
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 0x7000), 5u);
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 0x7001), 0u);
    cr_expect_eq(cw_index_remove(CW_SPACE_ADDRESS, 0x7000), 5u);
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 0x7000), 0u);
    cr_expect_eq(cw_index_remove(CW_SPACE_ADDRESS, 0x7000), 0u);
}

Test(index, takes_every_number_as_a_key)
{
    static const uint64_t keys[] = {0, 1, 2, 1ull << 32, 1ull << 63, UINT64_MAX};

    for (uint32_t i = 0; i < 6; i++)
        cr_expect_eq(insert(CW_SPACE_ARRAY, keys[i], i + 1), 0u);
    for (uint32_t i = 0; i < 6; i++)
        cr_expect_eq(cw_index_remove(CW_SPACE_ARRAY, keys[i]), i + 1);
}

Test(index, a_replacement_reports_the_old_block)
{
    insert(CW_SPACE_ADDRESS, 0x1000, 1);
    cr_expect_eq(insert(CW_SPACE_ADDRESS, 0x1000, 2), 1u);
    cr_expect_eq(insert(CW_SPACE_ADDRESS, 0x1000, 3), 2u);
    cr_expect_eq(cw_index_remove(CW_SPACE_ADDRESS, 0x1000), 3u);
    cr_expect_eq(cw_index_remove(CW_SPACE_ADDRESS, 0x1000), 0u);
}

Test(index, equal_keys_in_different_spaces_are_different_blocks)
{
    for (uint32_t space = 0; space <= CW_SPACE_MODULE; space++)
        cr_expect_eq(insert(space, 0xabc000, space + 1), 0u);
    for (uint32_t space = 0; space <= CW_SPACE_MODULE; space++)
        cr_expect_eq(cw_index_find(space, 0xabc000), space + 1);
    cr_expect_eq(cw_index_remove(CW_SPACE_ARRAY, 0xabc000), (uint32_t)CW_SPACE_ARRAY + 1);
    for (uint32_t space = 0; space <= CW_SPACE_MODULE; space++)
        cr_expect_eq(cw_index_find(space, 0xabc000), space == CW_SPACE_ARRAY ? 0 : space + 1);
}

Test(index, remove_block_leaves_a_key_that_names_another_block)
{
    insert(CW_SPACE_ADDRESS, 0x2000, 7);
    cr_expect_eq(cw_index_remove_block(CW_SPACE_ADDRESS, 0x2000, 8), 0);
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 0x2000), 7u);
    cr_expect_eq(cw_index_remove_block(CW_SPACE_ADDRESS, 0x2000, 7), 1);
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 0x2000), 0u);
}

Test(index, grows_to_a_million_keys)
{
    const uint32_t count = 1000000;

    for (uint32_t i = 1; i <= count; i++)
        cr_assert_eq(insert(CW_SPACE_ADDRESS, (uint64_t)i << 9, i), 0u);
    for (uint32_t i = 1; i <= count; i++)
        cr_assert_eq(cw_index_find(CW_SPACE_ADDRESS, (uint64_t)i << 9), i);
    for (uint32_t i = 1; i <= count; i++)
        cr_assert_eq(cw_index_remove(CW_SPACE_ADDRESS, (uint64_t)i << 9), i);
    cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, 512), 0u);
}

Test(index, a_reset_empties_it)
{
    for (uint32_t i = 1; i <= 1000; i++)
        insert(CW_SPACE_ADDRESS, i * 512, i);
    cw_index_reset();
    for (uint32_t i = 1; i <= 1000; i++)
        cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, i * 512), 0u);
    cr_expect_eq(insert(CW_SPACE_ADDRESS, 512, 3), 0u);
}

/* ---- against a naive model ---- */

/* So many that the shards run near their three quarters, where the runs of slots are long. */
#define KEYS       4000
#define SPACES     3
#define OPERATIONS 200000

static uint32_t model[SPACES][KEYS];

static uint64_t key_of(unsigned i)
{
    return UINT64_C(0x7f0000000000) + (uint64_t)i * 512;
}

static int is_as_in_model(void)
{
    for (unsigned space = 0; space < SPACES; space++)
        for (unsigned i = 0; i < KEYS; i++)
            if (cw_index_find(space, key_of(i)) != model[space][i])
                return 0;
    return 1;
}

/* insert_percent: how many of the operations insert; the others remove or find. */
static void operate(uint64_t *seed, uint32_t block, unsigned insert_percent)
{
    uint64_t random = next_random(seed);
    unsigned space = random % SPACES, i = (random >> 8) % KEYS, what = (random >> 32) % 100;
    uint32_t *expected = &model[space][i];

    if (what < insert_percent) {
        cr_assert_eq(insert(space, key_of(i), block), *expected);
        *expected = block;
    } else if (what < 90) {
        cr_assert_eq(cw_index_remove(space, key_of(i)), *expected);
        *expected = 0;
    } else if (what < 95) {
        cr_assert_eq(cw_index_remove_block(space, key_of(i), block), 0);
        cr_assert_eq(cw_index_remove_block(space, key_of(i), *expected), *expected != 0);
        *expected = 0;
    } else {
        cr_assert_eq(cw_index_find(space, key_of(i)), *expected);
    }
}

Test(index, agrees_with_a_naive_model_over_200000_random_operations)
{
    static const unsigned insert_percent[] = {85, 45, 10, 60, 80, 30};
    uint64_t seed = 1;

    for (uint32_t i = 0; i < OPERATIONS; i++) {
        operate(&seed, i + 1, insert_percent[i / 10000 % 6]);
        if (i % 5000 == 0)
            cr_assert(is_as_in_model(), "after %u operations", i);
    }
    cr_assert(is_as_in_model());
}

/* ---- races ---- */

#define THREADS 8
#define OWN     3000

static _Atomic unsigned wrong, removed[THREADS];

static void insert_and_remove(unsigned id)
{
    uint64_t base = (uint64_t)(id + 1) << 40;
    uint32_t old;

    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 1; i <= OWN; i++)
            if (cw_index_insert(CW_SPACE_ADDRESS, base + i * 512, i + round, &old) != 0 || old != 0)
                wrong++;
        for (uint32_t i = 1; i <= OWN; i++) {
            uint32_t found = cw_index_find(CW_SPACE_ADDRESS, base + i * 512);

            if (found != i + round || cw_index_remove(CW_SPACE_ADDRESS, base + i * 512) != found)
                wrong++;
        }
    }
}

Test(index, eight_threads_insert_and_remove_their_own_keys)
{
    run_threads(THREADS, insert_and_remove);
    cr_expect_eq(wrong, 0u);
}

static void remove_all(unsigned id)
{
    for (uint32_t i = 1; i <= OWN; i++) {
        uint32_t block = cw_index_remove(CW_SPACE_ADDRESS, i * 512);

        if (block == i)
            removed[id]++;
        else if (block != 0)
            wrong++;
    }
}

Test(index, of_eight_threads_that_remove_a_key_one_gets_the_block)
{
    unsigned sum = 0;

    for (uint32_t i = 1; i <= OWN; i++)
        insert(CW_SPACE_ADDRESS, i * 512, i);
    run_threads(THREADS, remove_all);
    for (unsigned i = 0; i < THREADS; i++)
        sum += removed[i];
    cr_expect_eq(sum, (unsigned)OWN);
    cr_expect_eq(wrong, 0u);
}

static _Atomic unsigned put, got;

/* Each block that goes in comes out once: as an old one, or by a removal. */
static void fight_for_keys(unsigned id)
{
    uint64_t seed = id;
    uint32_t old;

    for (uint32_t i = 1; i <= 20000; i++) {
        uint64_t key = next_random(&seed) % 64;

        if (i % 2 == 0) {
            cw_index_insert(CW_SPACE_POOL, key, i, &old);
            put++;
            got += old != 0;
        } else {
            got += cw_index_remove(CW_SPACE_POOL, key) != 0;
        }
    }
}

Test(index, a_block_that_went_in_comes_out_once)
{
    run_threads(THREADS, fight_for_keys);
    for (uint64_t key = 0; key < 64; key++)
        got += cw_index_remove(CW_SPACE_POOL, key) != 0;
    cr_expect_eq(put, got);
}

/* ---- readers, who take no lock ---- */

#define WRITERS    4 /* of the threads; the others read */
#define NUMBERS    48
#define CHANGES    300000    /* by each writer */
#define GENERATION (1 << 20) /* a block is its key's number and, above it, how many were before */

static _Atomic unsigned writing, reading, lost, invented, torn;

/* The inverse of what the index multiplies with: all these keys want the first slot of one shard.
 * They stand in one long run, which each removal moves and each reader is long in. */
static uint64_t crowded_key(uint32_t number)
{
    return ((uint64_t)number << 50) * UINT64_C(0xf1de83e19937733d);
}

/* Of four keys in a row the first stays, the second is never in, the others come and go. */
static void change_keys(uint64_t *seed)
{
    uint32_t old;

    for (uint32_t i = 1; i <= CHANGES; i++) {
        uint64_t random = next_random(seed);
        uint32_t number = (uint32_t)(random >> 8) % NUMBERS | 2;
        uint32_t block = number + 1 + i % 8 * GENERATION;

        if (random % 2 == 0)
            cw_index_insert(CW_SPACE_ADDRESS, crowded_key(number), block, &old);
        else
            cw_index_remove(CW_SPACE_ADDRESS, crowded_key(number));
    }
}

static void look_up_keys(uint64_t *seed)
{
    while (writing != 0) {
        uint32_t number = (uint32_t)next_random(seed) % NUMBERS;
        uint32_t block = cw_index_find(CW_SPACE_ADDRESS, crowded_key(number));

        if (number % 4 == 0 && block != number + 1)
            lost++;
        else if (number % 4 == 1 && block != 0)
            invented++;
        else if (block != 0 && block % GENERATION != number + 1)
            torn++;
    }
}

static void change_or_look_up(unsigned id)
{
    uint64_t seed = id;

    if (id >= WRITERS) {
        look_up_keys(&seed);
    } else {
        change_keys(&seed);
        writing--;
    }
}

Test(index, readers_find_what_stays_and_nothing_else_while_others_write)
{
    for (uint32_t number = 0; number < NUMBERS; number += 4)
        insert(CW_SPACE_ADDRESS, crowded_key(number), number + 1);
    writing = WRITERS;
    run_threads(THREADS, change_or_look_up);
    cr_expect_eq(lost, 0u, "%u times a key that stays was not found with its block", lost);
    cr_expect_eq(invented, 0u, "%u times a key was found that is never in", invented);
    cr_expect_eq(torn, 0u, "%u times a key was found with another's block", torn);
}

#define FULL   1536 /* keys; with one more a shard goes from 2048 slots to 4096 */
#define ROUNDS 16

/* The first thread has the table replaced; the others are on their way to the end of the run. */
static void grow_or_look_up(unsigned id)
{
    uint32_t old;

    if (id == 0) {
        while (reading == 0)
            ;
        cw_index_insert(CW_SPACE_ADDRESS, crowded_key(FULL), FULL + 1, &old);
        writing--;
    } else {
        while (writing != 0) {
            reading = 1;
            if (cw_index_find(CW_SPACE_ADDRESS, crowded_key(FULL - 1)) != FULL)
                lost++;
        }
    }
}

Test(index, readers_find_what_stays_while_the_table_is_replaced)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        cw_index_reset();
        for (uint32_t number = 0; number < FULL; number++)
            insert(CW_SPACE_ADDRESS, crowded_key(number), number + 1);
        reading = 0;
        writing = 1;
        run_threads(3, grow_or_look_up);
        cr_expect_eq(cw_index_find(CW_SPACE_ADDRESS, crowded_key(FULL)), FULL + 1u);
    }
    cr_expect_eq(lost, 0u, "%u times a key that stays was not found with its block", lost);
}
