/* SPDX-License-Identifier: MIT */
/* Text reports of layouts made by hand. See report_fixture.h. */
#include "report_fixture.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fixture fixture;
char *report;

void report_setup(void)
{
    fixture_create(&fixture);
}

void report_teardown(void)
{
    free(report);
    fixture_destroy(&fixture);
}

static char *read_all(int fd)
{
    off_t len = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)len + 1);

    cr_assert_eq(pread(fd, text, (size_t)len, 0), len);
    text[len] = '\0';
    return text;
}

const char *write_report_as(struct cw_report_request request)
{
    int fd = memfd_create("report", 0);
    struct cw_view view = fixture_view(&fixture);

    request.fd = fd;
    request.version = "0.1.0";
    cr_assert_eq(cw_report_write(&view, &request), 0);
    free(report);
    report = read_all(fd);
    close(fd);
    return report;
}

const char *write_report(enum cw_report_form form)
{
    return write_report_as((struct cw_report_request){.form = form});
}

void expect_line(const char *line)
{
    char whole[512];

    snprintf(whole, sizeof(whole), "==4711== %s\n", line);
    cr_expect(strstr(report, whole), "no line \"%s\" in\n%s", line, report);
}

void expect_text(const char *text)
{
    cr_expect(strstr(report, text), "no \"%s\" in\n%s", text, report);
}

void expect_no_text(const char *text)
{
    cr_expect_null(strstr(report, text), "\"%s\" in\n%s", text, report);
}

unsigned count_of(const char *text)
{
    unsigned count = 0;

    for (const char *at = report; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}
