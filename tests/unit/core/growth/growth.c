/* SPDX-License-Identifier: MIT */
/* Samples of sites: when they come due, and what stands in them. */
#include "core/growth/growth.h"

#include <criterion/criterion.h>

#include <sched.h>
#include <stdatomic.h>

#include "core/control/lifecycle.h"
#include "core/device/device.h"
#include "core/process/due.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/process/thread.h"
#include "core/account/tracker.h"
#include "growth_fixture.h"

TestSuite(growth, .init = growth_start);

/* What a hook does before it leaves. 1 if a sample was due. */
static int leave(void)
{
    int is_due = cw_due_take(CW_DUE_GROWTH) != 0;

    if (is_due)
        cw_growth_serve();
    return is_due;
}

/* ---- when ---- */

Test(growth, is_due_at_the_first_allocation_and_a_millisecond_later)
{
    cr_expect_eq(leave(), 0);
    pool_get(4096);
    cr_expect_eq(leave(), 1);
    cr_expect_eq(live->taken, 1);
    pass(FAKE_MS - 1);
    pool_get(4096);
    cr_expect_eq(leave(), 0);
    pass(1);
    pool_get(4096);
    cr_expect_eq(leave(), 1);
    cr_expect_eq(live->taken, 2);
    cr_expect_eq(live->is_on, 1);
}

Test(growth, is_due_at_a_hit_of_the_pool)
{
    pool_put(pool_get(4096));
    leave();
    pass(FAKE_MS);
    cr_assert(pool_serves(4096));
    cr_expect_eq(leave(), 1);
    cr_expect_eq(live->taken, 2);
}

Test(growth, is_due_at_a_look_at_the_device)
{
    pool_get(4096);
    leave();
    pass(FAKE_MS);
    cw_device_sample(0);
    cr_expect_eq(leave(), 1);
}

Test(growth, a_free_does_not_look)
{
    uint64_t key = pool_get(4096);

    leave();
    pass(FAKE_MS);
    pool_put(key);
    cr_expect_eq(leave(), 0);
}

Test(growth, what_was_raised_and_not_done_is_raised_again)
{
    pool_get(4096);
    leave();
    pass(FAKE_MS);
    pool_get(4096);
    cw_due_take(CW_DUE_GROWTH);
    pool_get(4096);
    cr_expect_eq(leave(), 0);
    pass(FAKE_MS);
    pool_get(4096);
    cr_expect_eq(leave(), 1);
    cr_expect_eq(live->taken, 2);
}

Test(growth, a_sweep_takes_at_most_a_thousandth_of_the_time)
{
    uint64_t taken;

    sample();
    fake_driver.work_step = FAKE_MS;
    sample();
    sample(); /* that the second costs the same is only known after it */
    fake_driver.work_step = 0;
    taken = live->taken;
    pass(1000 * FAKE_MS - 1);
    cw_growth_serve();
    cr_expect_eq(live->taken, taken);
    pass(1);
    cw_growth_serve();
    cr_expect_eq(live->taken, taken + 1);
}

/* It made what a new site needs. */
Test(growth, one_sweep_that_was_long_is_forgiven)
{
    sample();
    fake_driver.work_step = FAKE_MS;
    sample();
    fake_driver.work_step = 0;
    pass(5 * FAKE_MS);
    cw_growth_serve();
    cr_expect_eq(live->taken, 3);
}

/* ---- what ---- */

static uint64_t expected(uint64_t t_ns)
{
    return t_ns / 1000 + 1;
}

#define BORN_NS (100000 * FAKE_MS)

Test(growth, a_million_milliseconds_are_spanned_evenly_by_true_values)
{
    uint32_t early = new_site(CW_KIND_DEVICE), late = new_site(CW_KIND_DEVICE);
    uint64_t first = UINT64_MAX, last = 0;

    for (unsigned i = 0; i < 1000000; i++) {
        set_live(early, expected(cw_session_now()));
        if (cw_session_now() >= BORN_NS)
            set_live(late, 7);
        cw_deadline_look(cw_session_now());
        leave();
        pass(FAKE_MS);
    }
    cr_expect_eq(slots_in_use(), CW_SAMPLES);
    for (unsigned i = 0; i < CW_SAMPLES; i++) {
        uint64_t t = live->t_ns[i];

        first = t < first ? t : first;
        last = t > last ? t : last;
        cr_expect_eq(series_at(series_of(early))->bytes[i], expected(t));
        cr_expect_eq(series_at(series_of(late))->bytes[i], t >= BORN_NS ? 7 : 0);
    }
    cr_expect_eq(first, FAKE_MS);
    cr_expect_geq(last + live->period_ns, 1000000 * FAKE_MS);
    cr_expect_eq(live->period_ns, 16384 * FAKE_MS);
    cr_expect_eq(series_count(), 2);
    cr_expect_lt(live->taken, 1000);
}

Test(growth, what_a_site_holds_is_what_was_not_freed)
{
    uint32_t site = new_site(CW_KIND_DEVICE);

    core_put(site, 0x1000, 100);
    core_put(site, 0x2000, 30);
    sample();
    cr_expect_eq(series_at(series_of(site))->bytes[newest()], 130);
    cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, 0x1000), CW_FREE_DONE);
    sample();
    cr_expect_eq(series_at(series_of(site))->bytes[newest()], 30);
    cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, 0x2000), CW_FREE_DONE);
    sample();
    cr_expect_eq(series_at(series_of(site))->bytes[newest()], 0);
    cr_expect_eq(series_at(series_of(site))->site, site);
}

static uint32_t sites[8];
static _Atomic unsigned ready;

