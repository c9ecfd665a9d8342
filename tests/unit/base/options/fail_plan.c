/* SPDX-License-Identifier: MIT */
/* The values of FAIL and PRESSURE: every form good and bad, and printed values that parse back. */
#include "base/options/fail_plan.h"

#include <criterion/criterion.h>

#include <string.h>

#include "base/compiler.h"
#include "base/options/option_values.h"

#define MIB UINT64_C(1048576)

static struct cw_fail_plan plan;

static const char *printed(void)
{
    static char text[256];
    struct cw_out out;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_fail_plan_print(&plan, &out);
    text[out.len] = '\0';
    return text;
}

Test(fail_plan, takes_every_form_and_prints_it_so_that_it_parses_back)
{
    static const struct {
        const char *text;
        struct cw_fail_plan wanted;
        const char *printed;
    } cases[] = {
        {"off", {0}, "off"},
        {"nth=1", {.nth = 1}, "nth=1"},
        {"nth=18446744073709551615", {.nth = UINT64_MAX}, "nth=18446744073709551615"},
        {"every=007", {.every = 7}, "every=7"},
        {"prob=1", {.millionths = 1000000, .seed = 1}, "prob=1,seed=1"},
        {"prob=1.000", {.millionths = 1000000, .seed = 1}, "prob=1,seed=1"},
        {"prob=0.25", {.millionths = 250000, .seed = 1}, "prob=0.25,seed=1"},
        {"prob=0.000001", {.millionths = 1, .seed = 1}, "prob=0.000001,seed=1"},
        {"prob=0.0000019", {.millionths = 1, .seed = 1}, "prob=0.000001,seed=1"},
        {"prob=0.5,seed=42", {.millionths = 500000, .seed = 42}, "prob=0.5,seed=42"},
        {"seed=0,prob=0.5", {.millionths = 500000}, "prob=0.5,seed=0"},
        {"above=1M", {.above = MIB}, "above=1M"},
        {"above=512B", {.above = 512}, "above=512"},
        {"above=1", {.above = 1}, "above=1"},
        {"nth=3,above=1.5MiB", {.nth = 3, .above = 3 * MIB / 2}, "nth=3,above=1.5M"},
        {"above=2M,every=10", {.every = 10, .above = 2 * MIB}, "every=10,above=2M"},
        {"seed=9,above=1M,prob=0.1",
         {.millionths = 100000, .seed = 9, .above = MIB},
         "prob=0.1,seed=9,above=1M"},
    };

    for (size_t i = 0; i < 2 * CW_ARRAY_LEN(cases); i++) {
        const struct cw_fail_plan *wanted = &cases[i / 2].wanted;
        const char *text = i % 2 == 0 ? cases[i / 2].text : cases[i / 2].printed;

        memset(&plan, 0xff, sizeof(plan));
        cr_assert_eq(cw_fail_plan_parse(text, &plan), 0, "%s", text);
        cr_expect_eq(plan.nth, wanted->nth, "%s", text);
        cr_expect_eq(plan.every, wanted->every, "%s", text);
        cr_expect_eq(plan.above, wanted->above, "%s", text);
        cr_expect_eq(plan.seed, wanted->seed, "%s", text);
        cr_expect_eq(plan.millionths, wanted->millionths, "%s", text);
        cr_expect_str_eq(printed(), cases[i / 2].printed);
    }
}

static void expect_all_refused(const char *const *texts, size_t count)
{
    cr_assert_eq(cw_fail_plan_parse("nth=5,above=1K", &plan), 0);
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(cw_fail_plan_parse(texts[i], &plan), -1, "'%s'", texts[i]);
    cr_expect_str_eq(printed(), "nth=5,above=1K");
}

