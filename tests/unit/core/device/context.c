/* SPDX-License-Identifier: MIT */
/* Contexts: who a handle means, primary contexts and their retains, and how a context ends. */
#include "core/device/context.h"

#include <criterion/criterion.h>

#include <pthread.h>

#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

#define HANDLE 0xc0ffee00u
#define GREEN  0x9e9e9e00u

static uint32_t site;

static void setup(void)
{
    core_start();
    site = core_site("cuMemAlloc", CW_KIND_DEVICE, 0);
}

TestSuite(context, .init = setup);

/* A driver before CUDA 12.0. */
static void start_without_ids(void)
{
    fake_driver.has_no_context_ids = 1;
    cw_context_reset();
    cw_context_init(core_arena, &fake_driver_ops);
}

static struct cw_live_context *record(uint32_t context)
{
    return core_at(CW_TABLE_CONTEXT, context);
}

static uint32_t current(void)
{
    uint8_t device;

    return cw_context_current(&device);
}

static uint32_t of(uint64_t handle)
{
    uint8_t device;

    return cw_context_of(handle, &device);
}

/* One with this id is current from now on; its record once the driver has been asked about it. */
static uint32_t meet(uint64_t id, unsigned device)
{
    fake_context(0, HANDLE, id, device);
    fake_set_current(HANDLE);
    return current();
}

/* The i-th that the program has made before our eyes. */
static uint32_t another(unsigned i, uint64_t id, unsigned device)
{
    fake_context(i % 4, HANDLE + i, id, device);
    cw_context_created(HANDLE + i, device);
    return of(HANDLE + i);
}

/* The first, which is current. */
static uint32_t create(uint64_t id, unsigned device)
{
    another(0, id, device);
    fake_set_current(HANDLE);
    return current();
}

/* Its record, of one that the driver does not describe. */
static uint32_t made(void)
{
    cw_context_created(HANDLE, 0);
    return of(HANDLE);
}

static void allocate(uint64_t key, uint32_t context)
{
    struct cw_request request = core_request(CW_KIND_DEVICE, 0, key, 64);

    request.context = context;
    cr_assert_neq(cw_tracker_insert(&request, site, 1), 0u);
}

static void end(uint32_t context, enum cw_context_outcome outcome)
{
    struct cw_context_ending ending;

    cw_context_end_begin(context, &ending);
    cw_context_end_finish(&ending, outcome);
}

CoreTest(context, there_is_none_without_a_current_one)
{
    uint8_t device = 9;

    cr_expect_eq(cw_context_current(&device), 0u);
    cr_expect_eq(device, 0);
    cr_expect_eq(of(HANDLE), 0u);
    cr_expect_eq(fake_gated_calls(), 0u);
}

CoreTest(context, one_that_was_never_seen_is_asked_for_once)
{
    uint32_t context;
    uint8_t device = 0;

    fake_context(0, HANDLE, 7, 3);
    fake_set_current(HANDLE);
    context = cw_context_current(&device);
    cr_assert_neq(context, 0u);
    cr_expect_eq(device, 3);
    cr_expect_eq(record(context)->id, 7u);
    cr_expect_eq(record(context)->handle, HANDLE);
    cr_expect_eq(record(context)->device, 3u);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(current(), context);
    cr_expect_eq(fake_driver.calls[FAKE_CONTEXT_FACTS], 1u);
    cr_expect_eq(of(HANDLE), context);
}

CoreTest(context, one_that_the_driver_does_not_describe_stays_unknown)
{
    fake_context(0, HANDLE, 7, 0);
    fake_set_current(HANDLE);
    fake_driver.fails[FAKE_CONTEXT_FACTS] = 1;
    cr_expect_eq(current(), 0u);
    fake_driver.fails[FAKE_CONTEXT_FACTS] = 0;
    cr_expect_neq(current(), 0u);
    fake_driver.fails[FAKE_CURRENT] = 1;
    cr_expect_eq(current(), 0u);
}

CoreTest(context, one_is_met_while_the_gate_is_closed)
{
    uint32_t known = meet(7, 0);

    fake_context(1, HANDLE + 1, 8, 0);
    cw_session.ops = &fake_driver_ops;
    cw_gate_close(CW_GATE_CAPTURE);
    cr_expect_eq(current(), known);
    fake_set_current(HANDLE + 1);
    cr_expect_neq(current(), 0u);
}

