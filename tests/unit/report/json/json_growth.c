/* SPDX-License-Identifier: MIT */
/* Growth in the JSON report: its shape, its numbers, and that all of them are valid JSON. Python
 * reads it. */
#include "report/json/json_put.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json_fixture.h"
#include "report_fixture.h"

#define MOMENTS 40 /* every 10 ms; the process ends after 400 */

static char path[] = "/tmp/cuwarden-growth-XXXXXX";

static void setup(void)
{
    report_setup();
    close(mkstemp(path));
}

static void teardown(void)
{
    unlink(path);
    report_teardown();
}

TestSuite(json_growth, .init = setup, .fini = teardown);

static int holds(const char *expression)
{
    FILE *out = fopen(path, "w");

    cr_assert_not_null(out);
    fputs(report, out);
    fclose(out);
    return fixture_json_holds(path, expression);
}

#define EXPECT(expression)                                                                         \
    cr_expect(holds(expression), "%s does not hold of\n%s", expression, report)

static uint32_t leaking_site(void)
{
    uint32_t site = fixture_site(&fixture, 0, "cudaMalloc", CW_KIND_DEVICE, 0);
    struct cw_live_series *series = fixture_series(&fixture, site);

    fixture_alloc(&fixture, site, MIB, MOMENTS, 10 * FIXTURE_MS);
    for (unsigned i = 1; i < MOMENTS; i++) {
        fixture_moment(&fixture, i, i * 10 * FIXTURE_MS);
        series->bytes[i] = i * MIB;
    }
    return site;
}

Test(json_growth, of_an_empty_layout)
{
    write_report(CW_REPORT_JSON);
    EXPECT("{k:v for k,v in r[\"growth\"].items() if "
           "k!=\"watched_ns\"}=={\"on\":False,\"samples\":0,\"period_ns\":0,\"sites_dropped\":0,"
           "\"t_ns\":[],\"suspects\":[],\"devices\":[]} and r[\"tags\"]==[] and "
           "r[\"regrowth\"]==[] and "
           "r[\"timeline\"]=={\"columns\":[\"t_ns\",\"live\",\"held\",\"idle\",\"used\"],"
           "\"series\":[]}");
}

Test(json_growth, of_a_site)
{
    uint32_t site = leaking_site();
    uint32_t tag = fixture_tag(&fixture, "train \"step\"", NULL);
    uint32_t level = fixture_site(&fixture, 0, "cuMemAlloc_v2", CW_KIND_DEVICE, 0);

    fixture_series(&fixture, level);
    fixture_alloc(&fixture, level, 512, 1, 10 * FIXTURE_MS);
    fixture_site(&fixture, 0, "cuMemCreate", CW_KIND_VMM, 0);
    for (unsigned i = 1; i <= 3; i++)
        fixture_step(&fixture, tag, i * 5 * FIXTURE_MS, 7);
    fixture_site_at(&fixture, site)->tag = (uint16_t)tag;
    fixture.arena.header->growth.dropped = 2;
    fixture.arena.header->growth.period_ns = 10 * FIXTURE_MS;
    write_report(CW_REPORT_JSON);
    EXPECT("[s[\"class\"] for s in r[\"sites\"] if \"class\" in s and s[\"api\"]==\"cudaMalloc\"]"
           "==[\"growing\"] and r[\"summary\"][\"leak_sites\"]==2");
    EXPECT("[(round(g[\"slope_bps\"],3),round(g[\"r2\"],6),g[\"n\"],g[\"windows\"],g[\"suspect\"],"
           "g[\"per_step\"]) "
           "for g in [s.get(\"growth\") for s in r[\"sites\"]] if g and g[\"suspect\"]]=="
           "[(104857600.0,1.0,40,3,True,{\"tag\":\"train \\\"step\\\"\",\"bytes\":524288.0})]");
    EXPECT("r[\"growth\"][\"t_ns\"]==[i*10**7 for i in range(1,41)]");
    EXPECT("[s[\"growth\"][\"bytes\"] for s in r[\"sites\"] if s[\"api\"]==\"cudaMalloc\"]=="
           "[[i<<20 for i in range(1,41)]]");
    EXPECT("[s[\"growth\"][\"floors\"] for s in r[\"sites\"] if s[\"api\"]==\"cudaMalloc\"]=="
           "[[1<<20,11<<20,21<<20,31<<20]]");
    EXPECT("[(s[\"growth\"][\"suspect\"],len(s[\"growth\"][\"bytes\"])) for s in r[\"sites\"] if "
           "s[\"api\"]==\"cuMemAlloc_v2\"]==[(False,40)]");
    EXPECT("[\"growth\" in s for s in r[\"sites\"] if s[\"api\"]==\"cuMemCreate\"]==[False]");
    EXPECT("r[\"growth\"][\"on\"] and r[\"growth\"][\"samples\"]==39 and "
           "r[\"growth\"][\"period_ns\"]==10**7 and r[\"growth\"][\"sites_dropped\"]==2 and "
           "[r[\"sites\"][i][\"api\"] for i in r[\"growth\"][\"suspects\"]]==[\"cudaMalloc\"]");
}

