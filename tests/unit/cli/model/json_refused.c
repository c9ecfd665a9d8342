/* SPDX-License-Identifier: MIT */
/* The reader of reports in JSON: which it refuses, by a line that says why. */
#include "cli/model/json_read.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "command_fixture.h"
#include "json_text_fixture.h"

TestSuite(json_refused, .init = command_listen, .fini = json_forget);

Test(json_refused, a_report_of_another_kind_is_refused)
{
    json_expect_refused("{\"schema\":\"cuwarden-report/2\"}",
                        "\"schema\" is not cuwarden-report/1");
    json_expect_refused("{}", "\"schema\" is not");
    json_expect_refused("{\"schema\":5}", "\"schema\" is not");
    json_expect_refused("[{\"schema\":\"cuwarden-report/1\"}]", "\"schema\" is not");
    json_expect_refused("{\"schema\":\"cuwarden-report/2\"}", "/2: use a newer cuwarden");
    json_expect_refused("{\"schema\":\"cuwarden-diff/1\"}", "but cuwarden-diff/1");
}

/* Read as nothing, it would be a program without leaks. */
Test(json_refused, a_value_of_another_type_is_refused_by_its_name)
{
    static const struct {
        const char *text, *key;
    } reports[] = {
        {"\"summary\":{\"leaked_bytes\":\"x\"}", "leaked_bytes"},
        {"\"summary\":{\"leaked_bytes\":null}", "leaked_bytes"},
        {"\"summary\":{\"leaked_bytes\":[]}", "leaked_bytes"},
        {"\"summary\":[]", "summary"},
        {"\"summary\":3", "summary"},
        {"\"sites\":{}", "sites"},
        {"\"sites\":true", "sites"},
        {"\"sites\":[1]", "sites"},
        {"\"sites\":[[1]]", "sites"},
        {"\"sites\":[null]", "sites"},
        {"\"sites\":[{\"live\":5}]", "live"},
        {"\"sites\":[{\"live\":{\"bytes\":\"x\"}}]", "bytes"},
        {"\"sites\":[{\"live\":{\"count\":{}}}]", "count"},
        {"\"sites\":[{\"class\":1}]", "class"},
        {"\"process\":{\"argv\":[1]}", "argv"},
        {"\"process\":{\"argv\":[{}]}", "argv"},
        {"\"stacks\":[{\"frames\":[\"a\"]}]", "frames"},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(reports); i++) {
        char text[256], why[64];

        snprintf(text, sizeof(text), JSON_HEAD "%s}", reports[i].text);
        snprintf(why, sizeof(why), "\"%s\" is not of its type", reports[i].key);
        json_expect_refused_whole(text, why);
    }
}

Test(json_refused, what_every_report_has_is_missed_by_its_name)
{
    char *rest = json_complete(JSON_HEAD "\"later\":1}");
    char text[2048];

    cr_assert_eq(json_read_text(rest, strlen(rest)), 0, "%s", command_said);
    free(rest);
    json_expect_refused("{\"schema\":\"cuwarden-report/1\"}", "its \"tool\" is missing");
    json_expect_refused_whole(JSON_HEAD "\"summary\":{\"leaked_bytes\":0}}",
                              "its summary's \"leaked_blocks\" is missing");
    for (size_t i = 0; i < CW_ARRAY_LEN(json_report_keys); i++) {
        char *report = json_complete(JSON_HEAD "\"later\":1}"), *key;

        snprintf(text, sizeof(text), "\"%s\":", json_report_keys[i][0]);
        key = strstr(report, text);
        key[1] = 'X';
        snprintf(text, sizeof(text), "its \"%s\" is missing", json_report_keys[i][0]);
        json_expect_refused(report, text);
        free(report);
    }
}
