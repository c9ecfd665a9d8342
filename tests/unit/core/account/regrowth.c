/* SPDX-License-Identifier: MIT */
/* Blocks that are replaced by larger ones: what counts as a resize, and what it comes to. */
#include "core/account/regrowth.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/control/lifecycle.h"
#include "core/device/context.h"
#include "core/device/graph.h"
#include "core/request/request.h"
#include "core/process/session.h"
#include "core/account/tracker.h"
#include "pool_fixture.h"

TestSuite(regrowth, .init = pool_setup);

/* ---- the program ---- */

/* A name is one text in the arena, as in src/hook/bodies/call.c. */
static uint32_t text_of(const char *api)
{
    static struct {
        char name[16];
        uint32_t text;
    } known[CW_REGROWTH_RECORDS * 2];
    static const struct cw_live_header *header;
    static unsigned count;

    if (header != core_header())
        count = 0;
    header = core_header();
    for (unsigned i = 0; i < count; i++)
        if (strcmp(known[i].name, api) == 0)
            return known[i].text;
    cr_assert_neq(count, CW_REGROWTH_RECORDS * 2);
    snprintf(known[count].name, sizeof(known[count].name), "%s", api);
    known[count].text = cw_site_text(api);
    return known[count++].text;
}

static uint64_t next_key = UINT64_C(0x700000000000);

struct place {
    const char *api;
    enum cw_kind kind;
    uint8_t device;
};

/* A block that no pool has, by an API that stands for a place of its own. */
static uint64_t get_at(struct place at, uint64_t bytes)
{
    struct cw_request request = core_request(at.kind, at.device, next_key, bytes);

    next_key += UINT64_C(1) << 40;
    cr_assert_neq(cw_request_granted(&request, text_of(at.api)), 0u);
    return request.key;
}

static uint64_t get(uint64_t bytes)
{
    return get_at((struct place){"grow", CW_KIND_ASYNC, 0}, bytes);
}

static void end_free(uint64_t key, enum cw_free_result result)
{
    struct cw_request_free freed;

    cw_request_free_begin(CW_SPACE_ADDRESS, key, &freed);
    cr_assert_neq(freed.block, 0u);
    cw_request_free_end(&freed, text_of("put"), result, result != CW_FREE_DONE);
}

static void put(uint64_t key)
{
    end_free(key, CW_FREE_DONE);
}

static void copy_and_put(uint64_t to, uint64_t from, uint64_t copied)
{
    cw_regrowth_copied(to, from, copied);
    put(from);
}

/* The block is replaced by one of another size, with as many bytes copied; the new one. */
static uint64_t resize(uint64_t key, uint64_t to, uint64_t copied)
{
    uint64_t larger = get(to);

    copy_and_put(larger, key, copied);
    return larger;
}

/* ---- what came of it ---- */

static uint32_t records(void)
{
    return core_count(CW_TABLE_REGROWTH);
}

/* Of the record by index, all zero if there is none. */
static struct cw_live_regrowth *record(uint32_t index)
{
    static struct cw_live_regrowth none;

    return index <= records() ? core_at(CW_TABLE_REGROWTH, index) : &none;
}

static uint64_t resizes(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 1; i <= records(); i++)
        sum += record(i)->resizes;
    return sum;
}

/* ---- vectors ---- */

Test(regrowth, a_vector_that_doubles)
{
    uint64_t key = get(MIB), begin = cw_session_now();
    const struct cw_live_regrowth *found;

    for (uint64_t bytes = MIB; bytes < 64 * MIB; bytes *= 2) {
        fake_driver.now_ns += 1000;
        key = resize(key, 2 * bytes, bytes);
    }
    found = record(1);
    cr_assert_eq(records(), 1u);
    cr_expect_eq(found->resizes, 6u);
    cr_expect_eq(found->copied_bytes, 63 * MIB);
    cr_expect_eq(found->factor_sum, 6 * 2000u);
    cr_expect_eq(found->chains, 1u);
    cr_expect_eq(found->first_bytes, MIB);
    cr_expect_eq(found->largest_bytes, 64 * MIB);
    cr_expect_eq(found->first_ns, begin - 1 + 1000);
    cr_expect_eq(found->last_ns, begin - 1 + 6000);
    cr_expect_eq(cw_site_at(found->site)->kind, CW_KIND_ASYNC);
    put(key);
    cr_expect_eq(resizes(), 6u);
}

