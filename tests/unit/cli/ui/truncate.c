/* SPDX-License-Identifier: MIT */
/* Program names on a screen and in UTF-8 formats: never half a character. */
#include "cli/ui/truncate.h"

#include <criterion/criterion.h>

#include <locale.h>
#include <stdint.h>
#include <string.h>

static char buf[256];

static const char *cut(const char *text, size_t columns)
{
    size_t used = cw_truncate(buf, sizeof(buf), text, columns);

    cr_assert(used <= columns);
    return buf;
}

static void use_utf8(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        cr_skip("no locale C.UTF-8");
}

Test(cut, stays_within_the_columns)
{
    use_utf8();
    cr_assert_str_eq(cut("python train.py", 6), "python");
    cr_assert_str_eq(cut("gr\u00f6\u00dfe", 4), "gr\u00f6\u00df");
    cr_assert_str_eq(cut("gr\u00f6\u00dfe", 3), "gr\u00f6");
    cr_assert_str_eq(cut("\u8a13\u7df4", 4), "\u8a13\u7df4");
    cr_assert_str_eq(cut("\u8a13\u7df4", 3), "\u8a13"); /* each takes two columns */
    cr_assert_str_eq(cut("e\u0301x", 1), "e\u0301");    /* a combining accent takes none */
    cr_assert_str_eq(cut("", 5), "");
    cr_assert_str_eq(cut("x", 0), "");
    cr_assert_str_eq(cut("whatever", SIZE_MAX), "whatever");
}

Test(cut, shows_what_is_no_text_as_a_question_mark)
{
    use_utf8();
    cr_assert_str_eq(cut("a\x1b[2Jb\tc\n", 20), "a?[2Jb?c?");
    cr_assert_str_eq(cut("\xff\xc3", 20), "??");
    cr_assert_str_eq(cut("\xe8\xa8", 20), "??"); /* the third byte is missing */
    setlocale(LC_CTYPE, "C");
    cr_assert_str_eq(cut("gr\u00f6", 20), "gr??");
}

Test(cut, stays_within_the_buffer)
{
    char small[6];

    use_utf8();
    memset(small, 'x', sizeof(small));
    cw_truncate(small, 4, "a\u8a13\u7df4", 20);
    cr_assert_str_eq(small, "a");
    cr_assert_eq(small[4], 'x');
    cw_truncate_fill(small, 5, "a", 20);
    cr_assert_str_eq(small, "a   ");
    cr_assert_eq(small[5], 'x');
}

Test(cut, fills_with_spaces)
{
    use_utf8();
    cw_truncate_fill(buf, sizeof(buf), "\u8a13\u7df4", 3);
    cr_assert_str_eq(buf, "\u8a13 ");
    cw_truncate_fill(buf, sizeof(buf), "ab", 4);
    cr_assert_str_eq(buf, "ab  ");
}
