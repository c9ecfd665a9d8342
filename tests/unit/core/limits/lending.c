/* SPDX-License-Identifier: MIT */
/* What neighbours have asked for, and for how long. */
#include "core/limits/lending.h"

#include <criterion/criterion.h>

#define MIB  ((uint64_t)1 << 20)
#define HOUR UINT64_C(3600000000000)

TestSuite(lending, .init = cw_lending_reset);

Test(lending, is_for_the_one_that_wants_more)
{
    cw_lending_want(0, 2 * MIB, 0, 50);
    cw_lending_want(0, MIB, 10, 60);
    cr_expect_eq(cw_lending_wanted(0, 55), 2 * MIB);
    cw_lending_given(0, MIB);
    cr_expect_eq(cw_lending_wanted(0, 55), MIB);
    cr_expect_eq(cw_lending_wanted(1, 55), 0);
    cw_lending_given(0, 5 * MIB);
    cr_expect_eq(cw_lending_wanted(0, 55), 0);
}

Test(lending, that_is_over_does_not_go_on_with_the_next)
{
    cw_lending_want(0, UINT64_MAX, 0, 50);
    cw_lending_given(0, 3 * MIB);
    cw_lending_want(0, MIB, HOUR, HOUR + 50);
    cr_expect_eq(cw_lending_wanted(0, HOUR + 1), MIB);
    cr_expect_eq(cw_lending_wanted(0, HOUR + 50), 0);
}