Test(json_growth, of_steps)
{
    uint32_t tag = fixture_tag(&fixture, "step #", NULL);

    fixture_tag_at(&fixture, tag)->is_pattern = 1;
    fixture_tag_at(&fixture, tag)->domain = fixture_text(&fixture, "Lib");
    for (unsigned i = 0; i < 10; i++)
        fixture_step(&fixture, tag, (i + 1) * FIXTURE_MS, (10 - i) * MIB);
    fixture_step(&fixture, fixture_tag(&fixture, "once", NULL), 7, 5);
    fixture_tag(&fixture, "never", NULL);
    write_report(CW_REPORT_JSON);
    EXPECT("r[\"tags\"]==[{\"tag\":\"step #@Lib\",\"is_pattern\":True,"
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
    uint32_t site = fixture_site(&fixture, 0, "cudaMalloc", CW_KIND_DEVICE, 0);
    struct cw_live_regrowth *regrowth = fixture_regrowth(&fixture, site);

    regrowth->resizes = 2; /* all are listed, also those not worth a line of text */
    regrowth->copied_bytes = 3;
    regrowth->factor_sum = 3500;
    regrowth->chains = 1;
    regrowth->first_bytes = 1;
    regrowth->largest_bytes = 4;
    write_report(CW_REPORT_JSON);
    EXPECT("r[\"regrowth\"]==[{\"site\":0,\"resizes\":2,\"factor\":1.75,\"copied_bytes\":3,"
           "\"chains\":1,\"first_bytes\":1,\"capacity_bytes\":4}]");
}

Test(json_growth, of_timelines)
{
    struct cw_live_timeline *timeline = fixture_timeline(&fixture, CW_DEVICE_HOST);

    for (unsigned i = 1; i < MOMENTS; i++)
        timeline->point[i] = (struct cw_live_point){
            .t_ns = i * 10 * FIXTURE_MS, .live = i, .held = 2 * i, .idle = 3 * i, .used = 4 * i};
    write_report(CW_REPORT_JSON);
    EXPECT("[s[\"device\"] for s in r[\"timeline\"][\"series\"]]==[\"host\"]");
    EXPECT("r[\"timeline\"][\"series\"][0][\"points\"]=="
           "[[i*10**7,i,2*i,3*i,4*i] for i in range(1,40)]+[[4*10**8,0,0,0,0]]");
    EXPECT("[(d[\"device\"],d[\"peaks\"],d[\"peak_rose\"],d[\"idle\"][\"slope_bps\"],"
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
    struct cw_live_regrowth *regrowth = fixture_regrowth(&fixture, site);
    struct cw_live_timeline *timeline = fixture_timeline(&fixture, 0);
    uint32_t tag = fixture_tag(&fixture, "step", NULL);

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
        fixture_step(&fixture, tag, i, i * (UINT64_MAX / 8));
    fixture_site_at(&fixture, site)->first_ns = 1;
    fixture_site_at(&fixture, site)->tag = UINT16_MAX;
    write_report(CW_REPORT_JSON);
    EXPECT("len(r[\"sites\"])==1 and r[\"sites\"][0][\"growth\"][\"n\"]>=64 and "
           "r[\"growth\"][\"devices\"]!=None and r[\"tags\"][0][\"slope_bytes\"]==1e15");
}
