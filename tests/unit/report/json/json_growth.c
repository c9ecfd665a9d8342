/* SPDX-License-Identifier: MIT */
/* Growth in the JSON report: its shape, its numbers, and that all of them are valid JSON. Python
 * reads it. */
#include "report/json/json_put.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#include "json_fixture.h"

TestSuite(json_growth, .init = report_file_setup, .fini = report_file_teardown);

static uint32_t leaking_site(void)
{
    fixture_moments(10 * FIXTURE_MS);
    return fixture_growing(0, "cudaMalloc", MIB);
}

Test(json_growth, of_an_empty_layout)
{
    write_report(CW_REPORT_JSON);
    expect_holds(
        "{k:v for k,v in r[\"growth\"].items() if "
        "k!=\"watched_ns\"}=={\"on\":False,\"samples\":0,\"period_ns\":0,\"sites_dropped\":0,"
        "\"t_ns\":[],\"suspects\":[],\"devices\":[]} and r[\"tags\"]==[] and "
        "r[\"regrowth\"]==[] and "
        "r[\"timeline\"]=={\"columns\":[\"t_ns\",\"live\",\"held\",\"idle\",\"used\"],"
        "\"series\":[]}");
}

Test(json_growth, of_a_site)
{
    uint32_t site = leaking_site();
    uint32_t tag = fixture_tag("train \"step\"", NULL);
    uint32_t level = fixture_site(0, "cuMemAlloc_v2", CW_KIND_DEVICE, 0);

    fixture_series(level);
    fixture_alloc(level, 512, 1, 10 * FIXTURE_MS);
    fixture_site(0, "cuMemCreate", CW_KIND_VMM, 0);
    for (unsigned i = 1; i <= 3; i++)
        fixture_step(tag, i * 5 * FIXTURE_MS, 7);
    fixture_site_at(site)->tag = (uint16_t)tag;
    fixture.arena.header->growth.dropped = 2;
    fixture.arena.header->growth.period_ns = 10 * FIXTURE_MS;
    write_report(CW_REPORT_JSON);
    expect_holds(
        "[s[\"class\"] for s in r[\"sites\"] if \"class\" in s and s[\"api\"]==\"cudaMalloc\"]"
        "==[\"growing\"] and r[\"summary\"][\"leak_sites\"]==2");
    expect_holds(
        "[(round(g[\"slope_bps\"],3),round(g[\"r2\"],6),g[\"n\"],g[\"windows\"],g[\"suspect\"],"
        "g[\"per_step\"]) "
        "for g in [s.get(\"growth\") for s in r[\"sites\"]] if g and g[\"suspect\"]]=="
        "[(104857600.0,1.0,40,3,True,{\"tag\":\"train \\\"step\\\"\",\"bytes\":524288.0})]");
    expect_holds("r[\"growth\"][\"t_ns\"]==[i*10**7 for i in range(1,41)]");
    expect_holds("[s[\"growth\"][\"bytes\"] for s in r[\"sites\"] if s[\"api\"]==\"cudaMalloc\"]=="
                 "[[i<<20 for i in range(1,41)]]");
    expect_holds("[s[\"growth\"][\"floors\"] for s in r[\"sites\"] if s[\"api\"]==\"cudaMalloc\"]=="
                 "[[1<<20,11<<20,21<<20,31<<20]]");
    expect_holds(
        "[(s[\"growth\"][\"suspect\"],len(s[\"growth\"][\"bytes\"])) for s in r[\"sites\"] if "
        "s[\"api\"]==\"cuMemAlloc_v2\"]==[(False,40)]");
    expect_holds("[\"growth\" in s for s in r[\"sites\"] if s[\"api\"]==\"cuMemCreate\"]==[False]");
    expect_holds(
        "r[\"growth\"][\"on\"] and r[\"growth\"][\"samples\"]==39 and "
        "r[\"growth\"][\"period_ns\"]==10**7 and r[\"growth\"][\"sites_dropped\"]==2 and "
        "[r[\"sites\"][i][\"api\"] for i in r[\"growth\"][\"suspects\"]]==[\"cudaMalloc\"]");
}

Test(json_growth, of_steps)
{
    uint32_t tag = fixture_tag("step #", NULL);

    fixture_tag_at(tag)->is_pattern = 1;
    fixture_tag_at(tag)->domain = fixture_text("Lib");
    for (unsigned i = 0; i < 10; i++)
        fixture_step(tag, (i + 1) * FIXTURE_MS, (10 - i) * MIB);
    fixture_step(fixture_tag("once", NULL), 7, 5);
    fixture_tag("never", NULL);
    write_report(CW_REPORT_JSON);
    expect_holds(
        "r[\"tags\"]==[{\"tag\":\"step #@Lib\",\"is_pattern\":True,"
        "\"begun\":10,\"steps\":10,\"first_ns\":10**6,\"last_ns\":10**7,"
        "\"first_bytes\":10<<20,\"last_bytes\":1<<20,\"least_bytes\":1<<20,"
        "\"most_bytes\":10<<20,\"mean_ns\":1e6,\"slope_bytes\":-1048576.0,\"r2\":1.0,"
        "\"rising\":False},"
        "{\"tag\":\"once\",\"begun\":1,\"steps\":1,\"first_ns\":7,"
        "\"last_ns\":7,\"first_bytes\":5,\"last_bytes\":5,\"least_bytes\":5,\"most_bytes\":5,"
        "\"rising\":False}]");
}