static void allocate(unsigned id)
{
    cw_thread_slot();
    ready++;
    while (ready < 8) /* a slot of a thread that has ended is another's */
        sched_yield();
    sites[id] = cw_site_here(1, CW_KIND_DEVICE, 0); /* one place, a record for each thread */
    core_put(sites[id], 0x1000 * (id + 1), 10 + id);
}

Test(growth, threads_have_records_and_series_of_their_own)
{
    run_threads(8, allocate);
    sample();
    cr_expect_eq(series_count(), 8);
    for (unsigned i = 0; i < 8; i++)
        cr_expect_eq(series_at(series_of(sites[i]))->bytes[newest()], 10 + i);
}

Test(growth, a_series_begins_when_its_site_holds_something)
{
    uint32_t site = new_site(CW_KIND_DEVICE);

    sample();
    cr_expect_eq(series_of(site), 0);
    cr_expect_eq(series_count(), 0);
    set_live(site, 1);
    cr_expect_eq(series_of(site), 0);
    sample();
    cr_expect_neq(series_of(site), 0);
}

Test(growth, memory_that_is_in_no_sum_has_no_series)
{
    set_live(new_site(CW_KIND_IPC), 100);
    set_live(new_site(CW_KIND_RESERVATION), 100);
    set_live(new_site(CW_KIND_PINNED), 100);
    sample();
    cr_expect_eq(series_count(), 1);
    cr_expect_eq(live->dropped, 0);
}

Test(growth, off_does_nothing)
{
    uint32_t site = new_site(CW_KIND_DEVICE);

    cw_growth_reset();
    core_header()->growth.is_on = 0;
    core_options()->growth = CW_GROWTH_OFF;
    cw_growth_init(&cw_session.arena, core_options());
    pool_get(4096);
    set_live(site, 5);
    pass(1000 * FAKE_MS);
    pool_get(4096);
    cr_expect_eq(leave(), 0);
    cw_growth_serve();
    cw_lifecycle_finish(CW_EXIT_EXIT, 0);
    cr_expect_eq(live->is_on, 0);
    cr_expect_eq(live->taken, 0);
    cr_expect_eq(series_count(), 0);
    cr_expect_eq(core_header()->table[CW_TABLE_TIMELINE].count, 1);
}

/* ---- more sites than one call looks at ---- */

static uint32_t last_of_many(void)
{
    for (uint32_t i = 0; i < CW_GROWTH_PART; i++)
        new_site(CW_KIND_DEVICE);
    return site_with(7);
}

Test(growth, a_long_sweep_is_spread_over_calls)
{
    uint32_t first = site_with(5), last = last_of_many();
    uint64_t begun = cw_session_now();

    cw_growth_serve();
    cr_expect_eq(live->taken, 0, "it was swept in one go");
    cr_expect_eq(slots_in_use(), 0);
    cr_expect_neq(series_of(first), 0);
    cr_expect_eq(cw_deadlines.growth_ns, begun + FAKE_MS);
    pass(FAKE_MS);
    cw_growth_serve();
    cr_expect_eq(live->taken, 1);
    cr_expect_eq(live->t_ns[newest()], begun);
    cr_expect_eq(series_at(series_of(first))->bytes[newest()], 5);
    cr_expect_eq(series_at(series_of(last))->bytes[newest()], 7);
}

Test(growth, what_a_sweep_saw_long_ago_is_looked_at_again)
{
    uint32_t first = site_with(5), last = last_of_many();

    cw_growth_serve();
    set_live(first, 6);
    pass(2000 * FAKE_MS);
    cw_growth_serve();
    cr_expect_eq(live->taken, 1);
    cr_expect_eq(live->t_ns[newest()], cw_session_now());
    cr_expect_eq(series_at(series_of(first))->bytes[newest()], 6);
    cr_expect_eq(series_at(series_of(last))->bytes[newest()], 7);
}

Test(growth, the_end_takes_the_place_of_a_sweep_that_is_not_over)
{
    uint32_t first = site_with(5);

    last_of_many();
    cw_growth_serve();
    set_live(first, 6);
    pass(FAKE_MS);
    cr_assert_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cr_expect_eq(live->taken, 1);
    cr_expect_eq(live->t_ns[newest()], core_header()->end_ns);
    cr_expect_eq(series_at(series_of(first))->bytes[newest()], 6);
}

/* ---- the end, and children ---- */

Test(growth, the_end_is_a_sample)
{
    uint32_t known = site_with(1), unknown;

    sample();
    set_live(known, 9);
    unknown = site_with(1);
    pass(1);
    cr_assert_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cr_expect_eq(live->taken, 2);
    cr_expect_eq(live->t_ns[newest()], core_header()->end_ns);
    cr_expect_eq(series_at(series_of(known))->bytes[newest()], 9);
    cr_expect_eq(series_of(unknown), 0);
}

/* The clock is coarse. */
Test(growth, an_end_at_the_last_sample_takes_its_place)
{
    uint32_t site = site_with(1);

    sample();
    set_live(site, 9);
    cr_assert_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cr_expect_eq(live->taken, 1);
    cr_expect_eq(slots_in_use(), 1);
    cr_expect_eq(live->t_ns[newest()], core_header()->end_ns);
    cr_expect_eq(series_at(series_of(site))->bytes[newest()], 9);
}

Test(growth, the_end_of_a_disarmed_one_is_none)
{
    site_with(1);
    sample();
    pass(1);
    cw_session_disarm("why");
    cr_assert_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cr_expect_eq(live->taken, 1);
}

Test(growth, a_forked_child_starts_anew)
{
    for (unsigned i = 0; i < 200; i++) {
        site_with(i);
        sample();
    }
    cr_expect_eq(fork_and_start_anew(), 0);
    cr_expect_eq(live->taken, 200);
}
