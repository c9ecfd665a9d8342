/* SPDX-License-Identifier: MIT */
/* Series of sites: who has one when there is not room for all, and what others see of a sample that
 * is being taken. */
#include "core/growth/growth.h"

#include <criterion/criterion.h>

#include <sched.h>
#include <stdatomic.h>

#include "core/control/lifecycle.h"
#include "base/lock.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/process/intern.h"
#include "growth_fixture.h"

TestSuite(series, .init = growth_start);

/* ---- room ---- */

/* As with a file that may have so many bytes. */
static void have_room(uint64_t bytes)
{
    struct cw_backing *backing = &cw_session.arena.backing;

    cw_growth_reset();
    backing->room = bytes;
    backing->state = CW_BACKING_GROWS;
    cw_growth_init(&cw_session.arena, core_options());
    backing->state = CW_BACKING_NONE;
}

Test(series, there_are_4096_series_and_what_finds_no_room_is_counted_once)
{
    for (unsigned i = 0; i < CW_SERIES_MOST; i++)
        site_with(1);
    sample();
    cr_expect_eq(series_count(), CW_SERIES_MOST);
    cr_expect_eq(live->dropped, 0);
    site_with(1);
    site_with(1);
    for (unsigned i = 0; i < 20; i++)
        sample();
    cr_expect_eq(series_count(), CW_SERIES_MOST);
    cr_expect_eq(live->dropped, 2);
}

Test(series, series_take_an_eighth_of_a_small_file)
{
    have_room(4 * MIB);
    for (unsigned i = 0; i < CW_SERIES_MOST; i++)
        site_with(1);
    sample();
    cr_expect_eq(series_count(), 4 * MIB / 8 / sizeof(struct cw_live_series));
    cr_expect_eq(live->dropped, CW_SERIES_MOST - series_count());
}

static uint32_t crowd[64];

/* As many as there is room for, and one more that has none. */
static uint32_t fill_up(void)
{
    uint32_t homeless;

    have_room(1);
    homeless = site_with(0); /* a sweep comes to it first */
    for (unsigned i = 0; i < 64; i++)
        crowd[i] = site_with(i + 1);
    sample();
    set_live(homeless, 1000);
    sample();
    cr_assert_eq(series_count(), 64);
    cr_assert_eq(series_of(homeless), 0);
    cr_assert_eq(live->dropped, 1);
    return homeless;
}

Test(series, a_series_is_handed_on_when_it_was_empty_for_eight_samples)
{
    uint32_t homeless = fill_up(), series = series_of(crowd[40]);

    set_live(crowd[40], 0);
    for (unsigned i = 0; i < 8; i++)
        sample();
    cr_expect_eq(series_of(crowd[40]), series);
    cr_expect_eq(series_of(homeless), 0);
    sample();
    cr_expect_eq(series_of(crowd[40]), 0);
    cr_expect_eq(series_of(homeless), series);
    cr_expect_eq(series_at(series)->site, homeless);
    for (unsigned i = 0; i < CW_SAMPLES; i++)
        cr_expect_eq(series_at(series)->bytes[i], i == newest() ? 1000 : 0);
    cr_expect_eq(live->dropped, 1);
}

Test(series, a_series_is_not_handed_on_while_its_site_holds_something_again)
{
    uint32_t homeless = fill_up();

    set_live(crowd[63], 0);
    for (unsigned i = 0; i < 8; i++)
        sample();
    set_live(crowd[63], 5);
    sample();
    cr_expect_eq(series_of(homeless), 0);
    cr_expect_eq(series_at(series_of(crowd[63]))->bytes[newest()], 5);
}

/* As in a forked child, whose samples have numbers of their own. */
Test(series, a_new_session_knows_nothing_of_samples_before)
{
    uint32_t homeless = fill_up();

    for (unsigned i = 0; i < 50; i++)
        sample();
    have_room(1);
    core_header()->growth.taken = 0;
    set_live(crowd[40], 0);
    for (unsigned i = 0; i < 10; i++)
        sample();
    cr_expect_neq(series_of(homeless), 0);
}

/* ---- readers ---- */

#define SWEEPS 1000 /* the period doubles 30 times */
static _Atomic int written;
static _Atomic unsigned rounds, good, mixed;

/* Of a site at a moment; there is no other time or site with the same. */
static uint64_t value_of(uint32_t site, uint64_t t_ns)
{
    return t_ns / FAKE_MS * 1000 + site;
}

/* 128 sites share 64 series: half of them hold something in one stretch of samples, the others in
 * the next. */
static void write_samples(uint32_t first)
{
    for (unsigned n = 0; n < SWEEPS; n++) {
        uint64_t now = cw_session_now() + live->period_ns;

        for (uint32_t i = 0; i < 128; i++)
            set_live(first + i, i / 64 == n / 20 % 2 ? value_of(first + i, now) : 0);
        sample();
        if (n % 20 == 15) /* readers are at work, also where there is one processor */
            for (unsigned seen = rounds; rounds == seen;)
                sched_yield();
    }
    written = 1;
}

