/* SPDX-License-Identifier: MIT */
/* The section GROWTH of the text report, and what the class "growing" looks like. */
#include "report/text/text_sections.h"

#include <criterion/criterion.h>

#include <string.h>

#include "report_fixture.h"

TestSuite(text_growth, .init = fixture_create, .fini = report_teardown);

static uint32_t stack_of(const char *function)
{
    return fixture_line(0, "/src/train.py", function, 218);
}

Test(text_growth, without_samples_there_is_no_section)
{
    write_report(CW_REPORT_TEXT);
    expect_no_text("GROWTH");
}

Test(text_growth, of_a_few_samples_there_is_no_section)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_series(site);
    for (unsigned i = 1; i < CW_TREND_POINTS_MIN - 1; i++)
        fixture_moment(i, i * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_no_text("GROWTH");
    fixture_moment(CW_TREND_POINTS_MIN - 1, 50 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_line("GROWTH  nothing grew steadily");
}

Test(text_growth, a_suspect_has_figures_and_a_place)
{
    fixture_growing(stack_of("make_cache"), "cudaMalloc", MIB);
    fixture_moments(10 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_line("GROWTH  1 call site grew steadily");
    expect_text("==4711==   +100.0 MiB/s  R2 1.00, 40 samples  floor 1.0 MiB -> 31.0 MiB  site ");
    expect_text("  cudaMalloc, device 0\n==4711==        make_cache (train.py:218)\n");
    expect_text("==4711== 40.0 MiB in 40 blocks  growing +100.0 MiB/s  cudaMalloc, device 0, ");
    expect_no_text("per step");
}

/* It is named also when nothing is left of it. */
Test(text_growth, a_suspect_names_the_cache_that_it_is_in)
{
    uint32_t stack =
        fixture_line(stack_of("train"), "/venv/tinygrad/runtime/ops_cuda.py", "_alloc", 9);
    uint32_t site = fixture_growing(stack, "cuMemAlloc_v2", MIB);

    fixture_moments(10 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_text("floor 1.0 MiB -> 31.0 MiB, in the cache of tinygrad  site ");
    fixture_free(site, MIB, 40);
    write_report(CW_REPORT_TEXT);
    expect_text(" MiB, all freed, in the cache of tinygrad  site ");
    expect_text("leaked_bytes=0 ");
}

Test(text_growth, the_short_form_marks_it)
{
    fixture_growing(0, "cudaMalloc", MIB);
    fixture_moments(10 * FIXTURE_MS);
    write_report(CW_REPORT_SHORT_IF_LEAKED);
    expect_no_text("GROWTH");
    expect_text("==4711== 40.0 MiB in 40 blocks  growing +100.0 MiB/s  cudaMalloc, device 0, ");
}

Test(text_growth, slopes_have_the_unit_that_fits)
{
    static const struct {
        uint64_t period_ns, each;
        const char *slope;
    } rows[] = {{10 * FIXTURE_MS, MIB, "  +100.0 MiB/s  "},
                {10000 * FIXTURE_MS, 6 * MIB, "  +36.0 MiB/min  "},
                {10000 * FIXTURE_MS, 2048, "  +12.0 KiB/min  "},
                {3600000 * FIXTURE_MS, 2048, "  +2.0 KiB/h  "},
                {3600000 * FIXTURE_MS * 24, 2048, "  +2.0 KiB/day  "}};

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        report_teardown();
        report = NULL;
        fixture_create();
        fixture_growing(0, "cudaMalloc", rows[i].each);
        fixture_moments(rows[i].period_ns);
        write_report(CW_REPORT_TEXT);
        expect_text(rows[i].slope);
    }
}

Test(text_growth, what_was_freed_is_said_to_be)
{
    uint32_t freed = fixture_growing(0, "cudaMalloc", MIB);
    uint32_t reclaimed = fixture_growing(0, "cuMemAlloc_v2", 2 * MIB);

    fixture_free(freed, MIB, MOMENTS);
    fixture_reclaim(reclaimed, 2 * MIB, MOMENTS);
    fixture_moments(10 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_line("GROWTH  2 call sites grew steadily");
    expect_text("floor 1.0 MiB -> 30.0 MiB, all freed  site ");
    expect_text("floor 2.0 MiB -> 60.0 MiB, gone with its context  site ");
    cr_expect(strstr(report, "+200.0 MiB/s") < strstr(report, "+100.0 MiB/s"));
}

Test(text_growth, ten_suspects_are_shown)
{
    for (unsigned i = 0; i < 13; i++)
        fixture_growing(stack_of("make_cache"), "cudaMalloc", MIB + i);
    fixture_moments(10 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_line("GROWTH  13 call sites grew steadily");
    cr_expect_eq(count_of(", 40 samples"), 10);
    expect_line("  ... 3 more sites");
}

static uint32_t stepping_tag(const char *name, uint64_t each)
{
    uint32_t tag = fixture_tag(name, NULL);

    for (unsigned i = 0; i < 40; i++)
        fixture_step(tag, (i + 1) * 5 * FIXTURE_MS, 10 * MIB + i * each);
    return tag;
}

Test(text_growth, growth_per_step)
{
    uint32_t site = fixture_growing(0, "cudaMalloc", MIB);

    fixture_site_at(site)->tag = (uint16_t)stepping_tag("train_step", MIB / 2);
    fixture_tag_at(stepping_tag("step #\n", 3 * MIB))->domain = fixture_text("My\x1bLib");
    stepping_tag("level", 0);
    fixture_moments(10 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_line("       +512.0 KiB per step of \"train_step\""); /* one in 5 ms */
    expect_line("  whole process: +3.0 MiB per step of \"step #?@My?Lib\"  R2 1.00, 40 steps  "
                "10.0 MiB -> 127.0 MiB");
    expect_line("  whole process: +512.0 KiB per step of \"train_step\"  R2 1.00, 40 steps  "
                "10.0 MiB -> 29.5 MiB");
    expect_no_text("level");
}

Test(text_growth, steps_are_told_without_a_suspect)
{
    stepping_tag("train_step", MIB);
    write_report(CW_REPORT_TEXT);
    expect_line("GROWTH  no call site grew steadily");
    expect_text("whole process: +1.0 MiB per step of \"train_step\"");
}

Test(text_growth, regrowth_says_what_would_have_avoided_it)
{
    uint32_t site = fixture_site(stack_of("push_back"), "cudaMalloc", CW_KIND_DEVICE, 1);
    struct cw_live_regrowth *regrowth = fixture_regrowth(site);

    regrowth->resizes = 6;
    regrowth->copied_bytes = 63 * MIB;
    regrowth->factor_sum = 6 * 1500;
    regrowth->chains = 1;
    regrowth->first_bytes = MIB;
    regrowth->largest_bytes = 64 * MIB;
    write_report(CW_REPORT_TEXT);
    expect_line("GROWTH  no call site grew steadily");
    expect_text("==4711==   regrown 6 times, by 1.50 on average, 63.0 MiB copied  site ");
    expect_line("       push_back (train.py:218)");
    expect_line("       an initial capacity of 64.0 MiB would have avoided them");
    regrowth->chains = 2;
    write_report(CW_REPORT_TEXT);
    expect_line(
        "       an initial capacity of 64.0 MiB would have avoided them for each of 2 blocks");
    regrowth->resizes = 2;
    write_report(CW_REPORT_TEXT);
    expect_no_text("regrown");
}

Test(text_growth, peaks_and_the_pool_of_devices)
{
    struct cw_live_timeline *timeline = fixture_timeline(1);

    for (unsigned i = 1; i < MOMENTS; i++) {
        timeline->point[i].t_ns = i * 10 * FIXTURE_MS;
        timeline->point[i].live = i * MIB;
        timeline->point[i].idle = i * 2 * MIB;
    }
    write_report(CW_REPORT_TEXT);
    expect_line("GROWTH  no call site grew steadily");
    expect_line("  device 1: the peak still rose in the last quarter of the run, 30.0 MiB -> "
                "39.0 MiB");
    expect_line("  device 1: what the pool keeps idle grew steadily, +200.0 MiB/s, floor 2.0 MiB "
                "-> 60.0 MiB");
}

Test(text_growth, hostile_records_do_no_harm)
{
    uint32_t site = fixture_growing(0, "cudaMalloc", MIB);
    struct cw_live_regrowth *regrowth = fixture_regrowth(site);
    struct cw_live_timeline *timeline = fixture_timeline(CW_DEVICE_HOST);

    memset((void *)&regrowth->resizes, 0xff, 48);
    for (unsigned i = 0; i < CW_POINTS; i++)
        timeline->point[i] = (struct cw_live_point){
            .t_ns = UINT64_MAX / 2 + i, .live = UINT64_MAX, .held = UINT64_MAX, .idle = i};
    fixture.arena.header->end_ns = UINT64_MAX;
    for (unsigned i = 0; i < CW_SAMPLES; i++)
        fixture.arena.header->growth.t_ns[i] = UINT64_MAX / CW_SAMPLES * i;
    write_report(CW_REPORT_TEXT);
    expect_text("SUMMARY");
    write_report(CW_REPORT_JSON);
    expect_no_text("nan");
    expect_no_text("inf");
}
