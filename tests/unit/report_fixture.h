/* SPDX-License-Identifier: MIT */
/* One layout and the text report of it, for tests of what the report says. */
#ifndef CW_TESTS_REPORT_FIXTURE_H
#define CW_TESTS_REPORT_FIXTURE_H

#include "live_fixture.h"
#include "report/report.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

extern struct fixture fixture;
extern char *report; /* the last one that was written */

void report_setup(void);
void report_teardown(void);

const char *write_report_as(struct cw_report_request request);
const char *write_report(enum cw_report_form form);

/* A whole line, without its prefix. */
void expect_line(const char *line);
void expect_text(const char *text);
void expect_no_text(const char *text);
unsigned count_of(const char *text);

#endif
