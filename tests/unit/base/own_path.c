/* SPDX-License-Identifier: MIT */
/* The path of the executable as /proc has it. Without /proc: e2e/errors.test. */
#include "base/own_path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

Test(own_path, is_that_of_this_program)
{
    char path[PATH_MAX], real[PATH_MAX];

    errno = EINTR;
    cr_assert_eq(cw_own_path(path, sizeof(path)), 0);
    cr_expect_eq(errno, EINTR);
    cr_assert_not_null(realpath("/proc/self/exe", real));
    cr_expect_str_eq(path, real);
}

Test(own_path, is_whole_or_nothing)
{
    char path[PATH_MAX], small[8];

    cr_assert_eq(cw_own_path(path, sizeof(path)), 0);
    cr_assert_geq(strlen(path), sizeof(small));
    errno = EINTR;
    cr_expect_eq(cw_own_path(small, sizeof(small)), -1);
    cr_expect_str_eq(small, "");
    cr_expect_eq(errno, EINTR);
    cr_expect_eq(cw_own_path(path, strlen(path)), -1);
}
