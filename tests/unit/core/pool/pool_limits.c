/* SPDX-License-Identifier: MIT */
/*
 * The pool with a capacity, a limit and other processes, against what must always hold: no byte is
 * held beyond the limit, sums agree, and no request fails that free and idle memory together have
 * room for. One thread; all work of the device is over, or waited for by the ladder.
 */
#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/limits/limit.h"
#include "core/account/usage.h"

#define OPERATIONS 12000
#define KEYS       64
#define CAPACITY   (1000 * MIB)

static uint64_t seed, limit, min_free, key[KEYS];
static unsigned served, refused, hits;

static uint64_t random_number(void)
{
    return next_random(&seed);
}

static uint64_t random_size(void)
{
    uint64_t random = random_number();

    switch (random % 8) {
    case 0:
        return (random >> 8) % (64 * KIB) + 1;
    case 1:
    case 2:
        return (random >> 8) % (4 * MIB) + 1;
    case 3:
        return ((random >> 8) % 400 + 100) * MIB + (random >> 40) % 3;
    default:
        return ((random >> 8) % 12 + 1) * 5 * MIB;
    }
}

/* The fake has no fragmentation: all that is free, and all that lies idle. Others may have taken
 * more than there was. */
static int must_fit(uint64_t bytes)
{
    uint64_t idle = pool_sums().idle_bytes, live = core_held(0) - idle;

    return bytes + min_free + fake_driver.others + live <= CAPACITY &&
           (limit == 0 || live + bytes <= limit);
}

static void allocate(unsigned at)
{
    uint64_t bytes = random_size();
    int fits = must_fit(bytes);
    struct ask ask = ask_for(bytes);

    key[at] = ask.key;
    hits += (unsigned)ask.was_hit;
    if (ask.key != 0) {
        served++;
        return;
    }
    refused++;
    cr_assert_not(fits, "%ju bytes were refused", (uintmax_t)bytes);
}

static void change_limit(void)
{
    if (limit == 0)
        return;
    limit = (random_number() % 9 + 2) * 100 * MIB;
    cw_limit_set(0, limit);
}

static void operate(void)
{
    static uint64_t held_before;
    unsigned at = (unsigned)(random_number() % KEYS);
    uint64_t what = random_number() % 64;

    held_before = core_held(0);
    if (what == 0) {
        fake_driver.others = random_number() % 4 * 100 * MIB;
        fake_driver.now_ns += 200 * FAKE_MS;
    } else if (what == 1) {
        pool_sync(FIRST_CONTEXT);
    } else if (what == 2) {
        fake_driver.now_ns += 3000 * FAKE_MS;
    } else if (what == 3) {
        fake_submit(FIRST_CONTEXT);
    } else if (what == 4) {
        change_limit();
    } else if (key[at] != 0) {
        pool_put(key[at]);
        key[at] = 0;
    } else {
        allocate(at);
    }
    if (limit != 0)
        cr_assert(core_held(0) <= limit || core_held(0) <= held_before);
    cr_assert_eq(core_held(0), fake_driver.taken_bytes);
    cr_assert_eq(cw_usage_in_flight(0), 0);
}

static void run(const char *limit_text, const char *min_free_text, enum cw_free_sync free_sync)
{
    core_options()->free_sync = free_sync;
    cr_assert_eq(cw_sizes_parse("50%", 0, &core_options()->pool_max), 0);
    ask_start(limit_text, min_free_text, CAPACITY);
    fake_driver.clock_step = FAKE_MS / 8;
    limit = cw_limit_of(0);
    min_free = cw_limit_is_on() ? ask_memory()->min_free : 0;
    for (int i = 0; i < OPERATIONS; i++) {
        operate();
        if (i % 499 == 0)
            cr_assert_eq(pool_check(), 0);
    }
    cr_expect_eq(pool_check(), 0);
    cr_expect_gt(served, 1000);
    cr_expect_gt(refused, 100);
    cr_expect_gt(hits, 100);
    if (limit == 0)
        cr_expect_gt(ask_memory()->rung[CW_RUNG_SUFFICIENT].helped, 0);
}

Test(pool_limits, nothing_is_refused_that_the_device_has_room_for)
{
    seed = 1;
    run("", "", CW_FREE_STRICT);
}

Test(pool_limits, nothing_is_refused_that_the_limit_has_room_for)
{
    seed = 2;
    run("600M", "", CW_FREE_STRICT);
}

Test(pool_limits, nothing_is_refused_when_frees_are_deferred)
{
    seed = 3;
    run("600M", "", CW_FREE_DEFERRED);
}

Test(pool_limits, nothing_is_refused_when_frees_are_deferred_without_a_limit)
{
    seed = 4;
    run("", "", CW_FREE_DEFERRED);
}

Test(pool_limits, min_free_stays_free)
{
    seed = 5;
    run("", "100M", CW_FREE_STRICT);
}
