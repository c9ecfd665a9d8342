/* SPDX-License-Identifier: MIT */
/* The section AUDIT of the text report, and "audit" of the JSON report. */
#include "report/text/text_sections.h"

#include <criterion/criterion.h>

#include "report_fixture.h"

TestSuite(report_audit, .init = fixture_create, .fini = report_teardown);

static struct cw_live_audit *audit(void)
{
    return &fixture.arena.header->audit;
}

Test(report_audit, without_one_there_is_no_section)
{
    write_report(CW_REPORT_TEXT);
    expect_no_text("AUDIT");
    write_report(CW_REPORT_JSON);
    expect_no_text("\"audit\"");
}

Test(report_audit, a_refused_one_says_why)
{
    audit()->status = CW_AUDIT_REFUSED;
    audit()->why = fixture_text("CUPTI is\nelsewhere");
    write_report(CW_REPORT_TEXT);
    expect_line("AUDIT  none: CUPTI is?elsewhere");
    write_report(CW_REPORT_JSON);
    expect_text("\"audit\":{\"status\":\"none\",\"why\":\"CUPTI is\\nelsewhere\"}");
}

Test(report_audit, a_running_one_has_no_figures)
{
    audit()->status = CW_AUDIT_RUNNING;
    audit()->version = 24;
    write_report(CW_REPORT_TEXT);
    expect_line("AUDIT  CUPTI reports when the process ends: no figures yet");
    write_report(CW_REPORT_JSON);
    expect_text("\"audit\":{\"status\":\"running\",\"cupti_version\":24}");
}

Test(report_audit, differences_are_named)
{
    struct cw_live_audit_row *row = &audit()->row[CW_AUDIT_DEVICE][CW_AUDIT_TAKEN];

    audit()->status = CW_AUDIT_DONE;
    audit()->version = 28;
    row->both = (struct cw_live_audit_amount){10, 10240};
    row->tool = (struct cw_live_audit_amount){2, 2048};
    row->ours = (struct cw_live_audit_amount){1, 512};
    audit()->all_findings = 20;
    audit()->findings = 1;
    audit()->finding[0] = (struct cw_live_audit_finding){.side = CW_AUDIT_TOOL_ALONE,
                                                         .address = 0xabc,
                                                         .count = 2,
                                                         .bytes = 2048,
                                                         .source = fixture_text("/a.so")};
    audit()->not_kept = 3;
    audit()->fixed = (struct cw_live_audit_amount){2, 300};
    audit()->variables = 1;
    audit()->variable[0].bytes = 100;
    audit()->variable[0].is_managed = 1;
    write_report(CW_REPORT_TEXT);
    expect_line("AUDIT  CUPTI (version 28) and cuwarden differ in 20 places");
    expect_line("  device memory, allocated: 10 (10.0 KiB) by both, 2 (2.0 KiB) by CUPTI alone, 1 "
                "(512 B) by cuwarden alone");
    expect_line("  not seen by cuwarden: 2.0 KiB of device memory allocated at 0xabc, 2 times, "
                "requested by /a.so");
    expect_line("  ... 19 more");
    expect_line("  incomplete: out of memory for 3 records");
    expect_line("    100 B  __managed__ ?");
    expect_line("    ... 1 more");
}

Test(report_audit, a_bad_layout_is_read_with_care)
{
    audit()->status = CW_AUDIT_DONE;
    audit()->findings = UINT32_MAX;
    audit()->variables = UINT32_MAX;
    audit()->fixed.count = 1;
    for (unsigned i = 0; i < CW_AUDIT_FINDINGS; i++)
        audit()->finding[i] = (struct cw_live_audit_finding){
            .side = 200, .class = 200, .op = 200, .source = UINT32_MAX};
    write_report(CW_REPORT_TEXT);
    expect_text("unknown memory");
    write_report(CW_REPORT_JSON);
    expect_text("\"seen_by\":\"unknown\"");
}
