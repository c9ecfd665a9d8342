/* SPDX-License-Identifier: MIT */
/*
 * How often programs are warned in vain, and how often in time: made-up ones (unit/fixtures/
 * programs.h) whose seeds the forecast's constants were chosen by, and others.
 */
#include "core/growth/forecast.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "ask_fixture.h"
#include "programs.h"

#define SEEDS         25
#define FALSE_MOST    0.01
#define IN_TIME_LEAST 0.9

static unsigned runs, hits;

static void start(void)
{
    ask_start("", "", 0);
    programs_begin();
}

TestSuite(forecast_programs, .init = start);

/* Counts what is said of them, prints it by family, and adds it up. */
static void run_calm(uint64_t seed)
{
    runs = hits = 0;
    for (unsigned family = 0; family < programs_calm(); family++) {
        unsigned warned = 0;

        for (unsigned i = 0; i < SEEDS; i++) {
            struct program_end end;

            programs_run_calm(family, seed + i, &end);
            cr_expect_not(end.ran_out, "%s %u", programs_calm_name(family), i);
            warned += end.warned_ns != 0;
        }
        printf("%-36s warned %2u of %u\n", programs_calm_name(family), warned, SEEDS);
        runs += SEEDS;
        hits += warned;
    }
    printf("warned in vain: %u of %u (%.2f %%)\n", hits, runs, 100.0 * hits / runs);
}

static void run_failing(uint64_t seed)
{
    runs = hits = 0;
    for (unsigned family = 0; family < programs_failing(); family++) {
        unsigned warned = 0, in_time = 0, of = 0;
        double when = 0;

        for (unsigned i = 0; i < SEEDS; i++) {
            struct program_end end;

            programs_run_failing(family, seed + i, &end);
            if (!end.ran_out) /* noise kept it just below */
                continue;
            of++;
            warned += end.warned_ns != 0;
            in_time += end.warned_ns != 0 && end.warned_ns <= end.life_ns / 2;
            when += end.warned_ns != 0 ? (double)end.warned_ns / (double)end.life_ns : 1;
        }
        cr_expect_gt(of, SEEDS / 2, "%s", programs_failing_name(family));
        printf("%-36s warned %2u, in time %2u of %u, after %.0f %% of the life on average\n",
               programs_failing_name(family), warned, in_time, of, 100 * when / of);
        runs += of;
        hits += in_time;
    }
    printf("warned in time: %u of %u (%.2f %%)\n", hits, runs, 100.0 * hits / runs);
}

Test(forecast_programs, few_are_warned_in_vain)
{
    run_calm(1);
    cr_expect_lt(hits, FALSE_MOST * runs);
}

Test(forecast_programs, few_of_others_are_warned_in_vain)
{
    run_calm(5001);
    cr_expect_lt(hits, FALSE_MOST * runs);
}

Test(forecast_programs, most_that_run_out_are_warned_by_half_of_their_life)
{
    run_failing(1);
    cr_expect_geq(hits, IN_TIME_LEAST * runs);
}

Test(forecast_programs, most_of_others_are_warned_by_half_of_their_life)
{
    run_failing(5001);
    cr_expect_geq(hits, IN_TIME_LEAST * runs);
}
