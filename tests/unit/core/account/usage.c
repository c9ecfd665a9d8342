/* SPDX-License-Identifier: MIT */
/* The usage counters: sums and peaks are exact, whatever threads keep as slack. */
#include "core/account/usage.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>

#include "core/process/host.h"
#include "core/process/slot.h"
#include "fake_driver.h"

static void setup(void)
{
    core_start();
    cw_slot_init();
}

TestSuite(tally, .init = setup);

static const struct cw_live_device *device_at(uint8_t device)
{
    return &core_header()->device[device];
}

Test(tally, adds_and_takes_away)
{
    cw_usage_add(0, 100, 128, 1);
    cw_usage_add(1, 7, 8, 2);
    cw_usage_sub(0, 30, 32);
    cr_expect_eq(cw_usage_device(0).live, 70u);
    cr_expect_eq(cw_usage_device(0).held, 96u);
    cr_expect_eq(cw_usage_device(1).live, 7u);
    cr_expect_eq(cw_usage_device(1).held, 8u);
    cr_expect_eq(cw_usage_total(), 77u);
}

Test(tally, a_device_is_used_from_its_first_bytes_on)
{
    cr_expect_not(cw_usage_is_used(0));
    cw_usage_add(0, 100, 128, 1);
    cw_usage_sub(0, 100, 128);
    cr_expect(cw_usage_is_used(0));
    for (int is_refused = 1; is_refused >= 0; is_refused--) {
        cr_assert_eq(cw_usage_reserve(1, 128, 1000), 0);
        cr_expect_not(cw_usage_is_used(1), "the driver may still refuse it");
        if (is_refused)
            cw_usage_sub(1, 0, 128);
        else
            cw_usage_committed(1, 1);
    }
    cr_expect(cw_usage_is_used(1));
    cr_expect_not(cw_usage_is_used(2));
}

Test(tally, live_and_held_go_apart)
{
    cw_usage_add(0, 100, 128, 1);
    cw_usage_sub(0, 100, 0); /* the pool keeps it */
    cr_expect_eq(cw_usage_device(0).live, 0u);
    cr_expect_eq(cw_usage_device(0).held, 128u);
    cw_usage_add(0, 90, 0, 2); /* and serves it again */
    cw_usage_sub(0, 90, 128);
    cr_expect_eq(cw_usage_device(0).held, 0u);
    cr_expect_eq(cw_usage_total(), 0u);
    cr_expect_eq(device_at(0)->peak_bytes, 100u);
    cr_expect_eq(device_at(0)->peak_held, 128u);
}

Test(tally, a_steady_thread_writes_to_nothing_shared)
{
    uint64_t live, held;

    cw_usage_add(0, 4096, 4096, 1);
    cw_usage_sub(0, 4096, 4096);
    live = device_at(0)->live_bytes;
    held = device_at(0)->held_bytes;
    for (int i = 0; i < 100; i++) {
        cw_usage_add(0, 4096, 4096, 2);
        cr_expect_eq(device_at(0)->live_bytes, live);
        cr_expect_eq(device_at(0)->held_bytes, held);
        cr_expect_eq(cw_usage_device(0).live, 4096u);
        cw_usage_sub(0, 4096, 4096);
        cr_expect_eq(cw_usage_device(0).live, 0u);
    }
    cr_expect_eq(device_at(0)->peak_bytes, 4096u);
    cr_expect_eq(device_at(0)->peak_version, 1u);
}

Test(tally, slack_of_one_device_is_not_used_on_another)
{
    cw_usage_add(0, 100, 100, 1);
    cw_usage_sub(0, 100, 100);
    cw_usage_add(1, 60, 60, 2);
    cr_expect_eq(cw_usage_device(0).live, 0u);
    cr_expect_eq(cw_usage_device(1).live, 60u);
    cw_usage_sub(1, 60, 60);
    cr_expect_eq(cw_usage_device(0).held, 0u);
    cr_expect_eq(cw_usage_device(1).held, 0u);
    cr_expect_eq(cw_usage_total(), 0u);
    cr_expect_eq(device_at(1)->peak_bytes, 60u);
}

Test(tally, the_peak_is_that_of_live_bytes_not_of_slack)
{
    cw_usage_add(0, 1000, 1000, 1);
    cw_usage_sub(0, 900, 900); /* slack 900 */
    cw_usage_add(0, 950, 950, 2);
    cr_expect_eq(device_at(0)->peak_bytes, 1050u);
    cr_expect_eq(device_at(0)->peak_ns, 2u);
    cr_expect_eq(core_header()->peak_bytes, 1050u);
    cr_expect_eq(device_at(0)->peak_held, 1050u);
}