Test(regrowth, a_vector_of_the_pool)
{
    uint64_t key = pool_get(MIB);

    for (uint64_t bytes = MIB; bytes < 64 * MIB; bytes *= 2) {
        uint64_t larger = pool_get(2 * bytes);

        cw_regrowth_copied(larger, key, bytes);
        cr_assert_eq(pool_put(key), CW_POOL_KEPT);
        key = larger;
    }
    cr_assert_eq(records(), 1u);
    cr_expect_eq(record(1)->resizes, 6u);
    cr_expect_eq(record(1)->copied_bytes, 63 * MIB);
    cr_expect_eq(record(1)->chains, 1u);
    cr_expect_eq(record(1)->largest_bytes, 64 * MIB);
}

Test(regrowth, a_factor_of_one_and_a_half)
{
    uint64_t key = get(1000);

    key = resize(key, 1500, 1000);
    key = resize(key, 2250, 1500);
    key = resize(key, 3375, 2250);
    cr_expect_eq(record(1)->resizes, 3u);
    cr_expect_eq(record(1)->factor_sum, 3 * 1500u);
    cr_expect_eq(record(1)->copied_bytes, 4750u);
}

Test(regrowth, chains_begin_with_what_replaced_nothing)
{
    uint64_t key = get(8 * KIB);

    key = resize(resize(key, 16 * KIB, 8 * KIB), 32 * KIB, 16 * KIB);
    put(key);
    key = get(4 * KIB);
    key = resize(key, 8 * KIB, 4 * KIB);
    put(key);
    key = get(20 * KIB);
    key = resize(key, 30 * KIB, 20 * KIB);
    put(get(KIB));
    cr_assert_eq(records(), 1u);
    cr_expect_eq(record(1)->chains, 3u);
    cr_expect_eq(record(1)->resizes, 4u);
    cr_expect_eq(record(1)->first_bytes, 4 * KIB);
    cr_expect_eq(record(1)->largest_bytes, 32 * KIB);
}

Test(regrowth, a_block_of_the_pool_begins_anew_with_each_owner)
{
    uint64_t small = pool_get(4 * KIB), large = pool_get(8 * KIB), largest;

    cw_regrowth_copied(large, small, 4 * KIB);
    pool_put(small);
    pool_put(large);
    /* The same memory: it has replaced nothing yet. */
    cr_assert_eq(pool_hits(CW_POOL_DEVICE, 8 * KIB, &large), 1);
    largest = pool_get(16 * KIB);
    cw_regrowth_copied(largest, large, 8 * KIB);
    pool_put(large);
    cr_expect_eq(record(1)->resizes, 2u);
    cr_expect_eq(record(1)->chains, 2u);
}

Test(regrowth, two_vectors_of_one_place_take_turns)
{
    uint64_t a = get(100), b = get(1000);

    for (unsigned i = 0; i < 4; i++) {
        uint64_t larger_a = get(200u << i), larger_b = get(2000u << i);

        cw_regrowth_copied(larger_a, a, 100u << i);
        cw_regrowth_copied(larger_b, b, 1000u << i);
        put(b);
        put(a);
        a = larger_a;
        b = larger_b;
    }
    cr_assert_eq(records(), 1u);
    cr_expect_eq(record(1)->resizes, 8u);
    cr_expect_eq(record(1)->chains, 2u);
    cr_expect_eq(record(1)->copied_bytes, 15 * 1100u);
    cr_expect_eq(record(1)->factor_sum, 8 * 2000u);
    cr_expect_eq(record(1)->first_bytes, 100u);
}

