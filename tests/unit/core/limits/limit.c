/* SPDX-License-Identifier: MIT */
/* Limits: reservations never exceed what may be held, whoever asks; how options are applied. */
#include "core/limits/limit.h"

#include <criterion/criterion.h>

#include <sched.h>

#include "ask_fixture.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/account/usage.h"

static enum cw_cause why;

static int reserve(uint64_t bytes)
{
    uint64_t reserved = 0;
    int rc = cw_limit_reserve(0, bytes, &reserved, &why);

    cr_expect_eq(reserved, rc == 0 && cw_limit_of(0) + ask_memory()->min_free != 0 ? bytes : 0);
    return rc;
}

/* ---- one thread ---- */

Test(limit, is_exact_to_one_byte)
{
    ask_start("1000000", "", 0);
    cr_expect_eq(reserve(999999), 0);
    cr_expect_eq(reserve(2), -1);
    cr_expect_eq(why, CW_CAUSE_LIMIT);
    cr_expect_eq(reserve(1), 0);
    cr_expect_eq(reserve(1), -1);
    cr_expect_eq(cw_limit_shortfall(0, 1), 1);
    cr_expect_eq(cw_limit_room(0), 0);
    cr_expect_eq(cw_usage_in_flight(0), 1000000);
    cw_limit_cancel(0, 999999);
    cw_limit_cancel(0, 1);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_eq(core_held(0), 0);
    cr_expect_eq(cw_limit_room(0), 1000000);
    cr_expect_eq(reserve(1000001), -1);
    cr_expect_eq(reserve(UINT64_MAX), -1);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_eq(reserve(1000000), 0);
}

Test(limit, a_request_of_any_size_falls_short)
{
    ask_start("1000000", "", 0);
    reserve(400000);
    cr_expect_eq(cw_limit_shortfall(0, 600000), 0);
    cr_expect_eq(cw_limit_shortfall(0, 700000), 100000);
    cr_expect_eq(reserve(UINT64_MAX), -1);
    cr_expect_gt(cw_limit_shortfall(0, UINT64_MAX), UINT64_MAX / 2);
}

PoolTest(limit, without_one_nothing_is_counted_twice_or_refused)
{
    ask_start("", "", 0);
    cr_expect_not(cw_limit_is_on());
    cr_expect_eq(reserve(UINT64_MAX), 0);
    cr_expect_eq(core_held(0), 0);
    cr_expect_eq(cw_limit_room(0), UINT64_MAX);
    cr_expect_eq(cw_limit_of(0), 0);
}

Test(limit, is_a_share_of_the_device)
{
    ask_start("25%", "", 4 * GIB);
    cr_expect_eq(cw_limit_of(0), GIB);
    cr_expect_eq(reserve(GIB + 1), -1);
    cr_expect_eq(reserve(GIB), 0);
}

PoolTest(limit, of_a_device_by_ordinal_leaves_others_alone)
{
    uint64_t reserved = 7;

    ask_start("1:8M", "", 0);
    cr_expect_eq(cw_limit_of(0), 0);
    cr_expect_eq(cw_limit_of(1), 8 * MIB);
    cr_expect_eq(cw_limit_reserve(0, GIB, &reserved, &why), 0);
    cr_expect_eq(reserved, 0);
    cr_expect_eq(core_held(0), 0);
    cr_expect_eq(cw_limit_reserve(1, 8 * MIB + 1, &reserved, &why), -1);
    cr_expect_eq(cw_limit_reserve(CW_DEVICE_HOST, GIB, &reserved, &why), 0);
}

PoolTest(limit, of_a_device_by_uuid_before_the_one_for_all)
{
    ask_start("GPU-f1000000-0000-0000-0000-000000000000:8M,64M", "", 0);
    cr_expect_eq(cw_limit_of(0), 64 * MIB);
    cr_expect_eq(cw_limit_of(1), 8 * MIB);
}

PoolTest(limit, counts_what_lies_idle_and_what_driver_pools_do_not_use)
{
    ask_start("1000M", "", 0);
    pool_put(ask_get(200 * MIB));
    cr_expect_eq(core_held(0), 200 * MIB);
    fake_driver.pool_spare = 300 * MIB;
    cw_driver_pool_used(0);
    cr_expect_eq(reserve(500 * MIB + 1), -1);
    cr_expect_eq(reserve(500 * MIB), 0);
    cw_limit_cancel(0, 500 * MIB);
    cr_expect_eq(cw_driver_pool_spare(0), 300 * MIB);
}