static void *leave_slack(void *unused)
{
    cw_usage_add(0, 1000, 1000, 1);
    cw_usage_sub(0, 1000, 1000);
    return unused;
}

Test(tally, slack_of_a_thread_that_has_ended_counts_for_nothing)
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, leave_slack, NULL), 0);
    pthread_join(thread, NULL);
    cr_expect_eq(cw_usage_device(0).live, 0u);
    cw_usage_add(0, 600, 600, 5);
    cr_expect_eq(device_at(0)->peak_bytes, 1000u);
    cw_usage_add(0, 600, 600, 6);
    cr_expect_eq(device_at(0)->peak_bytes, 1200u);
    cr_expect_eq(device_at(0)->peak_ns, 6u);
}

/* Each row takes what came since the row before; slack of two devices and of a thread is about. */
Test(tally, extremes_are_those_since_they_were_taken)
{
    struct cw_live_extreme least, most;
    pthread_t thread;

    cw_usage_add(0, 100, 128, 1);
    cw_usage_take_extremes(0, 2, &least, &most);
    cr_expect_eq(least.live, 0u);
    cr_expect_eq(most.live, 100u);
    cr_expect_eq(most.held, 128u);
    cr_expect_eq(most.t_ns, 1u);
    cw_usage_sub(0, 60, 64); /* slack */
    cw_usage_add(0, 70, 80, 3);
    cw_usage_sub(0, 70, 80);
    cw_usage_add(1, 5, 5, 4);
    cw_usage_take_extremes(0, 5, &least, &most);
    cr_expect_eq(least.live, 40u);
    cr_expect_eq(least.held, 64u);
    cr_expect_eq(most.live, 110u);
    cr_expect_eq(most.held, 144u);
    cr_expect_eq(most.idle, 34u);
    cr_expect_eq(most.t_ns, 3u);
    cr_assert_eq(pthread_create(&thread, NULL, leave_slack, NULL), 0);
    pthread_join(thread, NULL);
    cw_usage_take_extremes(0, 6, &least, &most);
    cr_expect_eq(most.live, 1040u);
    cw_usage_add(0, 10, 10, 7); /* far below the peak of its life */
    cw_usage_take_extremes(0, 8, &least, &most);
    cr_expect_eq(least.live, 40u);
    cr_expect_eq(most.live, 50u);
    cr_expect_eq(most.t_ns, 7u);
    cr_expect_eq(device_at(0)->peak_bytes, 1040u);
}

Test(tally, the_peak_of_blocks_is_not_that_of_bytes)
{
    cw_usage_add(0, 1000, 1000, 1);
    cw_usage_sub(0, 1000, 1000);
    for (int i = 0; i < 5; i++) {
        cw_usage_add(0, 100, 100, 2);
        cr_expect_eq(device_at(0)->peak_blocks, i + 1u);
    }
    cr_expect_eq(device_at(0)->peak_bytes, 1000u);
    for (int i = 0; i < 5; i++)
        cw_usage_sub(0, 100, 100);
    cw_usage_add(0, 400, 400, 3);
    cw_usage_add(1, 1, 1, 4);
    cr_expect_eq(device_at(0)->peak_blocks, 5u);
    cr_expect_eq(device_at(1)->peak_blocks, 1u);
}

Test(tally, memory_that_the_pool_keeps_is_no_live_block)
{
    cw_usage_add(0, 0, 4096, 1);
    cw_usage_sub(0, 0, 4096);
    cr_expect_eq(device_at(0)->peak_blocks, 0u);
}

/* ---- threads: each holds at most OWN bytes, so the peak is known to lie in between ---- */

#define THREADS 8
#define ROUNDS  20000
#define OWN     1000

static void up_and_down(unsigned id)
{
    uint64_t state = id, mine = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t random = next_random(&state), bytes = random % 512;

        if (random >> 63 && mine + bytes <= OWN) {
            cw_usage_add((uint8_t)(id % 2), bytes, bytes * 2, (uint64_t)i);
            mine += bytes;
        } else if (bytes <= mine) {
            cw_usage_sub((uint8_t)(id % 2), bytes, bytes * 2);
            mine -= bytes;
        }
    }
    cw_usage_add((uint8_t)(id % 2), OWN - mine, 2 * (OWN - mine), ROUNDS);
}

static void expect_all_hold(unsigned threads)
{
    cr_expect_eq(cw_usage_total(), threads * OWN);
    for (uint8_t i = 0; i < 2; i++) {
        cr_expect_eq(cw_usage_device(i).live, threads / 2 * OWN);
        cr_expect_eq(cw_usage_device(i).held, threads * OWN);
        /* All of them hold what they may, and never more. */
        cr_expect_eq(device_at(i)->peak_bytes, threads / 2 * OWN);
        cr_expect_eq(device_at(i)->peak_held, threads * OWN);
    }
    cr_expect_eq(core_header()->peak_bytes, threads * OWN);
}