CoreTest(context, a_device_beyond_the_table_is_unknown)
{
    cr_expect_eq(meet(7, CW_MAX_DEVICES), 0u);
    cw_context_retained(HANDLE, CW_MAX_DEVICES);
    cw_context_folded(GREEN, CW_MAX_DEVICES);
    cr_expect_eq(cw_context_primary(CW_MAX_DEVICES), 0u);
    cr_expect_eq(cw_context_is_last_release(CW_MAX_DEVICES), 0);
}

CoreTest(context, one_without_an_id_gets_a_number_of_ours)
{
    start_without_ids();
    fake_context(0, HANDLE, 0, 0);
    fake_context(1, HANDLE + 1, 0, 0);
    fake_set_current(HANDLE);
    cr_expect_eq(record(current())->id >> 63, 1u);
    fake_set_current(HANDLE + 1);
    cr_expect_eq(record(current())->id >> 63, 1u);
    cr_expect_neq(record(of(HANDLE))->id, record(of(HANDLE + 1))->id);
}

CoreTest(context, a_recycled_handle_is_another_context)
{
    uint32_t old = create(0, 2), new;

    cr_assert_neq(old, 0u);
    end(old, CW_CONTEXT_DESTROYED);
    cr_expect_eq(of(HANDLE), 0u);
    new = create(0, 4);
    cr_assert_neq(new, 0u);
    cr_expect_neq(new, old);
    cr_expect_neq(record(new)->id, record(old)->id);
    cr_expect_eq(record(new)->device, 4u);
    cr_expect_eq(record(old)->state, (uint32_t)CW_CONTEXT_DEAD);
    cr_expect_eq(fake_gated_calls(), 0u);
}

CoreTest(context, a_handle_recycled_behind_our_back_is_another_context)
{
    uint32_t old;

    start_without_ids();
    old = create(0, 0);
    cw_context_created(HANDLE, 0);
    cr_expect_neq(current(), old);
    cr_expect_neq(current(), 0u);
}

/* ---- ends and beginnings out of our sight ---- */

CoreTest(context, who_has_the_current_handle_is_asked_by_id)
{
    uint32_t old = create(7, 1), new;

    allocate(0x1000, old);
    fake_context(0, HANDLE, 8, 2);
    new = current();
    cr_assert_neq(new, 0u);
    cr_expect_neq(new, old);
    cr_expect_eq(record(new)->id, 8u);
    cr_expect_eq(record(new)->device, 2u);
    cr_expect_eq(record(old)->state, (uint32_t)CW_CONTEXT_DEAD);
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), 0u, "what went with it is closed");
    cr_expect_eq(current(), new);
    cr_expect_eq(of(HANDLE), new);
    cr_expect(cw_gate_is_open());
}

CoreTest(context, who_has_any_other_handle_too)
{
    uint32_t old = another(0, 7, 0);

    cr_expect_eq(record(old)->id, 7u);
    fake_context(0, HANDLE, 8, 0);
    cr_expect_eq(of(HANDLE), 0u, "nobody has seen the new one");
    cr_expect_eq(record(old)->state, (uint32_t)CW_CONTEXT_DEAD);
}

CoreTest(context, a_primary_one_that_was_reset_elsewhere_is_another)
{
    uint32_t old;

    fake_context(0, HANDLE, 7, 0);
    cw_context_retained(HANDLE, 0);
    old = cw_context_primary(0);
    fake_context(0, HANDLE, 8, 0);
    cw_context_retained(HANDLE, 0);
    cr_expect_neq(cw_context_primary(0), old);
    cr_expect_eq(record(old)->state, (uint32_t)CW_CONTEXT_DEAD);
    cr_expect_eq(record(cw_context_primary(0))->retains, 1u);
}

CoreTest(context, one_whose_id_is_not_known_yet_takes_the_first_that_is_told)
{
    uint32_t context;

    cw_context_created(HANDLE, 0); /* the driver does not say who that is */
    fake_context(0, HANDLE, 7, 0);
    fake_set_current(HANDLE);
    context = current();
    cr_expect_eq(context, of(HANDLE));
    cr_expect_eq(record(context)->id, 7u);
    fake_context(0, HANDLE, 8, 0);
    cr_expect_neq(current(), context);
}

