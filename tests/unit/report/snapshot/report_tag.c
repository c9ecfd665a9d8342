/* SPDX-License-Identifier: MIT */
/* Tags in reports: sites are apart by tag and share their id, what is shown of one, rules for them.
 */
#include "report/snapshot/tag.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/snapshot/snapshot.h"
#include "report_fixture.h"

TestSuite(report_tag, .init = report_file_setup, .fini = report_file_teardown);

static uint32_t leak(uint32_t tag, uint64_t bytes)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_site_at(site)->tag = (uint16_t)tag;
    fixture_alloc(site, bytes, 1, 1);
    return site;
}

Test(report_tag, a_label_names_the_domain_where_there_is_one)
{
    uint32_t plain = fixture_tag("forward", NULL);
    uint32_t library = fixture_tag("reduce", "NCCL");
    struct cw_view view = fixture_view();
    char label[CW_TAG_LABEL_MAX], small[6];

    cr_expect_str_eq(cw_tag_label(&view, plain, label, sizeof(label)), "forward");
    cr_expect_str_eq(cw_tag_label(&view, library, label, sizeof(label)), "reduce@NCCL");
    cr_expect_str_eq(cw_tag_label(&view, 0, label, sizeof(label)), "");
    cr_expect_str_eq(cw_tag_label(&view, 77, label, sizeof(label)), "");
    cr_expect_str_eq(cw_tag_label(&view, library, small, sizeof(small)), "reduc");
}

Test(report_tag, sites_are_apart_by_tag_and_share_their_id)
{
    uint32_t tag = fixture_tag("forward", NULL);
    uint32_t none = leak(0, 100), one = leak(tag, 1000), two = leak(tag, 2000);
    struct cw_view view = fixture_view();
    const struct cw_snapshot_site *site;

    cr_assert_eq(cw_snapshot_init(&snapshot, &view, 0), 0);
    cr_expect_eq(snapshot.sites, 2u);
    site = cw_snapshot_find(&snapshot, one);
    cr_expect_eq(site, cw_snapshot_find(&snapshot, two));
    cr_expect_neq(site, cw_snapshot_find(&snapshot, none));
    cr_expect_eq(site->live_bytes, 3000u);
    cr_expect_eq(site->tag, tag);
    cr_expect_eq(cw_snapshot_find(&snapshot, none)->tag, 0);
    cr_expect_eq(site->id, cw_snapshot_find(&snapshot, none)->id);
}

Test(report_tag, a_leak_an_old_block_and_the_peak_show_it)
{
    uint32_t site = leak(fixture_tag("back\nward", NULL), 3000);

    leak(0, 5000);
    leak(999, 7000); /* there is no such tag */
    cr_assert_eq(fixture_site_at(site)->tag, 1);
    write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .old_ns = 100 * FIXTURE_MS});
    expect_text(" ago  tag: back?ward\n==4711==     (no stack)\n");
    expect_text(" old  site ");
    expect_text("  cudaMalloc, device 0  tag: back?ward\n");
    expect_text("(no stack)  tag: back?ward\n");
    cr_expect_eq(count_of("tag: "), 3u);
}

Test(report_tag, what_is_apart_shows_it_too)
{
    uint32_t site = fixture_site(0, "cuIpcOpenMemHandle", CW_KIND_IPC, 0);

    fixture_site_at(site)->tag = (uint16_t)fixture_tag("attach", NULL);
    fixture_alloc(site, 512, 1, 1);
    write_report(CW_REPORT_TEXT);
    expect_text("IMPORTS");
    expect_text("  tag: attach\n");
}

/* forward holds 1 byte, backward 2, reduce@NCCL 4, and what has no tag 8. */
Test(report_tag, rules_match_the_label)
{
    static const struct {
        const char *rule;
        unsigned leaked;
    } rules[] = {
        {"", 15},           {"tag:forward", 14},    {"tag:ward", 12},
        {"tag:^ward", 15},  {"tag:ward$", 12},      {"tag:^back*d$", 13},
        {"tag:@NCCL$", 11}, {"tag:^reduce$", 15},   {"tag:^reduce", 11},
        {"tag:*", 8},       {"tag:ward max=1", 14}, {"leak:forward", 15},
    };
    char summary[64];

    leak(fixture_tag("forward", NULL), 1);
    leak(fixture_tag("backward", NULL), 2);
    leak(fixture_tag("reduce", "NCCL"), 4);
    leak(0, 8);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        write_report_with(rules[i].rule);
        snprintf(summary, sizeof(summary), "SUMMARY: leaked_bytes=%u ", rules[i].leaked);
        cr_expect_not_null(strstr(report, summary), "with %s there is no %s in\n%s", rules[i].rule,
                           summary, report);
    }
}

Test(report_tag, json_has_tags_and_their_steps)
{
    uint32_t used = fixture_tag("reduce", "NCCL");
    struct cw_view view = fixture_view();
    struct cw_live_tag *tag = (struct cw_live_tag *)cw_view_tag(&view, used);
    uint32_t pattern = fixture_tag("step #", NULL);

    fixture_tag("never", NULL);
    tag->begun = 3;
    tag->steps = 2;
    tag->first_ns = 10;
    tag->last_ns = 20;
    tag->first_bytes = 100;
    tag->last_bytes = 300;
    tag->least_bytes = 50;
    tag->most_bytes = 400;
    view = fixture_view();
    tag = (struct cw_live_tag *)cw_view_tag(&view, pattern);
    tag->is_pattern = 1;
    tag->begun = 1;
    leak(used, 100);
    write_report(CW_REPORT_JSON);
    expect_text("\"device\":0,\"tag\":\"reduce@NCCL\",");
    expect_text("{\"tag\":\"reduce@NCCL\",\"begun\":3,\"steps\":2,\"first_ns\":10,\"last_ns\":20,"
                "\"first_bytes\":100,\"last_bytes\":300,\"least_bytes\":50,\"most_bytes\":400,"
                "\"rising\":false}");
    expect_text("{\"tag\":\"step #\",\"is_pattern\":true,\"begun\":1,\"steps\":0}");
    expect_no_text("never");
}