Test(json_growth, of_regrowth)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    struct cw_live_regrowth *regrowth = fixture_regrowth(site);

    regrowth->resizes = 2; /* all are listed, also those not worth a line of text */
    regrowth->copied_bytes = 3;
    regrowth->factor_sum = 3500;
    regrowth->chains = 1;
    regrowth->first_bytes = 1;
    regrowth->largest_bytes = 4;
    write_report(CW_REPORT_JSON);
    expect_holds("r[\"regrowth\"]==[{\"site\":0,\"resizes\":2,\"factor\":1.75,\"copied_bytes\":3,"
                 "\"chains\":1,\"first_bytes\":1,\"capacity_bytes\":4}]");
}

Test(json_growth, of_timelines)
{
    struct cw_live_timeline *timeline = fixture_timeline(CW_DEVICE_HOST);

    for (unsigned i = 1; i < MOMENTS; i++)
        timeline->point[i] = (struct cw_live_point){
            .t_ns = i * 10 * FIXTURE_MS, .live = i, .held = 2 * i, .idle = 3 * i, .used = 4 * i};
    write_report(CW_REPORT_JSON);
    expect_holds("[s[\"device\"] for s in r[\"timeline\"][\"series\"]]==[\"host\"]");
    expect_holds("r[\"timeline\"][\"series\"][0][\"points\"]=="
                 "[[i*10**7,i,2*i,3*i,4*i] for i in range(1,40)]+[[4*10**8,0,0,0,0]]");
    expect_holds("[(d[\"device\"],d[\"peaks\"],d[\"peak_rose\"],d[\"idle\"][\"slope_bps\"],"
                 "d[\"idle\"][\"suspect\"]) for d in r[\"growth\"][\"devices\"]]=="
                 "[(\"host\",[10,20,30,39],False,300.0,False)]");
}

Test(json_growth, decimals_are_numbers_whatever_they_are)
{
    static const struct {
        double value;
        const char *wanted;
    } rows[] = {{0, "0.000000000"},
                {-0.5, "-0.500000000"},
                {1.9999999999, "2.000000000"},
                {1.999999999, "1.999999999"},
                {104857600, "104857600.000000000"},
                {1e300, "1000000000000000.000000000"},
                {-__builtin_inf(), "-1000000000000000.000000000"},
                {__builtin_nan(""), "null"}};
    char buf[64];

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_out out;
        struct cw_json json = {.out = &out, .first = 1};

        cw_out_init(&out, -1, buf, sizeof(buf) - 1);
        cw_json_decimal(&json, NULL, rows[i].value);
        buf[out.len] = '\0';
        cr_expect_str_eq(buf, rows[i].wanted);
    }
}

Test(json_growth, hostile_values_are_valid_json)
{
    uint32_t site = leaking_site();
    struct cw_live_series *series = cw_arena_at(&fixture.arena, CW_TABLE_SERIES, 1);
    struct cw_live_regrowth *regrowth = fixture_regrowth(site);
    struct cw_live_timeline *timeline = fixture_timeline(0);
    uint32_t tag = fixture_tag("step", NULL);

    for (unsigned i = 0; i < CW_SAMPLES; i++) {
        fixture.arena.header->growth.t_ns[i] = i + 1;
        series->bytes[i] = i < 32 ? 0 : UINT64_MAX;
    }
    for (unsigned i = 0; i < CW_POINTS; i++)
        timeline->point[i] = (struct cw_live_point){
            .t_ns = i + 1, .live = UINT64_MAX, .held = UINT64_MAX, .idle = UINT64_MAX / 256 * i};
    regrowth->resizes = 1;
    regrowth->factor_sum = UINT64_MAX;
    for (unsigned i = 1; i <= 5; i++)
        fixture_step(tag, i, i * (UINT64_MAX / 8));
    fixture_site_at(site)->first_ns = 1;
    fixture_site_at(site)->tag = UINT16_MAX;
    write_report(CW_REPORT_JSON);
    expect_holds("len(r[\"sites\"])==1 and r[\"sites\"][0][\"growth\"][\"n\"]>=64 and "
                 "r[\"growth\"][\"devices\"]!=None and r[\"tags\"][0][\"slope_bytes\"]==1e15");
}