Test(regrowth, a_block_of_each_place_has_a_record)
{
    static const struct place places[] = {
        {"one", CW_KIND_ASYNC, 0},
        {"two", CW_KIND_ASYNC, 0},
        {"one", CW_KIND_MANAGED, 0},
        {"one", CW_KIND_ASYNC, 1},
        {"one", CW_KIND_PINNED, CW_DEVICE_HOST},
    };

    for (unsigned round = 1; round <= 2; round++) {
        for (unsigned i = 0; i < 5; i++) {
            uint64_t small = get_at(places[i], 100);
            uint64_t large = get_at(places[i], 200);

            copy_and_put(large, small, 100);
            put(large);
        }
        cr_assert_eq(records(), 5u);
        for (uint32_t i = 1; i <= 5; i++)
            cr_expect_eq(record(i)->resizes, round);
    }
    cr_expect_eq(cw_site_at(record(4)->site)->device, 1);
    cr_expect_eq(cw_site_at(record(5)->site)->device, CW_DEVICE_HOST);
}

/* ---- what is no resize ---- */

Test(regrowth, a_copy_without_a_free_or_a_free_without_a_copy)
{
    uint64_t small = get(100), large = get(200);

    cw_regrowth_copied(large, small, 100);
    put(get(100));
    cr_expect_eq(records(), 0u);
    put(small);
    cr_expect_eq(resizes(), 1u);
}

Test(regrowth, a_target_that_is_not_larger)
{
    resize(get(200), 100, 100);
    resize(get(200), 200, 200);
    cr_expect_eq(resizes(), 0u);
    resize(get(200), 201, 200);
    cr_expect_eq(resizes(), 1u);
}

Test(regrowth, a_target_that_is_older)
{
    uint64_t large = get(200), small;

    fake_driver.now_ns += 1000;
    small = get(100);
    copy_and_put(large, small, 100);
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, a_target_from_elsewhere)
{
    static const struct place places[] = {
        {"other", CW_KIND_ASYNC, 0}, {"grow", CW_KIND_MANAGED, 0}, {"grow", CW_KIND_ASYNC, 1}};

    for (unsigned i = 0; i < 3; i++) {
        uint64_t small = get(100);

        copy_and_put(get_at(places[i], 200), small, 100);
    }
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, memory_of_another_process)
{
    struct place place = {"open", CW_KIND_IPC, 0};
    uint64_t small = get_at(place, 100), large = get_at(place, 200);

    copy_and_put(large, small, 100);
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, half_of_a_block_or_less)
{
    resize(get(200), 400, 100);
    resize(get(200), 400, 0);
    cr_expect_eq(resizes(), 0u);
    resize(get(200), 400, 101);
    cr_expect_eq(resizes(), 1u);
    cr_expect_eq(record(1)->copied_bytes, 101u);
}

Test(regrowth, what_is_no_block_or_not_its_beginning)
{
    uint64_t small = get(100), large = get(200);

    cw_regrowth_copied(large, 0x1234, 100);
    cw_regrowth_copied(0x1234, small, 100);
    cw_regrowth_copied(large + 8, small, 100);
    cw_regrowth_copied(large, small + 8, 92);
    put(small);
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, a_free_that_the_driver_refuses_decides_nothing)
{
    uint64_t small = get(100), large = get(200);

    cw_regrowth_copied(large, small, 100);
    end_free(small, CW_FREE_FAILED);
    cr_expect_eq(resizes(), 0u);
    end_free(large, CW_FREE_REFUSED);
    put(small);
    cr_expect_eq(resizes(), 1u);
}

Test(regrowth, a_context_that_ends)
{
    uint64_t small = pool_get(4 * KIB), large;

    fake_set_current(pooled_context(1, 0));
    large = pool_get(8 * KIB);
    cw_regrowth_copied(large, small, 4 * KIB);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_count(CW_BLOCK_LIVE), 1u);
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, copies_of_a_capture)
{
    uint64_t small = get(100), large = get(200);

    cw_capture_begin();
    cw_capture_started(0x51, pool_index(FIRST_CONTEXT), 1);
    cw_regrowth_copied(large, small, 100);
    cw_capture_ended(0x51, cw_capture_find(0x51));
    put(small);
    cr_expect_eq(resizes(), 0u);
    resize(get(100), 200, 100);
    cr_expect_eq(resizes(), 1u);
}