/* As the driver's pools and we see it. */
static void free_async(uint64_t bytes)
{
    fake_driver.pool_used -= bytes;
    fake_driver.pool_spare += bytes;
    cw_driver_pool_returned(0, bytes);
    cw_usage_sub(0, 0, bytes);
}

Test(limit, freed_stream_ordered_memory_stays_held_until_the_pools_give_it_back)
{
    uint64_t reserved;

    ask_start("1000M", "", 0);
    cr_assert_eq(cw_limit_reserve(0, 400 * MIB, &reserved, &why), 0);
    fake_driver.pool_used = 400 * MIB;
    cw_driver_pool_taken(0, 400 * MIB);
    cw_limit_committed(0, reserved);
    cr_expect_eq(cw_driver_pool_spare(0), 0);
    free_async(100 * MIB);
    cr_expect_eq(core_held(0), 300 * MIB);
    cr_expect_eq(cw_driver_pool_spare(0), 100 * MIB); /* before anybody has asked */
    cr_expect_eq(cw_limit_reserve(0, 600 * MIB + 1, &reserved, &why), -1);
    cr_expect_eq(cw_driver_pool_trim(0), 100 * MIB);
    cr_expect_eq(cw_driver_pool_spare(0), 0);
    cr_expect_eq(cw_limit_reserve(0, 700 * MIB, &reserved, &why), 0);
}

PoolTest(limit, a_block_takes_its_reservation_over)
{
    ask_start("1000M", "", 0);
    uint64_t key = ask_get(600 * MIB);

    cr_expect_eq(core_held(0), 600 * MIB);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_eq(cw_device_at(0)->peak_held, 600 * MIB);
    cr_expect_eq(ask_get(401 * MIB), 0);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    pool_put(key);
    cr_expect_neq(ask_get(1000 * MIB), 0);
}

PoolTest(limit, blocks_taken_ahead_are_within_it_and_make_the_peak)
{
    cr_assert_eq(cw_batches_parse("100M:8", &core_options()->prewarm), 0);
    ask_start("450M", "", 0);
    ask_get(100 * MIB);
    cr_expect_eq(core_held(0), 400 * MIB);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_eq(cw_device_at(0)->peak_held, 400 * MIB);
    cr_expect_eq(pool_counters(0)->prewarmed, 4);
}

/* ---- changed while the process runs ---- */

PoolTest(limit, lowered_adds_nothing_and_underflows_nothing)
{
    const struct cw_live_event *event;
    struct cw_memory_view view;
    uint64_t key[8];

    ask_start("1000M", "", 0);
    for (int i = 0; i < 8; i++)
        key[i] = ask_get(100 * MIB);
    cw_limit_set(0, 300 * MIB);
    cr_assert_eq(ask_events(CW_EVENT_LIMIT, &event), 1);
    cr_expect_eq(event->bytes, 300 * MIB);
    cr_expect_eq(core_held(0), 800 * MIB);
    cr_expect_eq(reserve(1), -1);
    cr_expect_eq(cw_limit_room(0), 0);
    cr_expect_eq(cw_limit_shortfall(0, 1), 500 * MIB + 1);
    cw_limit_view(0, 60 * GIB, 80 * GIB, &view);
    cr_expect_eq(view.free_bytes, 0);
    cr_expect_eq(view.total_bytes, 300 * MIB);
    for (int i = 0; i < 8; i++)
        pool_put(key[i]);
    cr_expect_neq(ask_get(300 * MIB), 0);
    cr_expect_leq(core_held(0), 300 * MIB);
    cr_expect_eq(cw_usage_in_flight(0), 0);
}

PoolTest(limit, set_to_none_is_none_whatever_the_options_say)
{
    ask_start("100M", "", 0);
    cw_limit_set(0, 0);
    cr_expect_eq(cw_limit_of(0), 0);
    cr_expect_neq(ask_get(GIB), 0);
}

PoolTest(limit, set_before_the_device_is_known_keeps_the_options_min_free)
{
    ask_start("", "1G", 4 * GIB);
    fake_driver.fails[FAKE_DEVICE_FACTS] = 1;
    cw_limit_set(0, 2 * GIB);
    cr_expect_eq(cw_limit_of(0), 2 * GIB);
    fake_driver.fails[FAKE_DEVICE_FACTS] = 0;
    cr_expect_eq(cw_limit_of(0), 2 * GIB);
    cr_expect_eq(ask_memory()->min_free, GIB);
}