Test(fail_plan, bad_values_are_refused_and_leave_what_was)
{
    static const char *const counts[] = {
        "nth",    "nth=",   "nth=0", "nth=-1",  "nth=+1", "nth=1x",   "nth=1.0",
        "nth: 1", "nth= 1", "NTH=1", "every=0", "every=", "every=1K", "nth=18446744073709551616",
    };
    static const char *const chances[] = {
        "prob=",           "prob=0",           "prob=0.0",        "prob=2",
        "prob=1.000001",   "prob=.5",          "prob=1.",         "prob=-0.5",
        "prob=1e-3",       "prob=50%",         "prob=0.5x",       "seed=1",
        "seed=1,nth=3",    "every=2,seed=5",   "seed=1,above=1M", "prob=0.5,seed=",
        "prob=0.5,seed=x", "prob=0.5,seed=-1", "prob=0.0000009",  "prob=0.0000000000000000001",
    };
    static const char *const sizes[] = {
        "above=",   "above=0",   "above=0.0001K", "above=-1",        "above=1.5",
        "above=8Q", "above=50%", "above=none",    "above=16777216T",
    };

    expect_all_refused(counts, CW_ARRAY_LEN(counts));
    expect_all_refused(chances, CW_ARRAY_LEN(chances));
    expect_all_refused(sizes, CW_ARRAY_LEN(sizes));
}

Test(fail_plan, bad_lists_are_refused_and_leave_what_was)
{
    static const char *const words[] = {
        "", " ", ",", "on", "0", "1", "OFF", "offf", "off,nth=1", "nth=1,off", "size=1M",
    };
    static const char *const repeated[] = {
        "nth=1,nth=2",   "every=1,every=1", "prob=0.5,prob=0.5", "prob=0.5,seed=1,seed=1",
        "nth=1,every=2", "nth=1,prob=0.5",  "every=2,prob=0.5",  "above=1M,above=1M",
    };
    static const char *const commas[] = {
        "nth=1,",         "nth=1,,above=1M", "nth=1 ,above=1M", "nth=1, above=1M",
        "nth=1;above=1M", ",nth=1",          "nth=1above=1M",   "nth=1,x=2",
    };

    expect_all_refused(words, CW_ARRAY_LEN(words));
    expect_all_refused(repeated, CW_ARRAY_LEN(repeated));
    expect_all_refused(commas, CW_ARRAY_LEN(commas));
}

/* ---- thresholds of pressure ---- */

static struct cw_levels levels;

static const char *printed_levels(void)
{
    static char text[64];
    struct cw_out out;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_levels_print(&levels, &out);
    text[out.len] = '\0';
    return text;
}

Test(fail_plan, thresholds_are_three_ascending_percents)
{
    static const char *const pairs[][2] = {{"60,80,95", "60,80,95"},   {"1,2,3", "1,2,3"},
                                           {"98,99,100", "98,99,100"}, {"60%,80%,95%", "60,80,95"},
                                           {"60,80%,95", "60,80,95"},  {"01,002,100%", "1,2,100"}};

    for (size_t i = 0; i < CW_ARRAY_LEN(pairs); i++) {
        cr_assert_eq(cw_levels_parse(pairs[i][0], &levels), 0, "%s", pairs[i][0]);
        cr_expect_str_eq(printed_levels(), pairs[i][1]);
    }
}

Test(fail_plan, bad_thresholds_are_refused_and_leave_what_was)
{
    static const char *const bad[] = {
        "",
        "60",
        "60,80",
        "60,80,",
        "60,80,95,",
        "60,80,95,99",
        ",60,80",
        "60,,95",
        "0,80,95",
        "60,80,101",
        "80,60,95",
        "60,80,110%",
        "60,60,95",
        "60,95,95",
        "60,95,80",
        "-1,80,95",
        "x,80,95",
        "60.5,80,95",
        "60%%,80,95",
        "60, 80,95",
        " 60,80,95",
        "60,80,x",
        "60;80;95",
        "60,80,95 ",
        "60M,80,95",
        "316,80,95",
        "none",
        "off",
        "60,80,18446744073709551711",
    };

    cr_assert_eq(cw_levels_parse("10,20,30", &levels), 0);
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++)
        cr_expect_eq(cw_levels_parse(bad[i], &levels), -1, "'%s'", bad[i]);
    cr_expect_str_eq(printed_levels(), "10,20,30");
}