Test(regrowth_off, nothing_is_looked_at)
{
    core_options()->growth = CW_GROWTH_OFF;
    pool_setup();
    cr_expect_eq(cw_regrowth_is_on(), 0);
}

/* ---- who replaces whom ---- */

Test(regrowth, chunks_add_up)
{
    uint64_t small = get(100), large = get(200), other = get(100);

    cw_regrowth_copied(large, small, 30);
    cw_regrowth_copied(0x1234, other, 100); /* no pair of its own */
    cw_regrowth_copied(large + 30, small + 30, 30);
    cw_regrowth_copied(large + 70, small + 60, 40);
    put(small);
    cr_expect_eq(resizes(), 1u);
    cr_expect_eq(record(1)->copied_bytes, 100u);
}

Test(regrowth, chunks_of_other_blocks_do_not)
{
    uint64_t before = get(100), small = get(100), large = get(200), other = get(100);

    cw_regrowth_copied(large, small, 30);
    cw_regrowth_copied(large + 30, before + 30, 30);
    cw_regrowth_copied(before + 30, small + 30, 30);
    cw_regrowth_copied(large + 30, other + 30, 30);
    cw_regrowth_copied(other + 30, small + 30, 30);
    cw_regrowth_copied(large + 200, small + 30, 30);
    cw_regrowth_copied(large + 30, small + 100, 30);
    put(small);
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, chunks_begin_anew_with_the_address)
{
    uint64_t small = pool_get(4 * KIB), large = pool_get(8 * KIB), again = 0;

    cw_regrowth_copied(large, small, KIB);
    pool_put(small);
    cr_assert_eq(pool_hits(CW_POOL_DEVICE, 4 * KIB, &again), 1);
    cr_assert_eq(again, small);
    cw_regrowth_copied(large + KIB, small + KIB, 3 * KIB);
    pool_put(small);
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, what_is_copied_again_counts_once)
{
    uint64_t small = get(100), large = get(200);

    for (unsigned i = 0; i < 10; i++)
        cw_regrowth_copied(large, small, 90);
    put(small);
    cr_expect_eq(resizes(), 1u);
    cr_expect_eq(record(1)->copied_bytes, 100u);
}

Test(regrowth, a_target_that_is_freed_first)
{
    uint64_t small = get(100), large = get(200);

    cw_regrowth_copied(large, small, 100);
    put(large);
    next_key = large; /* whatever has the address and the record next */
    cr_assert_eq(get(200), large);
    put(small);
    cr_expect_eq(resizes(), 0u);
}

Test(regrowth, an_address_that_the_pool_gives_to_a_new_owner)
{
    uint64_t small = pool_get(4 * KIB), large = pool_get(8 * KIB), again = 0;

    /* That of the target, between the copy and the free. */
    cw_regrowth_copied(large, small, 4 * KIB);
    pool_put(large);
    cr_assert_eq(pool_hits(CW_POOL_DEVICE, 8 * KIB, &again), 1);
    cr_assert_eq(again, large);
    pool_put(small);
    cr_expect_eq(resizes(), 0u);

    /* That of the source, after the free. */
    cr_assert_eq(pool_hits(CW_POOL_DEVICE, 4 * KIB, &small), 1);
    pool_put(large);
    large = pool_get(8 * KIB);
    cw_regrowth_copied(large, small, 4 * KIB);
    pool_put(small);
    cr_expect_eq(resizes(), 1u);
    cr_assert_eq(pool_hits(CW_POOL_DEVICE, 4 * KIB, &again), 1);
    cr_assert_eq(again, small);
    pool_put(again);
    cr_expect_eq(resizes(), 1u);
}

Test(regrowth, an_address_whose_free_was_not_seen)
{
    uint64_t small = get(100), large = get(200);
    struct cw_request request = core_request(CW_KIND_ASYNC, 0, small, 100);

    cw_regrowth_copied(large, small, 100);
    /* The driver gives the address out again: the block before it has been freed. */
    cr_assert_neq(cw_request_granted(&request, text_of("grow")), 0u);
    cr_expect_eq(resizes(), 1u);
    put(small);
    cr_expect_eq(resizes(), 1u);
}