/* As report code reads them. */
static void read_samples(uint32_t first)
{
    for (uint32_t i = 0; !written; rounds += ++i % 128 == 0) {
        uint32_t site = first + i % 128;
        uint32_t index = atomic_load_explicit(&cw_site_at(site)->series, memory_order_acquire);
        const struct cw_live_series *series = series_at(index);

        for (unsigned k = 0; index != 0 && k < CW_SAMPLES; k++) {
            uint64_t t = atomic_load_explicit(&live->t_ns[k], memory_order_acquire);
            uint32_t before = atomic_load_explicit(&series->site, memory_order_acquire);
            uint64_t bytes = atomic_load_explicit(&series->bytes[k], memory_order_relaxed);

            atomic_thread_fence(memory_order_acquire);
            if (t == 0 || t != atomic_load_explicit(&live->t_ns[k], memory_order_relaxed) ||
                before != site || series->site != site || cw_site_at(site)->series != index)
                continue;
            good += bytes != 0;
            mixed += bytes != 0 && bytes != value_of(site, t);
        }
    }
}

static uint32_t first_site;

static void write_or_read(unsigned id)
{
    if (id == 0)
        write_samples(first_site);
    else
        read_samples(first_site);
}

Test(series, a_reader_never_sees_a_value_of_another_time_or_site)
{
    have_room(1);
    first_site = site_with(0);
    for (uint32_t i = 1; i < 128; i++)
        cr_assert_eq(site_with(0), first_site + i);
    run_threads(3, write_or_read);
    cr_expect_gt(good, 0);
    cr_expect_eq(mixed, 0);
    cr_expect_eq(series_count(), 64);
}

static void serve_often(unsigned id)
{
    for (unsigned i = 0; i < 2000; i++) {
        pass(FAKE_MS / 4);
        if (id == 0)
            site_with(1);
        cw_growth_serve();
    }
}

Test(series, of_threads_that_serve_at_once_one_takes_the_sample)
{
    run_threads(4, serve_often);
    cr_expect_gt(live->taken, 0);
    cr_expect_eq(slots_in_use(), live->taken < CW_SAMPLES ? live->taken : CW_SAMPLES);
    pass(10000000 * FAKE_MS); /* while one swept, the others' time went by: it counts as cost */
    cw_growth_serve();
    cr_expect_eq(series_count(), 2000);
    for (uint32_t i = 1; i <= series_count(); i++)
        cr_assert_eq(series_of(series_at(i)->site), i);
}

/* ---- in the middle of a sample ---- */

static void (*middle)(void);
static _Atomic int is_held, is_over;

/* A sweep begins with a look at the lock of sites: there it is kept, while a third thread works. */
static void serve_keep_or_work(unsigned id)
{
    if (id == 0) {
        while (!is_held)
            sched_yield();
        cw_growth_serve();
    } else if (id == 1) {
        cw_lock_acquire(&cw_intern_lock);
        is_held = 1;
        while (!is_over)
            sched_yield();
        cw_lock_release(&cw_intern_lock);
    } else {
        while (cw_intern_lock.word != 2) /* somebody waits for it */
            sched_yield();
        middle();
        is_over = 1;
    }
}

/* All slots are in use, and one is being written. */
static void sample_around(void (*body)(void))
{
    site_with(1);
    for (unsigned i = 0; i < CW_SAMPLES; i++)
        sample();
    pass(live->period_ns);
    middle = body;
    run_threads(3, serve_keep_or_work);
}

static void expect_one_slot_without_time(void)
{
    cr_expect_eq(slots_in_use(), CW_SAMPLES - 1);
}

Test(series, a_slot_has_no_time_while_it_is_written)
{
    sample_around(expect_one_slot_without_time);
    cr_expect_eq(slots_in_use(), CW_SAMPLES);
    cr_expect_eq(live->t_ns[newest()], cw_session_now());
}

/* As from a signal handler that interrupted the one that takes the sample. */
static void serve_and_finish(void)
{
    cw_growth_serve();
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_UNDERSCORE, 0), 1);
    cr_expect_eq(live->taken, CW_SAMPLES);
    cr_expect_eq(slots_in_use(), CW_SAMPLES - 1);
}

Test(series, nobody_waits_for_who_takes_a_sample)
{
    sample_around(serve_and_finish);
    cr_expect_eq(live->taken, CW_SAMPLES + 1);
}

static void fork_in_the_middle(void)
{
    cr_expect_eq(fork_and_start_anew(), 0);
}

Test(series, a_child_forked_in_the_middle_starts_anew)
{
    sample_around(fork_in_the_middle);
    cr_expect_eq(live->taken, CW_SAMPLES + 1);
}