Test(limit, can_be_set_where_the_options_had_none)
{
    ask_start("", "", 0);
    ask_get(100 * MIB);
    cw_limit_set(0, 200 * MIB);
    cr_expect_eq(reserve(100 * MIB + 1), -1);
    cr_expect_eq(reserve(100 * MIB), 0);
}

/* ---- MIN_FREE ---- */

Test(limit, min_free_stays_free)
{
    ask_start("", "1G", 4 * GIB);
    cr_expect_eq(reserve(3 * GIB + 1), -1);
    cr_expect_eq(why, CW_CAUSE_MIN_FREE);
    cr_expect_eq(reserve(3 * GIB), 0);
    cr_expect_eq(reserve(1), -1);
}

Test(limit, the_stricter_of_the_two_is_the_cause)
{
    ask_start("2G", "1G", 4 * GIB);
    cr_expect_eq(reserve(2 * GIB + 1), -1);
    cr_expect_eq(why, CW_CAUSE_LIMIT);
    fake_driver.others = 2 * GIB;
    fake_driver.now_ns += 200 * FAKE_MS; /* else the device is not asked: it looked far from full */
    cr_expect_eq(reserve(GIB + 1), -1);
    cr_expect_eq(why, CW_CAUSE_MIN_FREE);
    cr_expect_eq(reserve(GIB), 0);
}

PoolTest(limit, min_free_sees_what_another_process_takes_in_between)
{
    uint64_t taken = 0;

    ask_start("", "512M", 4 * GIB);
    for (int i = 0; i < 100; i++) {
        if (i % 3 == 0) {
            fake_driver.others += 50 * MIB;
            fake_driver.now_ns += 200 * FAKE_MS;
        }
        if (ask_get(64 * MIB) == 0)
            break;
        taken += 64 * MIB;
        cr_assert_geq(fake_driver.capacity - fake_driver.others - fake_driver.taken_bytes,
                      512 * MIB);
    }
    cr_expect_gt(taken, 2 * GIB);
    fake_driver.others += GIB; /* below now, by no fault of ours */
    cr_expect_eq(ask_get(1 * MIB), 0);
    fake_driver.others = 0;
    cr_expect_neq(ask_get(1 * MIB), 0);
}

/* ---- many threads ---- */

#define THREADS 16
#define ROUNDS  6300
#define MOST    (160 * MIB)
#define UNIT    (1 * MIB)

static _Atomic unsigned served, refused, lowered;

static int reserve_in_thread(uint64_t bytes, uint64_t *out)
{
    enum cw_cause cause;

    return cw_limit_reserve(0, bytes, out, &cause);
}

static void run_at_random(unsigned id)
{
    uint64_t random = id + 1, held[8] = {0}, key[8] = {0};

    fake_set_current(FIRST_CONTEXT);
    /* One thread alone is hardly ever refused: on a busy machine it takes more rounds. */
    for (int i = 0; i < ROUNDS || refused <= 1000; i++) {
        uint64_t now = next_random(&random), bytes = ((now >> 8) % 24 + 1) * UNIT - (now >> 40) % 9;
        unsigned at = (unsigned)(now % 8);

        if (key[at] != 0) {
            pool_put(key[at]);
            key[at] = 0;
        } else if (held[at] != 0) {
            cw_limit_cancel(0, held[at]);
            held[at] = 0;
        } else if (now >> 60 < 4) {
            if (reserve_in_thread(bytes, &held[at]) == 0)
                served++;
            else
                refused++;
        } else {
            key[at] = ask_get(bytes);
            if (key[at] != 0)
                served++;
            else
                refused++;
        }
        cr_assert_leq(cw_device_at(0)->held_bytes, MOST);
        if (now >> 50 == 0)
            sched_yield();
    }
    for (int i = 0; i < 8; i++) {
        if (key[i] != 0)
            pool_put(key[i]);
        cw_limit_cancel(0, held[i]);
    }
}

PoolTest(limit, no_interleaving_holds_one_byte_too_many)
{
    ask_start("160M", "", 8 * GIB);
    core_options()->pressure = (struct cw_levels){{60, 80, 95}};
    run_threads(THREADS, run_at_random);
    cr_expect_leq(fake_driver.most_taken, MOST);
    cr_expect_leq(cw_device_at(0)->peak_held, MOST);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_eq(core_live(0), 0);
    cr_expect_eq(core_held(0), fake_driver.taken_bytes);
    cr_expect_gt(served, 1000);
    cr_expect_gt(refused, 1000);
    cr_expect_eq(pool_check(), 0);
    pool_reclaim(0);
    cr_expect_eq(core_held(0), 0);
}

