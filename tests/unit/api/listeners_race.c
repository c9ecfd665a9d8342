/* SPDX-License-Identifier: MIT */
/* Two listeners take each other's place while they are called; also under ThreadSanitizer
 * (tests/check/tsan.test). Nobody is called with the argument of the other, or once he has left. */
#include <criterion/criterion.h>

#include <sched.h>
#include <stdatomic.h>

#include "api/listeners.h"
#include "core/request/ladder.h"
#include "fake_driver.h"

#define TURNS 200000
#define CALLS 1000 /* at least: a machine that is busy may make all turns before anybody asks */

static int first_arg, second_arg;
static _Atomic int is_over;
static _Atomic unsigned calls, mixed_up;

static void check(const void *arg, const void *wanted)
{
    atomic_fetch_add(&calls, 1);
    if (arg != wanted)
        atomic_fetch_add(&mixed_up, 1);
}

static int first(int device, uint64_t bytes, void *arg)
{
    (void)bytes;
    check(arg, &first_arg);
    return device;
}

static int second(int device, uint64_t bytes, void *arg)
{
    (void)bytes;
    check(arg, &second_arg);
    return device;
}

static void replace(void)
{
    for (unsigned i = 0; i < TURNS || atomic_load(&calls) < CALLS; i++) {
        cr_assert_eq(cw_api_memory_listen(first, &first_arg, 1), CUWARDEN_OK);
        cr_assert_eq(cw_api_memory_listen(first, &first_arg, 0), CUWARDEN_OK);
        cr_assert_eq(cw_api_memory_listen(second, &second_arg, 1), CUWARDEN_OK);
        cr_assert_eq(cw_api_memory_listen(second, &second_arg, 0), CUWARDEN_OK);
    }
    atomic_store(&is_over, 1);
}

static void ask(void)
{
    uint32_t block;

    while (!atomic_load(&is_over)) {
        struct cw_ladder ladder;

        cw_ladder_begin(&ladder, 0, 1);
        cw_ladder_climb(&ladder, CW_CAUSE_BUDGET, &block);
        cw_ladder_end(&ladder);
    }
}

static void run(unsigned id)
{
    if (id < 2) /* two, so that each may be sent away by the other */
        replace();
    else
        ask();
}

Test(listeners_race, nobody_is_called_with_the_argument_of_another)
{
    core_arm();
    cw_api_init(core_options());
    run_threads(4, run);
    cr_expect_eq(atomic_load(&mixed_up), 0, "%u of %u calls", mixed_up, calls);
    cr_expect_eq(cw_api_memory_listen(first, &first_arg, 0), CUWARDEN_NOT_FOUND);
    cr_expect_eq(cw_api_memory_listen(second, &second_arg, 0), CUWARDEN_NOT_FOUND);
}

/* ---- who leaves ---- */

struct guest {
    _Atomic int is_here;
    _Atomic unsigned calls;
};

static _Atomic unsigned ghosts;

static int greet(int device, uint64_t bytes, void *arg)
{
    struct guest *guest = arg;

    (void)bytes;
    atomic_fetch_add(&guest->calls, 1);
    for (int i = 0; i < 2000; i++)
        if (!atomic_load(&guest->is_here))
            atomic_fetch_add(&ghosts, 1);
    return device;
}

/* Leaves while somebody is speaking to it. */
static void come_and_go(void)
{
    static struct guest guest[200];

    for (unsigned i = 0; i < sizeof(guest) / sizeof(guest[0]); i++) {
        atomic_store(&guest[i].is_here, 1);
        cr_assert_eq(cw_api_memory_listen(greet, &guest[i], 1), CUWARDEN_OK);
        while (atomic_load(&guest[i].calls) == 0)
            sched_yield();
        cr_assert_eq(cw_api_memory_listen(greet, &guest[i], 0), CUWARDEN_OK);
        atomic_store(&guest[i].is_here, 0);
    }
    atomic_store(&is_over, 1);
}

static void receive(unsigned id)
{
    if (id == 0)
        come_and_go();
    else
        ask();
}

Test(listeners_race, nobody_is_called_who_has_left)
{
    core_arm();
    cw_api_init(core_options());
    run_threads(3, receive);
    cr_expect_eq(atomic_load(&ghosts), 0, "%u calls", ghosts);
}
