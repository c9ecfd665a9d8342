/* SPDX-License-Identifier: MIT */
/* What a Python frame shows: names in every width, lines by every kind of table. */
#include "core/python/python.h"

#include <criterion/criterion.h>

#include "python_fixture.h"

static struct cw_python_text text;

static struct cw_python_frame frame_at(int32_t instr)
{
    return (struct cw_python_frame){.code = (uintptr_t)fake.code[0], .instr = instr};
}

static void start(uint32_t version)
{
    fake_start(version);
    fake_set_frame(0, FAKE_THREAD, 0);
    fake_arm();
}

static int32_t line_at(int32_t instr)
{
    struct cw_python_frame frame = frame_at(instr);

    cr_assert_eq(cw_python_describe(&frame, &text), 0);
    return text.line;
}

static const char *file(void)
{
    line_at(0);
    return text.file;
}

/* ---- names ---- */

Test(python_text, every_width)
{
    static const uint32_t versions[] = {0x03090000, 0x030b02f0, 0x030d00f0, 0x030e00f0};

    for (unsigned v = 0; v < 4; v++) {
        start(versions[v]);
        cr_assert_str_eq(file(), "file.py");
        cr_assert_str_eq(text.function, "name");
        fake_set_text(&fake.file, "d\xe9j\xe0", 4, 1, 0);
        cr_assert_str_eq(file(), "d\u00e9j\u00e0");
        fake_set_text(&fake.file, (uint16_t[]){'a', 0x20ac, 0x7ff}, 3, 2, 0);
        cr_assert_str_eq(file(), "a\u20ac\u07ff");
        fake_set_text(&fake.file, (uint32_t[]){0x1f600, 'b', 0xffff}, 3, 4, 0);
        cr_assert_str_eq(file(), "\U0001f600b\uffff");
        fake_set_text(&fake.file, "", 0, 1, 1);
        cr_assert_str_eq(file(), "");
        cw_python_set_symbols(NULL);
    }
}

Test(python_text, a_cell_of_a_notebook_has_its_number)
{
    static const char input[] = "<ipython-input-12-0f1e2d3c>";

    start(0x030b02f0);
    fake_set_text(&fake.file, input, sizeof(input) - 1, 1, 0);
    cr_assert_str_eq(file(), "Cell In[12]");
}

Test(python_text, what_is_no_character)
{
    start(0x030b02f0);
    fake_set_text(&fake.file, (uint32_t[]){0xdcff, 0xd800, 0x110000, 0, 'x'}, 5, 4, 0);
    cr_assert_str_eq(file(), "\ufffd\ufffd\ufffd\ufffdx");
}

Test(python_text, what_is_no_text)
{
    start(0x030b02f0);
    fake_set_text(&fake.file, "abcdefgh", 3, 3, 0);
    cr_assert_str_eq(file(), "?");
    fake_set_text(&fake.file, "abc", 3, 1, 1);
    fake_put_word(&fake.file, CW_PYTHON_TEXT_LENGTH, UINT64_MAX);
    cr_assert_str_eq(file(), "?");
    fake_set_text(&fake.file, "abc", 3, 1, 1);
    fake_put_int(&fake.file, CW_PYTHON_TEXT_STATE, 1u << fake.layout.kind_bit);
    cr_assert_str_eq(file(), "?");
    fake_put_word(fake.code[0], fake.layout.file, 0);
    cr_assert_str_eq(file(), "?");
    fake_put_word(fake.code[0], fake.layout.file, (uintptr_t)fake.code[0]);
    cr_assert_str_eq(file(), "?");
    cr_assert_str_eq(text.function, "name");
}

Test(python_text, nobody_there)
{
    struct cw_python_frame frame = frame_at(0);

    cr_assert_eq(cw_python_describe(&frame, &text), -1);
    cr_assert_str_eq(text.file, "?");
    start(0x030b02f0);
    frame.code = 0;
    cr_assert_eq(cw_python_describe(&frame, &text), -1);
    cr_assert_eq(text.line, 0);
}

/* ---- lines ---- */

#define TABLE(...) fake_set_table((uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))

Test(python_text, pairs_that_change_the_line_at_their_end)
{
    start(0x03090000);
    TABLE(4, 1, 2, 255, 0, 127, 6, 10, 255, 0, 2, 3);
    cr_assert_eq(line_at(-1), 100);
    cr_assert_eq(line_at(0), 100);
    cr_assert_eq(line_at(3), 100);
    cr_assert_eq(line_at(4), 101);
    cr_assert_eq(line_at(6), 100 + 127);
    cr_assert_eq(line_at(12), 100 + 127 + 10);
    cr_assert_eq(line_at(12 + 256), 100 + 127 + 10);
    cr_assert_eq(line_at(12 + 257), 100 + 127 + 10 + 3);
    fake_set_table("", 0);
    cr_assert_eq(line_at(8), 100);
}

Test(python_text, pairs_that_change_the_line_at_their_beginning)
{
    start(0x030a0000);
    TABLE(4, 1, 2, 128, 2, 255, 0, 127, 254, 1, 6, 128);
    cr_assert_eq(line_at(0), 101);
    cr_assert_eq(line_at(4), 101); /* has none */
    cr_assert_eq(line_at(6), 100);
    cr_assert_eq(line_at(8), 228);
    cr_assert_eq(line_at(8 + 253), 228);
    cr_assert_eq(line_at(8 + 254), 228);
    cr_assert_eq(line_at(9999), 228);
}

Test(python_text, locations)
{
    start(0x030b02f0);
    TABLE(0x80 | 13 << 3 | 0, 2 << 1,                     /* one instruction, +2 */
          0x80 | 0 << 3 | 1, 0x12,                        /* two, the same line */
          0x80 | 12 << 3 | 0, 1, 2,                       /* one, +2 */
          0x80 | 14 << 3 | 7, 0x40 | 0x29, 0x0a, 0, 1, 2, /* eight, -340 */
          0x80 | 15 << 3 | 0,                             /* one without a line */
          0x80 | 10 << 3 | 0, 1, 2);                      /* one, +0 */
    cr_assert_eq(line_at(-1), 100);
    cr_assert_eq(line_at(0), 102);
    cr_assert_eq(line_at(2), 102);
    cr_assert_eq(line_at(5), 102);
    cr_assert_eq(line_at(6), 104);
    /* Six bits and four: 0x29 | 0x0a << 6 = 681, odd: minus 340. */
    cr_assert_eq(line_at(8), 104 - 340);
    cr_assert_eq(line_at(23), 104 - 340);
    cr_assert_eq(line_at(24), 104 - 340);
    cr_assert_eq(line_at(26), 104 - 340);
    cr_assert_eq(line_at(9999), 104 - 340);
}

Test(python_text, tables_that_end_too_early)
{
    start(0x030b02f0);
    TABLE(0x80 | 13 << 3 | 0);
    cr_assert_eq(line_at(4), 100);
    TABLE(0x80 | 13 << 3 | 0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f);
    line_at(4);
    fake_put_word(fake.table, CW_PYTHON_SIZE, UINT64_MAX);
    cr_assert_eq(line_at(4), 100);
    fake_put_word(fake.code[0], fake.layout.line_table, 0);
    cr_assert_eq(line_at(4), 100);
    cw_python_set_symbols(NULL);
    start(0x030a0000);
    TABLE(4);
    cr_assert_eq(line_at(4), 100);
}