CoreTest(context, a_green_handle_that_is_another_ones_leaves_the_primary_alone)
{
    uint32_t primary;

    fake_context(0, HANDLE, 7, 0);
    fake_context(1, GREEN, 8, 0);
    cw_context_retained(HANDLE, 0);
    cw_context_folded(GREEN, 0);
    primary = cw_context_primary(0);
    cr_expect_eq(of(GREEN), primary);
    fake_context(1, GREEN, 9, 1);
    fake_set_current(GREEN);
    cr_expect_neq(current(), primary);
    cr_expect_eq(record(current())->device, 1u);
    cr_expect_eq(cw_context_primary(0), primary);
    cr_expect_eq(record(primary)->state, (uint32_t)CW_CONTEXT_LIVE);
}

CoreTest(context, one_is_there_as_long_as_its_handle_has_its_id)
{
    const struct cw_live_context *first = record(meet(77, 0));

    cr_expect(cw_context_is_there(first));
    fake_context(0, HANDLE, 78, 0); /* behind our back */
    cr_expect_not(cw_context_is_there(first));
}

CoreTest(context, a_check_buries_what_the_driver_does_not_know)
{
    uint32_t context = another(0, 7, 0);

    cw_context_check_all();
    cr_expect_eq(record(context)->state, (uint32_t)CW_CONTEXT_LIVE);
    fake_context_end(HANDLE);
    cw_context_check_all();
    cr_expect_eq(record(context)->state, (uint32_t)CW_CONTEXT_DEAD);
    cw_context_check_all();
    cr_expect(cw_gate_is_open());
}

CoreTest(context, without_ids_a_handle_is_all_there_is)
{
    uint32_t old;

    start_without_ids();
    old = create(7, 0);
    fake_context(0, HANDLE, 8, 0);
    cr_expect_eq(current(), old);
    cw_context_check_all();
    cr_expect_eq(record(old)->state, (uint32_t)CW_CONTEXT_LIVE);
}

CoreTest(context, each_thread_has_its_own)
{
    fake_context(1, HANDLE + 1, 8, 1);
    cr_expect_eq(record(meet(7, 0))->id, 7u);
    fake_set_current(HANDLE + 1);
    cr_expect_eq(record(current())->id, 8u);
    fake_set_current(HANDLE);
    cr_expect_eq(record(current())->id, 7u);
    cr_expect_eq(fake_driver.calls[FAKE_CONTEXT_FACTS], 2u);
}

/* ---- the end ---- */

CoreTest(context, a_destroyed_one_takes_its_blocks_along)
{
    struct cw_context_ending ending;
    uint32_t context = made();

    allocate(0x1000, context);
    allocate(0x2000, context);
    allocate(0x3000, 0);
    cw_context_end_begin(context, &ending);
    cr_expect_eq(cw_gate_enter(), 0);
    cr_expect_neq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), 0u);
    cw_context_end_finish(&ending, CW_CONTEXT_DESTROYED);
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), 0u);
    cr_expect_neq(cw_tracker_find(CW_SPACE_ADDRESS, 0x3000), 0u);
    cr_expect_eq(cw_gate_enter(), 1);
    cr_expect_eq(core_sums(site).reclaimed, 2u);
    cr_expect_eq(core_sums(site).live_blocks, 1u);
    cr_expect_eq(record(context)->state, (uint32_t)CW_CONTEXT_DEAD);
}

CoreTest(context, an_address_given_out_again_while_it_ends_closes_the_old_record)
{
    struct cw_context_ending ending;
    uint32_t context = made();

    allocate(0x1000, context);
    cw_context_end_begin(context, &ending);
    allocate(0x1000, 0);
    cw_context_end_finish(&ending, CW_CONTEXT_DESTROYED);
    cr_expect_eq(core_sums(site).reclaimed, 1u);
    cr_expect_eq(core_sums(site).live_blocks, 1u);
}

CoreTest(context, a_refused_destroy_puts_everything_back)
{
    uint32_t context = made();

    allocate(0x1000, context);
    end(context, CW_CONTEXT_KEPT);
    cr_expect_neq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), 0u);
    cr_expect_eq(record(context)->state, (uint32_t)CW_CONTEXT_LIVE);
    cr_expect_eq(of(HANDLE), context);
    cr_expect_eq(cw_gate_enter(), 1);
    cr_expect_eq(core_sums(site).reclaimed, 0u);
    cr_expect_eq(core_sums(site).live_blocks, 1u);
}