/* Each thread has at most one block of half the limit and there are two of them: there is always
 * memory, though the other thread may keep what it freed as slack. */
static void take_half(unsigned id)
{
    uint64_t reserved = 0;

    fake_set_current(FIRST_CONTEXT);
    for (int i = 0; i < 100000; i++) {
        if (reserve_in_thread(80 * MIB, &reserved) != 0)
            refused++;
        else
            served++;
        if ((i + (int)id) % 64 == 0)
            sched_yield();
        cw_limit_cancel(0, reserved);
    }
}

PoolTest(limit, slack_of_other_threads_refuses_nothing)
{
    ask_start("160M", "", 8 * GIB);
    reserve(1);
    cw_limit_cancel(0, 1);
    run_threads(2, take_half);
    cr_expect_eq(refused, 0, "%u", refused);
    cr_expect_eq(core_held(0), 0);
    cr_expect_eq(cw_usage_in_flight(0), 0);
}

/* The very first request of each thread, while another one is still asking what the device is. */
static void linger(enum fake_call call)
{
    if (call == FAKE_DEVICE_FACTS)
        for (int i = 0; i < 100; i++)
            sched_yield();
}

static void take_first(unsigned id)
{
    (void)id;
    fake_set_current(FIRST_CONTEXT);
    if (ask_get(64 * MIB) == 0)
        refused++;
}

PoolTest(limit, holds_from_the_first_request_on)
{
    ask_start("160M", "", 8 * GIB);
    fake_driver.inside = linger;
    run_threads(THREADS, take_first);
    cr_expect_eq(refused, THREADS - 2);
    cr_expect_leq(fake_driver.most_taken, MOST);
}

static void lower_meanwhile(unsigned id)
{
    uint64_t random = id + 1, key[4] = {0};

    fake_set_current(FIRST_CONTEXT);
    for (int i = 0; i < 1500; i++) {
        uint64_t now = next_random(&random);

        if (id == 0 && i == 700) {
            cw_limit_set(0, 40 * MIB);
            lowered = 1;
        }
        if (key[now % 4] != 0) {
            pool_put(key[now % 4]);
            key[now % 4] = 0;
        } else {
            key[now % 4] = ask_get(((now >> 8) % 12 + 1) * UNIT);
        }
    }
    for (int i = 0; i < 4; i++)
        if (key[i] != 0)
            pool_put(key[i]);
}

PoolTest(limit, lowered_while_threads_are_at_work_it_holds_in_the_end)
{
    ask_start("160M", "", 8 * GIB);
    run_threads(THREADS, lower_meanwhile);
    cr_expect_eq(lowered, 1);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_eq(core_live(0), 0);
    cr_expect_eq(core_held(0), fake_driver.taken_bytes);
    fake_driver.most_taken = 0;
    run_threads(2, take_first); /* 64 MiB: does not fit any more */
    cr_expect_eq(refused, 2);
    cr_expect_neq(ask_get(40 * MIB), 0);
    cr_expect_leq(core_held(0), 40 * MIB);
    cr_expect_leq(fake_driver.most_taken, MOST);
}

#define LEAST (1920 * MIB)

/* A free may be under way while another thread asks the device: what it is about to give back must
 * not be counted as given back and as held. */
static void keep_free(unsigned id)
{
    uint64_t random = id + 1, key[8] = {0};

    fake_set_current(FIRST_CONTEXT);
    /* One that is stopped while it holds nearly all lets the others have little. */
    for (int i = 0; i < 1000 || served <= 1000; i++) {
        uint64_t now = next_random(&random), *at = &key[now % 8];

        if (*at != 0) {
            pool_put(*at);
            *at = 0;
        } else if ((*at = ask_get(((now >> 8) % 24 + 1) * UNIT)) != 0) {
            served++;
        } else {
            refused++;
        }
        if (i % 4 == 0)
            sched_yield();
    }
    for (int i = 0; i < 8; i++)
        if (key[i] != 0)
            pool_put(key[i]);
}

PoolTest(limit, min_free_stays_free_with_many_threads)
{
    ask_start("", "1920M", 2 * GIB);
    run_threads(THREADS, keep_free);
    cr_expect_leq(fake_driver.most_taken, fake_driver.capacity - LEAST, "%ju over",
                  (uintmax_t)(fake_driver.most_taken - (fake_driver.capacity - LEAST)));
    cr_expect_eq(cw_usage_in_flight(0), 0);
    cr_expect_gt(served, 1000);
    cr_expect_gt(refused, 0);
}