Test(tally, eight_threads_leave_exact_sums_and_peaks)
{
    run_threads(THREADS, up_and_down);
    expect_all_hold(THREADS);
}

#define OWN_BLOCKS 10u

static void blocks_up_and_down(unsigned id)
{
    uint64_t state = id;
    unsigned mine = 0;

    for (int i = 0; i < ROUNDS; i++) {
        if (next_random(&state) >> 63 && mine < OWN_BLOCKS) {
            cw_usage_add((uint8_t)(id % 2), 64, 64, (uint64_t)i);
            mine++;
        } else if (mine > 0) {
            cw_usage_sub((uint8_t)(id % 2), 64, 64);
            mine--;
        }
    }
    for (; mine < OWN_BLOCKS; mine++)
        cw_usage_add((uint8_t)(id % 2), 64, 64, ROUNDS);
}

Test(tally, eight_threads_leave_an_exact_peak_of_blocks)
{
    run_threads(THREADS, blocks_up_and_down);
    for (uint8_t i = 0; i < 2; i++)
        cr_expect_eq(device_at(i)->peak_blocks, THREADS / 2 * OWN_BLOCKS);
}

static void keep_some_slack(unsigned id)
{
    cw_usage_add((uint8_t)(id % 2), 100, 100, 1);
    cw_usage_sub((uint8_t)(id % 2), 40, 40);
}

Test(tally, slack_of_each_thread_is_no_part_of_the_total)
{
    /* Far below this peak nobody takes back what others keep. */
    cw_usage_add(0, 1 << 20, 1 << 20, 1);
    cw_usage_sub(0, 1 << 20, 1 << 20);
    run_threads(THREADS, keep_some_slack);
    cr_expect_eq(cw_usage_total(), THREADS * 60u);
    cr_expect_eq(cw_usage_device(0).live + cw_usage_device(1).live, THREADS * 60u);
}

Test(tally, threads_without_a_slot_count_as_well)
{
    cw_host_set(NULL);
    run_threads(THREADS, up_and_down);
    expect_all_hold(THREADS);
}

/* ---- a thread that comes while another asks for what is not there ---- */

#define FULL 1000u

static _Atomic unsigned busy; /* the slot whose thread the asking one waits for */
static _Atomic int may_leave, is_inside, may_end;

static void wait_for(const _Atomic int *word)
{
    while (!atomic_load(word))
        sched_yield();
}

static void *stay_inside(void *arg)
{
    struct cw_slot *slot = cw_slot_enter();

    atomic_store(&busy, (unsigned)(slot - cw_slots));
    wait_for(&may_leave);
    cw_slot_leave(slot);
    return arg;
}

static void *ask_in_vain(void *arg)
{
    cr_expect_eq(cw_usage_reserve(0, 1, FULL), -1);
    return arg;
}

static void *begin_and_free(void *arg)
{
    struct cw_slot *slot;

    cw_usage_add(1, 64, 64, 1);
    cw_usage_sub(1, 64, 64);
    slot = cw_slot_enter();
    atomic_store(&is_inside, 1);
    wait_for(&may_end);
    cr_expect_eq(cw_usage_slack[slot - cw_slots].live, 64u, "this thread alone writes to it now");
    cr_expect_eq(cw_usage_slack[slot - cw_slots].held, 64u);
    cw_slot_leave(slot);
    return arg;
}

Test(tally, who_asks_in_vain_leaves_a_thread_alone_that_just_began)
{
    pthread_t inside, asking, young;

    cw_usage_add(1, 1 << 20, 1 << 20, 1); /* a peak that is not reached again */
    cw_usage_sub(1, 1 << 20, 1 << 20);
    cw_usage_settle_slack();
    cw_usage_add(0, FULL, FULL, 1);
    cr_assert_eq(pthread_create(&inside, NULL, stay_inside, NULL), 0);
    while (atomic_load(&busy) == 0)
        sched_yield();
    cr_assert_eq(pthread_create(&asking, NULL, ask_in_vain, NULL), 0);
    while (!atomic_load(&cw_slots[busy].stop))
        sched_yield();
    cr_assert_eq(pthread_create(&young, NULL, begin_and_free, NULL), 0);
    wait_for(&is_inside);
    atomic_store(&may_leave, 1);
    pthread_join(asking, NULL);
    atomic_store(&may_end, 1);
    pthread_join(young, NULL);
    pthread_join(inside, NULL);
    cr_expect_eq(cw_usage_device(0).held, FULL);
    cr_expect_eq(cw_usage_device(1).held, 0u);
}