Test(regrowth, a_block_replaces_one_only)
{
    uint64_t one = get(100), two = get(120), large = get(200);

    cw_regrowth_copied(large, one, 100);
    cw_regrowth_copied(large, two, 120);
    put(two);
    put(one);
    cr_expect_eq(resizes(), 1u);
    cr_expect_eq(record(1)->copied_bytes, 120u);
    one = get(150);
    copy_and_put(large, one, 150);
    cr_expect_eq(resizes(), 1u);
}

Test(regrowth, a_block_is_replaced_once_by_the_last_that_it_was_copied_to)
{
    uint64_t tiny = get(50), small = get(100), first = get(200), second = get(300),
             third = get(400);

    cw_regrowth_copied(first, small, 100);
    cw_regrowth_copied(second, small, 100);
    cw_regrowth_copied(third, small, 10);
    put(small);
    cr_expect_eq(resizes(), 1u);
    cr_expect_eq(record(1)->largest_bytes, 300u);
    cr_expect_eq(record(1)->factor_sum, 3000u);
    next_key = small;
    cr_assert_eq(get(100), small);
    cw_regrowth_copied(small, tiny, 10); /* the next owner is in a pair too */
    put(small);
    put(first);
    put(second);
    cr_expect_eq(resizes(), 1u);
}

/* ---- bounds ---- */

Test(regrowth, of_too_many_pairs_the_oldest_is_forgotten)
{
    enum { COUNT = CW_REGROWTH_PAIRS + 10 };
    static uint64_t small[COUNT];

    for (unsigned i = 0; i < COUNT; i++) {
        small[i] = get(100);
        cw_regrowth_copied(get(200), small[i], 100);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        put(small[i]);
        cr_assert_eq(resizes(), i < 10 ? 0u : i - 9, "%u", i);
    }
}

Test(regrowth, of_too_many_places_the_last_have_no_record)
{
    char api[32];
    struct place place = {api, CW_KIND_ASYNC, 0};

    for (unsigned i = 0; i < CW_REGROWTH_RECORDS + 20; i++) {
        uint64_t small, large;

        snprintf(api, sizeof(api), "place%u", i);
        small = get_at(place, 100);
        large = get_at(place, 200);
        copy_and_put(large, small, 100);
        put(large);
    }
    cr_expect_eq(records(), CW_REGROWTH_RECORDS);
    cr_expect_eq(resizes(), CW_REGROWTH_RECORDS);
}

Test(regrowth, a_fork_forgets)
{
    uint64_t first = next_key, small = get(100), large = get(200);

    cw_regrowth_copied(large, small, 60);
    resize(get(100), 200, 100);
    cr_assert_eq(resizes(), 1u);
    cw_lifecycle_reset();
    pool_setup();
    /* The same blocks, as it were. */
    next_key = first;
    cr_assert_eq(get(100), small);
    cr_assert_eq(get(200), large);
    cr_expect_eq(records(), 0u);
    copy_and_put(large, small, 90);
    cr_assert_eq(records(), 1u);
    cr_expect_eq(record(1)->resizes, 1u);
    cr_expect_eq(record(1)->copied_bytes, 90u);
}

/* ---- a free and a copy of the same block at once ---- */

Test(regrowth, a_free_that_looks_before_the_mark_is_there)
{
    uint64_t small = pool_get(4 * KIB), large = pool_get(8 * KIB), again = 0;

    for (int is_reused = 0; is_reused < 2; is_reused++) {
        cw_regrowth_copied(large, small, 4 * KIB);
        cw_tracker_at(cw_tracker_find(CW_SPACE_ADDRESS, large))->flags &= (uint8_t)~CW_BLOCK_PAIRED;
        pool_put(large);
        if (is_reused)
            cr_assert_eq(pool_hits(CW_POOL_DEVICE, 8 * KIB, &again), 1);
        pool_put(small);
        cr_expect_eq(resizes(), 0u);
        cr_assert_eq(pool_hits(CW_POOL_DEVICE, 4 * KIB, &small), 1);
        if (!is_reused)
            cr_assert_eq(pool_hits(CW_POOL_DEVICE, 8 * KIB, &large), 1);
    }
    cr_expect_eq(again, large);
}