CoreTest(context, the_end_of_none_does_nothing)
{
    end(0, CW_CONTEXT_DESTROYED);
    cr_expect_eq(cw_gate_enter(), 1);
}

CoreTest(context, a_thread_that_still_has_a_destroyed_one_current_asks_again)
{
    uint32_t old = meet(7, 0);

    end(old, CW_CONTEXT_DESTROYED);
    fake_context(0, HANDLE, 8, 0);
    cr_expect_neq(current(), old);
    cr_expect_eq(record(current())->id, 8u);
}

/* ---- primary contexts ---- */

CoreTest(context, retains_and_releases_of_a_primary_one_are_counted)
{
    uint32_t context;

    cr_expect_eq(cw_context_primary(1), 0u);
    cr_expect_eq(cw_context_is_last_release(1), 0);
    cw_context_retained(HANDLE, 1);
    context = cw_context_primary(1);
    cr_assert_neq(context, 0u);
    cr_expect_eq(record(context)->primary, 1);
    cr_expect_eq(cw_context_primary(0), 0u);
    cw_context_retained(HANDLE, 1);
    cw_context_retained(HANDLE, 1);
    cr_expect_eq(record(context)->retains, 3u);
    cr_expect_eq(cw_context_primary(1), context);
    cw_context_released(1);
    cr_expect_eq(cw_context_is_last_release(1), 0);
    cw_context_released(1);
    cr_expect_eq(cw_context_is_last_release(1), 1);
    cw_context_released(1);
    cw_context_released(1);
    cr_expect_eq(record(context)->retains, 0u);
}

CoreTest(context, a_primary_one_may_have_been_current_before_its_retain)
{
    uint32_t context = meet(7, 0);

    cw_context_retained(HANDLE, 0);
    cr_expect_eq(cw_context_primary(0), context);
    cr_expect_eq(current(), context);
}

CoreTest(context, a_reset_keeps_handle_and_retains_and_loses_the_memory)
{
    uint32_t old, new;

    cw_context_retained(HANDLE, 0);
    cw_context_retained(HANDLE, 0);
    old = cw_context_primary(0);
    allocate(0x1000, old);
    end(old, CW_CONTEXT_RENEWED);
    new = cw_context_primary(0);
    cr_assert_neq(new, 0u);
    cr_expect_neq(new, old);
    cr_expect_eq(of(HANDLE), new);
    cr_expect_eq(record(new)->handle, HANDLE);
    cr_expect_eq(record(new)->retains, 2u);
    cr_expect_eq(record(new)->primary, 1);
    cr_expect_eq(record(old)->state, (uint32_t)CW_CONTEXT_DEAD);
    cr_expect_eq(core_sums(site).reclaimed, 1u);
    cr_expect_eq(cw_context_is_last_release(0), 0);
}

CoreTest(context, after_its_last_release_the_same_handle_is_a_new_one)
{
    uint32_t old;

    cw_context_retained(HANDLE, 0);
    old = cw_context_primary(0);
    end(old, CW_CONTEXT_DESTROYED);
    cr_expect_eq(cw_context_primary(0), 0u);
    cw_context_retained(HANDLE, 0);
    cr_expect_neq(cw_context_primary(0), old);
    cr_expect_eq(record(cw_context_primary(0))->retains, 1u);
}

/* ---- green contexts ---- */

CoreTest(context, a_green_one_means_the_primary_one_of_its_device)
{
    fake_context(0, HANDLE, 0, 2);
    fake_context(1, GREEN, 0, 2);
    cw_context_retained(HANDLE, 2);
    cw_context_folded(GREEN, 2);
    fake_set_current(GREEN);
    cr_expect_eq(current(), cw_context_primary(2));
    cr_expect_eq(record(current())->handle, HANDLE);
    cr_expect_eq(fake_gated_calls(), 0u);
    cw_context_unfolded(GREEN);
    cr_expect_eq(of(GREEN), 0u);
    cr_expect_eq(of(HANDLE), cw_context_primary(2));
    cw_context_unfolded(GREEN);
}

