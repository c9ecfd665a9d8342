/* SPDX-License-Identifier: MIT */
/* Listeners that come and go while others are called: each by its own argument, and none once it
 * has been taken out. */
#include "api/listeners.h"

#include <criterion/criterion.h>

#include "base/lock.h"
#include "core/limits/pressure.h"
#include "fake_driver.h"

#define ROUNDS 3000

static struct owner {
    _Atomic int is_there;
    _Atomic unsigned calls;
    cuwarden_pressure_fn fn;
} owner[2];
static _Atomic int wrong, ready;

static void hear(struct owner *expected, void *arg)
{
    if (arg != expected || !atomic_load(&expected->is_there))
        atomic_store(&wrong, 1);
    atomic_fetch_add(&expected->calls, 1);
}

static void hear_first(const struct cuwarden_pressure *now, int before, void *arg)
{
    (void)now;
    (void)before;
    hear(&owner[0], arg);
}

static void hear_second(const struct cuwarden_pressure *now, int before, void *arg)
{
    (void)now;
    (void)before;
    hear(&owner[1], arg);
}

static void wait_for_call(const struct owner *own, unsigned calls)
{
    unsigned turns = 0;

    while (atomic_load(&own->calls) == calls)
        cw_lock_relax(&turns);
}

static void come_and_go(struct owner *own)
{
    for (int i = 0; i < ROUNDS; i++) {
        unsigned calls = atomic_load(&own->calls);

        atomic_store(&own->is_there, 1);
        if (cw_api_pressure_listen(own->fn, own, 1) != CUWARDEN_OK)
            atomic_store(&wrong, 1);
        if (i % 10 == 0)
            wait_for_call(own, calls);
        if (cw_api_pressure_listen(own->fn, own, 0) != CUWARDEN_OK)
            atomic_store(&wrong, 1);
        atomic_store(&own->is_there, 0);
    }
    atomic_fetch_add(&ready, 1);
}

static void work(unsigned id)
{
    if (id < 2)
        come_and_go(&owner[id]);
    for (unsigned i = 0; id >= 2 && atomic_load(&ready) < 2; i++) {
        atomic_store(&cw_pressure_levels[id], i % 2 == 0 ? CW_LEVEL_HIGH : CW_LEVEL_LOW);
        cw_api_notice_serve();
    }
}

static void setup(void)
{
    fake_driver_init();
    core_arm();
    owner[0].fn = hear_first;
    owner[1].fn = hear_second;
}

TestSuite(listeners, .init = setup);

Test(listeners, of_one_that_was_taken_out_nothing_is_called)
{
    run_threads(4, work);
    cr_expect_eq(wrong, 0);
}

static void take_itself_out(const struct cuwarden_pressure *now, int before, void *arg)
{
    (void)now;
    (void)before;
    ++*(int *)arg;
    cr_expect_eq(cw_api_pressure_listen(take_itself_out, arg, 0), CUWARDEN_OK);
}

Test(listeners, one_may_take_itself_out)
{
    int calls = 0;

    cr_assert_eq(cw_api_pressure_listen(take_itself_out, &calls, 1), CUWARDEN_OK);
    for (int i = 0; i < 3; i++) {
        cw_pressure_levels[0] = i % 2 == 0 ? CW_LEVEL_HIGH : CW_LEVEL_LOW;
        cw_api_notice_serve();
    }
    cr_expect_eq(calls, 1);
    for (int i = 0; i < 8; i++) /* its place is free again */
        cr_expect_eq(cw_api_pressure_listen(hear_first, &owner[0], 1), CUWARDEN_OK);
}

static void fork_inside(const struct cuwarden_pressure *now, int before, void *arg)
{
    (void)now;
    (void)before;
    (void)arg;
    cw_api_listeners_reset(); /* as in a child of the thread that is here */
}

Test(listeners, a_child_goes_on_inside_a_listener)
{
    cr_assert_eq(cw_api_pressure_listen(fork_inside, NULL, 1), CUWARDEN_OK);
    cw_pressure_levels[0] = CW_LEVEL_HIGH;
    cw_api_notice_serve();
    cr_expect_eq(cw_api_pressure_listen(fork_inside, NULL, 0), CUWARDEN_OK);
}
