/* SPDX-License-Identifier: MIT */
/* What is printed: no character that steers a terminal or shows another text than there is. */
#include "base/printable.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/out.h"

static const struct {
    const char *text, *printed, *json;
} cases[] = {
    {"plain", "plain", "\"plain\""},
    {"\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80", "\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80",
     "\"\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80\""},
    {"a\x1b[2J\nb\x7f", "a?[2J?b?", "\"a\\u001b[2J\\nb\\u007f\""},
    {"\xc2\x9b"
     "[m",
     "?[m", "\"\\u009b[m\""},                 /* C1 */
    {"\xc2\xa0", "\xc2\xa0", "\"\xc2\xa0\""}, /* after C1 */
    {"a\xe2\x80\xae"
     "b\xe2\x80\xac",
     "a?b?", "\"a\\u202eb\\u202c\""},                                         /* an override */
    {"\xe2\x81\xa6\xe2\x81\xa9", "??", "\"\\u2066\\u2069\""},                 /* isolates */
    {"\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "???", "\"\\u061c\\u200e\\u200f\""}, /* marks */
    {"\xe2\x80\xa8", "?", "\"\\u2028\""},                                     /* a line separator */
    {"\x80\xff\xc3)", "?\?\?)", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd)\""}, /* not UTF-8 */
    {"\xed\xa0\x80\xe2\x80", "????", NULL}, /* a surrogate, and what is cut off */
};

Test(printable, replaces_what_steers_and_what_is_no_character)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64], put[64];
        struct cw_out out;

        strcpy(text, cases[i].text);
        cr_expect_str_eq(cw_printable_clean_string(text), cases[i].printed);
        cw_out_init(&out, -1, put, sizeof(put));
        cw_out_printable(&out, cases[i].text, strlen(cases[i].text));
        put[out.len] = '\0';
        cr_expect_str_eq(put, cases[i].printed);
    }
}

Test(printable, json_has_the_same_characters_escaped)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char put[128];
        struct cw_out out;

        cw_out_init(&out, -1, put, sizeof(put));
        cw_out_json_string(&out, cases[i].text, strlen(cases[i].text));
        put[out.len] = '\0';
        if (cases[i].json)
            cr_expect_str_eq(put, cases[i].json);
    }
}
