/* SPDX-License-Identifier: MIT */
/* Lines through points: what is found of known ones, and which of them grow steadily. Times in ms
 * from 100 ms on, unless a test says otherwise. */
#include "report/snapshot/trend.h"

#include <criterion/criterion.h>

#include "base/compiler.h"

#define MS     UINT64_C(1000000)
#define MIB    ((uint64_t)1 << 20)
#define POINTS 64
#define BEGIN  (100 * MS)

static struct cw_trend_point point[POINTS];
static struct cw_trend trend;
static uint64_t seed = 1;

/* 0 to 1. */
static double chance(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double tooth(double at)
{
    return at - (double)(uint64_t)at;
}

static void fit(uint32_t count)
{
    cw_trend_fit(point, count, BEGIN, &trend);
}

/* One point each ms. */
static void set(uint32_t at, uint64_t value)
{
    point[at] = (struct cw_trend_point){BEGIN + at * MS, value};
}

/* So many points each ms on a line. */
static void fit_line(uint32_t count, uint64_t from, uint64_t each)
{
    for (uint32_t i = 0; i < count; i++)
        set(i, from + i * each);
    fit(count);
}

static int is_near(double value, double wanted)
{
    double off = value - wanted;

    return (off < 0 ? -off : off) <= 1e-6 * (wanted < 0 ? -wanted : wanted);
}

Test(trend, of_nothing_is_nothing)
{
    fit(0);
    cr_expect_eq(trend.n, 0);
    cr_expect_not(trend.is_steady);
    set(0, 77);
    fit(1);
    cr_expect_eq(trend.n, 1);
    cr_expect(trend.slope == 0 && trend.r2 == 0 && trend.mean == 77);
    cr_expect_eq(trend.floor[3], 77);
}

Test(trend, known_answers)
{
    static const uint64_t values[] = {1, 3, 2, 5, 4, 6, 8, 7};

    for (uint32_t i = 0; i < CW_ARRAY_LEN(values); i++)
        set(i, values[i] * 1000);
    fit(8);
    /* sums of squares and products: 42, 39, 42 */
    cr_expect(is_near(trend.slope, 39.0 / 42 * 1e6), "%g", trend.slope);
    cr_expect(is_near(trend.r2, 39.0 * 39 / (42 * 42)), "%g", trend.r2);
    cr_expect_eq(trend.mean, 4500);
    cr_expect_eq(trend.n, 8);
    cr_expect_eq(trend.span_ns, 7 * MS);
    cr_expect(is_near(trend.growth, 39.0 / 42 * 7000));
    cr_expect_eq(trend.floor[0], 1000);
    cr_expect_eq(trend.floor[1], 2000);
    cr_expect_eq(trend.floor[2], 4000);
    cr_expect_eq(trend.floor[3], 7000);
    cr_expect_eq(trend.rises, 3);
}

Test(trend, finds_the_slope_of_every_line)
{
    for (unsigned round = 0; round < 2000; round++) {
        double slope = chance() * 1e12, start = chance() * 1e12;
        uint32_t count = 8 + (uint32_t)(chance() * (POINTS - 8));
        uint64_t t_ns = BEGIN;

        for (uint32_t i = 0; i < count; i++) {
            t_ns += 1 + (uint64_t)(chance() * 1e9);
            point[i] = (struct cw_trend_point){
                t_ns, (uint64_t)(start + slope * (double)(t_ns - BEGIN) / 1e9)};
        }
        fit(count);
        cr_assert(is_near(trend.slope, slope), "%g, not %g", trend.slope, slope);
        cr_assert(trend.r2 > 0.999 && trend.r2 <= 1, "%g", trend.r2);
    }
}

Test(trend, a_level_line_has_neither_slope_nor_r2)
{
    fit_line(40, 77 * MIB, 0);
    cr_expect_eq(trend.slope, 0);
    cr_expect_eq(trend.r2, 0);
    cr_expect_eq(trend.mean, 77.0 * (double)MIB);
    cr_expect_eq(trend.rises, 0);
    cr_expect_not(trend.is_steady);
}

Test(trend, a_falling_line_has_a_slope_below_zero)
{
    fit_line(40, 100 * MIB, -MIB);
    cr_expect(is_near(trend.slope, -1000.0 * (double)MIB), "%g", trend.slope);
    cr_expect(is_near(trend.r2, 1));
    cr_expect_eq(trend.rises, 0);
    cr_expect_not(trend.is_steady);
}

Test(trend, what_lies_before_the_beginning_does_not_count)
{
    for (uint32_t i = 0; i < 60; i++)
        set(i, i < 20 ? 900 * MIB : i * MIB);
    cw_trend_fit(point, 60, BEGIN + 20 * MS, &trend);
    cr_expect_eq(trend.n, 40);
    cr_expect(is_near(trend.slope, 1000.0 * (double)MIB));
    cr_expect_eq(trend.floor[0], 20 * MIB);
    cr_expect(trend.is_steady);
    cw_trend_fit(point, 60, UINT64_MAX, &trend);
    cr_expect_eq(trend.n, 0);
}

Test(trend, a_leak_is_steady)
{
    fit_line(40, MIB, MIB);
    cr_expect(trend.is_steady);
    cr_expect_eq(trend.rises, 3);
    cr_expect_eq(trend.floor[0], MIB);
    cr_expect_eq(trend.floor[3], 31 * MIB); /* the last quarter begins after 29.25 ms */
}

Test(trend, a_rising_sawtooth_is_steady)
{
    for (uint32_t i = 0; i < POINTS; i++)
        set(i, i * MIB + i % 5 * 8 * MIB);
    fit(POINTS);
    cr_expect(trend.is_steady);
}

Test(trend, what_warms_up_is_not)
{
    for (uint32_t percent = 1; percent <= 65; percent++) {
        for (uint32_t i = 0; i < POINTS; i++)
            set(i, 100 * i < percent * POINTS ? i * 100 * MIB / percent : POINTS * MIB);
        fit(POINTS);
        cr_expect_not(trend.is_steady, "%u %%", percent);
    }
}

Test(trend, a_block_that_comes_late_is_not)
{
    for (uint32_t when = 1; when < POINTS; when++) {
        for (uint32_t i = 0; i < POINTS; i++)
            set(i, (i < when ? 1 : 1000) * MIB);
        fit(POINTS);
        cr_expect_not(trend.is_steady, "at %u", when);
        cr_expect_leq(trend.rises, 1);
    }
}

/* How many of so many sawtooths on a line that rises by `rise` teeth are steady, whatever the
 * teeth, and wherever in them the moments fall. */
static unsigned steady_sawtooths(unsigned rounds, double rise)
{
    unsigned named = 0;

    for (unsigned round = 0; round < rounds; round++) {
        double teeth = 3 + chance() * 37, phase = chance();

        for (uint32_t i = 0; i < 48; i++) {
            double at = (i + 0.8 * chance()) / 48;

            point[i] =
                (struct cw_trend_point){BEGIN + (uint64_t)(at * 1e9),
                                        (uint64_t)((rise * at + tooth(at * teeth + phase)) * 1e8)};
        }
        fit(48);
        named += trend.is_steady;
    }
    return named;
}

/* A handful is by chance. */
Test(trend, a_level_sawtooth_is_hardly_ever_steady_and_a_rising_one_hardly_ever_missed)
{
    unsigned named = steady_sawtooths(20000, 0);

    cr_expect_leq(named, 10, "%u", named);
    seed = 1;
    named = steady_sawtooths(2000, 2);
    cr_expect_geq(named, 1900, "%u", named);
}

Test(trend, too_few_points_or_too_short_tells_nothing)
{
    for (uint32_t i = 0; i < 8; i++)
        point[i] = (struct cw_trend_point){BEGIN + i * 10 * MS, i * MIB};
    fit(8);
    cr_expect(trend.is_steady);
    fit(7);
    cr_expect_not(trend.is_steady);
    fit_line(21, 0, MIB);
    cr_expect(trend.is_steady);
    fit(20); /* 19 ms */
    cr_expect_not(trend.is_steady);
}

Test(trend, little_growth_is_not_worth_a_word)
{
    static const struct {
        uint64_t from, tenths; /* and so many tenths of a unit each ms */
        uint64_t unit;
        int is_steady;
    } lines[] = {{0, 17000, 1, 1}, /* 66300 bytes */
                 {0, 16000, 1, 0},
                 {1000 * MIB, 13, MIB, 0},  /* 50.7 of 1025 MiB */
                 {1000 * MIB, 14, MIB, 1}}; /* 54.6 of 1027 MiB */

    for (size_t row = 0; row < CW_ARRAY_LEN(lines); row++) {
        for (uint32_t i = 0; i < 40; i++)
            set(i, lines[row].from + i * lines[row].tenths * lines[row].unit / 10);
        fit(40);
        cr_expect_eq(trend.is_steady, lines[row].is_steady, "line %zu", row);
    }
}

Test(trend, what_began_to_grow_in_the_second_half_is_not)
{
    for (uint32_t i = 0; i < POINTS; i++)
        set(i, i < 32 ? 0 : (i - 31) * MIB);
    fit(POINTS);
    cr_expect_eq(trend.rises, 1); /* to the third it rose too little */
    cr_expect_not(trend.is_steady);
}

Test(trend, a_clean_up_before_the_end_does_not_count)
{
    for (uint32_t i = 0; i < POINTS; i++)
        set(i, i < 58 ? i * MIB : 0);
    fit(POINTS);
    cr_expect_eq(trend.n, 58);
    cr_expect(is_near(trend.slope, 1000.0 * (double)MIB));
    cr_expect(is_near(trend.r2, 1));
    cr_expect(trend.is_steady);
    for (uint32_t i = 0; i < POINTS; i++) /* that is no end any more */
        set(i, i < 50 ? i * MIB : 0);
    fit(POINTS);
    cr_expect_eq(trend.n, POINTS);
    cr_expect_not(trend.is_steady);
}

Test(trend, a_quarter_without_points_has_not_risen)
{
    for (uint32_t i = 0; i < 40; i++) {
        set(i, i * MIB);
        if (i >= 20)
            point[i].t_ns += 60 * MS; /* 0..19 and 80..99 ms */
    }
    fit(40);
    cr_expect_eq(trend.floor[0], trend.floor[1]);
    cr_expect_eq(trend.floor[1], trend.floor[2]);
    cr_expect_eq(trend.rises, 1);
    cr_expect_not(trend.is_steady);
    cw_trend_fit(point + 20, 20, BEGIN, &trend); /* nothing in the first three */
    cr_expect_eq(trend.floor[0], 20 * MIB);
    cr_expect_eq(trend.floor[2], 20 * MIB);
}

Test(trend, the_largest_numbers_do_no_harm)
{
    for (uint32_t i = 0; i < POINTS; i++)
        point[i] = (struct cw_trend_point){(UINT64_MAX / POINTS) * i, i % 2 ? UINT64_MAX : 0};
    cw_trend_fit(point, POINTS, 0, &trend);
    cr_expect(trend.slope - trend.slope == 0 && trend.growth - trend.growth == 0);
    cr_expect(trend.r2 >= 0 && trend.r2 <= 1);
    point[0] = (struct cw_trend_point){UINT64_MAX - 1, 0};
    point[1] = (struct cw_trend_point){UINT64_MAX, UINT64_MAX};
    cw_trend_fit(point, 2, 1, &trend);
    cr_expect(trend.slope - trend.slope == 0 && trend.r2 >= 0 && trend.r2 <= 1);
}

Test(trend, bytes_are_rounded_and_bounded)
{
    cr_expect_eq(cw_trend_to_bytes(1.5), 2);
    cr_expect_eq(cw_trend_to_bytes(-5), 0);
    cr_expect_eq(cw_trend_to_bytes(1e300), UINT64_MAX);
    cr_expect_eq(cw_trend_to_bytes(__builtin_nan("")), 0);
}
