/* SPDX-License-Identifier: MIT */
/* Injected failures: which calls fail, however many threads make them. */
#include "core/limits/inject.h"

#include <criterion/criterion.h>

#include "base/options/fail_plan.h"
#include "pool_fixture.h"

TestSuite(inject);

static void plan(const char *text)
{
    struct cw_fail_plan parsed;

    cr_assert_eq(cw_fail_plan_parse(text, &parsed), 0);
    cw_inject_init(&parsed);
}

/* Of `calls` calls for so many bytes, as a string of digits. */
static void expect_failures(const char *wanted, uint64_t bytes)
{
    for (unsigned i = 0; wanted[i] != '\0'; i++)
        cr_expect_eq(cw_inject_fails(bytes), wanted[i] - '0', "call %u", i + 1);
}

Test(inject, is_off_without_a_plan)
{
    plan("off");
    cr_expect_not(cw_inject_is_on());
}

Test(inject, nth_fails_once)
{
    plan("nth=3");
    cr_expect(cw_inject_is_on());
    expect_failures("0010000000", 1);
    cw_inject_reset();
    cr_expect_not(cw_inject_is_on());
    plan("nth=1");
    expect_failures("1000", 1);
}

Test(inject, every_fails_again_and_again)
{
    plan("every=3");
    expect_failures("001001001", 1);
    plan("every=1");
    expect_failures("111", 1);
}

Test(inject, above_alone_fails_all_that_are_larger)
{
    plan("above=1M");
    cr_expect(cw_inject_is_on());
    cr_expect_eq(cw_inject_fails(MIB), 0);
    cr_expect_eq(cw_inject_fails(MIB + 1), 1);
    cr_expect_eq(cw_inject_fails(0), 0);
    cr_expect_eq(cw_inject_fails(UINT64_MAX), 1);
}

Test(inject, with_above_only_larger_ones_count)
{
    plan("nth=2,above=1M");
    expect_failures("00000", MIB);
    expect_failures("0", 2 * MIB);
    expect_failures("00000", MIB);
    expect_failures("100", 2 * MIB);
    plan("every=2,above=1M");
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(cw_inject_fails(1), 0);
        cr_expect_eq(cw_inject_fails(2 * MIB), i % 2);
    }
}

#define CALLS 1600000

static _Atomic unsigned failures;

static void call_often(unsigned id)
{
    (void)id;
    for (unsigned i = 0; i < CALLS / 8; i++)
        failures += (unsigned)cw_inject_fails(1);
}

static unsigned count_alone(const char *text)
{
    unsigned count = 0;

    plan(text);
    for (unsigned i = 0; i < CALLS; i++)
        count += (unsigned)cw_inject_fails(1);
    return count;
}

static unsigned count_in_threads(const char *text)
{
    plan(text);
    failures = 0;
    run_threads(8, call_often);
    return failures;
}

Test(inject, chance_is_what_it_says)
{
    unsigned tenth = count_alone("prob=0.1,seed=5");

    cr_expect_gt(tenth, 156000);
    cr_expect_lt(tenth, 164000);
    cr_expect_eq(count_alone("prob=1"), CALLS);
    cr_expect_lt(count_alone("prob=0.000001"), 10);
}

Test(inject, the_same_seed_fails_as_often_in_any_order_of_threads)
{
    unsigned alone = count_alone("prob=0.25,seed=7");

    cr_expect_eq(count_alone("prob=0.25,seed=7"), alone);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(count_in_threads("prob=0.25,seed=7"), alone);
    cr_expect_neq(count_alone("prob=0.25,seed=8"), alone);
    cr_expect_eq(count_in_threads("nth=777"), 1);
    cr_expect_eq(count_in_threads("every=7"), CALLS / 7);
}
