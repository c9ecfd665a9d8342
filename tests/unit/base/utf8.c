/* SPDX-License-Identifier: MIT */
/* UTF-8 by RFC 3629: no overlong form, no surrogate, nothing beyond 10FFFF; and what replaces the
 * rest. */
#include "base/utf8.h"

#include <criterion/criterion.h>

#include <string.h>

Test(utf8, knows_characters)
{
    static const struct {
        const char *text;
        size_t len; /* 0: it is not one */
    } cases[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\x80", 0},
        {"\xc1\xbf", 0},
        {"\xc2\x80", 2},
        {"\xc2", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xef\xbf", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);
        int is_complete;
        size_t n = cw_utf8_scan(cases[i].text, len, &is_complete);

        cr_assert(n >= 1 && n <= len, "case %zu", i);
        cr_assert_eq(is_complete ? n : 0, cases[i].len, "case %zu", i);
        cr_assert_eq(cw_utf8_is_valid(cases[i].text), cases[i].len == len, "case %zu", i);
    }
}

Test(utf8, replaces_the_rest)
{
    char buf[64];

    cr_assert_eq(cw_utf8_clean(buf, sizeof(buf), "a\xff\u00f6\xc3"), 9);
    cr_assert_str_eq(buf, "a\ufffd\u00f6\ufffd");
    memset(buf, 'x', sizeof(buf));
    cw_utf8_clean(buf, 5, "ab\u8a13");
    cr_assert_str_eq(buf, "ab");
    cr_assert_eq(buf[5], 'x');
}