CoreTest(context, a_green_one_may_come_before_its_primary_one)
{
    uint32_t context;

    cw_context_folded(GREEN, 2);
    context = of(GREEN);
    cr_assert_neq(context, 0u);
    cr_expect_eq(context, cw_context_primary(2));
    cw_context_retained(HANDLE, 2);
    cr_expect_eq(of(HANDLE), context);
    cr_expect_eq(record(context)->handle, HANDLE);
    cr_expect_eq(record(context)->retains, 1u);
}

/* ---- numbers: by which contexts of a device are told apart, and where sites get them ---- */

CoreTest(context, those_of_a_device_at_one_time_have_different_numbers)
{
    uint32_t first = create(1, 2), second = another(1, 2, 2);

    cr_expect_eq(record(first)->number, 0);
    cr_expect_eq(record(second)->number, 1);
    cr_expect_eq(record(another(2, 3, 3))->number, 0);
    end(first, CW_CONTEXT_KEPT);
    cr_expect_eq(record(create(4, 2))->number, 0, "the handle was given out again");
    end(second, CW_CONTEXT_DESTROYED);
    cr_expect_eq(record(another(3, 5, 2))->number, 1);
}

CoreTest(context, too_many_share_the_last_number)
{
    uint32_t context = 0;

    for (unsigned i = 0; i < CW_CONTEXT_NUMBERS + 2; i++) {
        context = another(i, i + 1, 0);
        cr_expect_eq(record(context)->number, i < CW_CONTEXT_NUMBERS ? i : CW_CONTEXT_NUMBERS - 1u);
    }
    end(context, CW_CONTEXT_DESTROYED);
    another(100, 100, 0);
    cr_expect_eq(record(cw_arena_count(core_arena, CW_TABLE_CONTEXT) - 1)->number,
                 CW_CONTEXT_NUMBERS - 1, "others still have it");
}

static unsigned number_here(void)
{
    current();
    return cw_site_at(cw_site_here(cw_site_text("cuMemAlloc"), CW_KIND_DEVICE, 0))->context;
}

CoreTest(context, a_site_has_the_number_of_the_current_one)
{
    create(1, 0);
    cr_expect_eq(number_here(), 0);
    another(1, 2, 0);
    fake_set_current(HANDLE + 1);
    cr_expect_eq(number_here(), 1);
}

/* ---- fatal errors ---- */

CoreTest(context, the_first_fatal_code_stays)
{
    uint32_t context = made();

    cr_expect_eq(cw_context_set_fatal(0, 700), 0);
    cr_expect_eq(cw_context_set_fatal(context, 700), 1);
    cr_expect_eq(cw_context_set_fatal(context, 719), 0);
    cr_expect_eq(record(context)->fatal, 700);
}

/* ---- threads ---- */

static pthread_barrier_t both_asked;
static uint32_t found[2];

static void wait_for_the_other(enum fake_call call)
{
    if (call == FAKE_CONTEXT_FACTS)
        pthread_barrier_wait(&both_asked);
}

static void look(unsigned id)
{
    fake_set_current(HANDLE);
    found[id] = current();
}

CoreTest(context, two_threads_that_meet_one_at_once_agree_on_its_record)
{
    fake_context(0, HANDLE, 7, 0);
    pthread_barrier_init(&both_asked, NULL, 2);
    fake_driver.inside = wait_for_the_other;
    run_threads(2, look);
    cr_expect_neq(found[0], 0u);
    cr_expect_eq(found[0], found[1]);
    cr_expect_eq(of(HANDLE), found[0]);
}

static _Atomic unsigned wrong;

static void use_and_end(unsigned id)
{
    uint64_t handle = 0x100 + id % 4;
    uint8_t device;

    fake_set_current(handle);
    for (int i = 0; i < 3000; i++) {
        if (id < 4 && i % 10 == 0) {
            cw_context_created(handle, id);
            end(of(handle), i % 20 ? CW_CONTEXT_DESTROYED : CW_CONTEXT_KEPT);
        } else if (cw_context_current(&device) != 0 && device != id % 4) {
            wrong++;
        }
    }
}

CoreTest(context, eight_threads_use_and_end_contexts_at_once)
{
    for (unsigned i = 0; i < 4; i++)
        fake_context(i, 0x100 + i, 0, i);
    fake_driver.gate_may_close = 1;
    run_threads(8, use_and_end);
    cr_expect_eq(wrong, 0u);
    cr_expect_eq(cw_gate_enter(), 1);
}
