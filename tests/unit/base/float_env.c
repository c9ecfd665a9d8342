/* SPDX-License-Identifier: MIT */
/* A program's floating point: what traps, how it is rounded, and the flags. */
#include "base/float_env.h"

#include <criterion/criterion.h>

#include <fenv.h>

static volatile double number;

static void be_strict(void)
{
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    number = 0x1p-1000;
    number *= 0x1.8p-1000; /* flags of the program's own */
    feenableexcept(FE_ALL_EXCEPT);
}

static void expect_as_it_was(void)
{
    int traps = fegetexcept(), flags = fetestexcept(FE_ALL_EXCEPT), rounding = fegetround();

    fedisableexcept(FE_ALL_EXCEPT);
    fesetround(FE_TONEAREST);
    cr_expect(traps == FE_ALL_EXCEPT || traps == 0, "traps 0x%x", traps); /* 0: it has none */
    cr_expect(flags == (FE_UNDERFLOW | FE_INEXACT), "flags 0x%x", flags);
    cr_expect(rounding == FE_UPWARD, "rounding 0x%x", rounding);
}

Test(float_env, a_ratio_is_rounded_to_nearest_without_a_trap)
{
    static const struct {
        uint64_t part, of;
        double ratio;
    } cases[] = {{0, 0, 0}, {5, 0, 0}, {1, 3, 1.0 / 3}, {UINT64_MAX, 1, 0x1p64}, {7, 7, 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double ratio;

        be_strict();
        ratio = cw_float_ratio(cases[i].part, cases[i].of);
        expect_as_it_was();
        cr_expect(ratio == cases[i].ratio, "case %zu: %a", i, ratio);
    }
}

Test(float_env, a_product_is_cut_off_and_is_never_beyond_what_there_is)
{
    static const struct {
        double value;
        uint64_t by, whole;
    } cases[] = {{1.5, 1001, 1501},
                 {0.1, 10, 1},
                 {0.1, 9, 0},
                 {-3, 7, 0},
                 {1e300, 1, UINT64_MAX},
                 {1, UINT64_MAX, UINT64_MAX},
                 {__builtin_nan(""), 1, 0},
                 {__builtin_inf(), 0, 0},
                 {__builtin_inf(), 1, UINT64_MAX}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t whole;

        be_strict();
        whole = cw_float_times(cases[i].value, cases[i].by);
        expect_as_it_was();
        cr_expect(whole == cases[i].whole, "case %zu: %ju", i, (uintmax_t)whole);
    }
}
