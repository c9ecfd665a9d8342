/* SPDX-License-Identifier: MIT */
/* What the HTML report is made of: texts by number, the call tree, and columns. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/export/html_columns.h"
#include "cli/export/html_tree.h"
#include "cli/ui/strings.h"

struct record {
    uint64_t t, big;
    const char *name;
    double slope;
    uint32_t where, site;
    uint8_t flag;
};

static const struct cw_html_column columns[] = {
    {"t", CW_HTML_STEP, offsetof(struct record, t)},
    {"big", CW_HTML_U64, offsetof(struct record, big)},
    {"name", CW_HTML_TEXT, offsetof(struct record, name)},
    {"slope", CW_HTML_REAL, offsetof(struct record, slope)},
    {"where", CW_HTML_U32, offsetof(struct record, where)},
    {"site", CW_HTML_ROW, offsetof(struct record, site)},
    {"flag", CW_HTML_U8, offsetof(struct record, flag)},
    {NULL, CW_HTML_U8, 0},
};

static const struct record some[] = {
    {.t = 5, .big = 7, .name = "a", .slope = -0.5, .where = 3, .site = 1, .flag = 1},
    {.t = 9, .big = UINT64_MAX, .name = "b", .slope = 1e300, .where = UINT32_MAX, .site = 0},
    {.t = 8, .big = 0, .name = "a", .slope = 0, .where = 0, .site = 9, .flag = 1},
};

/* What is written, to be freed. */
static char *written(const struct cw_html_records *records)
{
    static const uint32_t row[] = {UINT32_MAX, 4};
    struct cw_html_writer writer = {.row = row, .rows = 2};
    char *text = NULL;
    size_t len;

    writer.out = open_memstream(&text, &len);
    cr_assert(writer.out);
    cw_html_put_columns(&writer, columns, records);
    fclose(writer.out);
    cw_strings_free(&writer.strings);
    return text;
}

static void expect_written(const struct cw_html_records *records, const char *wanted)
{
    char *text = written(records);

    cr_expect_str_eq(text, wanted);
    free(text);
}

Test(html_parts, columns)
{
    expect_written(&(struct cw_html_records){.base = some, .size = sizeof(*some), .count = 3},
                   "{\"n\":3,\"t\":[5,4,-1],\"big\":[7,9223372036854775807,0],\"name\":[0,1,0],"
                   "\"slope\":[-0.5,1e+300,0],\"where\":[3,-1,0],\"site\":[4,-1,-1],"
                   "\"flag\":[1,0,1]}");
}

Test(html_parts, a_column_of_equal_values_is_one)
{
    expect_written(
        &(struct cw_html_records){.base = some + 2, .size = sizeof(*some), .count = 1},
        "{\"n\":1,\"t\":8,\"big\":0,\"name\":0,\"slope\":0,\"where\":0,\"site\":-1,\"flag\":1}");
}

Test(html_parts, no_record_has_no_values)
{
    expect_written(&(struct cw_html_records){.base = some, .size = sizeof(*some), .count = 0},
                   "{\"n\":0,\"t\":[],\"big\":[],\"name\":[],\"slope\":[],\"where\":[],\"site\":[],"
                   "\"flag\":[]}");
}

Test(html_parts, what_is_no_number_is_none)
{
    static const struct record odd = {.slope = (double)__builtin_inff(), .name = ""};

    expect_written(&(struct cw_html_records){.base = &odd, .size = sizeof(odd), .count = 1},
                   "{\"n\":1,\"t\":0,\"big\":0,\"name\":0,\"slope\":0,\"where\":0,\"site\":-1,"
                   "\"flag\":0}");
}

Test(html_parts, text_cannot_leave_its_element)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    cw_html_put_text(out, "</script>\"\\\n\x01 \xc3\xa4");
    fclose(out);
    cr_expect_str_eq(text, "\"\\u003c/script\\u003e\\\"\\\\\\u000a\\u0001 \xc3\xa4\"");
    free(text);
}

Test(html_parts, equal_texts_are_one)
{
    struct cw_strings strings = {.count = 0};
    char name[2][16];

    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(name[0], sizeof(name[0]), "name %u", i);
        cr_assert_eq(cw_strings_add(&strings, strdup(name[0])), i);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(name[1], sizeof(name[1]), "name %u", i);
        cr_assert_eq(cw_strings_add(&strings, name[1]), i);
        cr_assert_str_eq(strings.text[i], name[1]);
    }
    cr_expect_eq(strings.count, 5000);
    cw_strings_free(&strings);
}

Test(html_parts, equal_beginnings_of_stacks_are_one)
{
    struct cw_html_tree tree = {.count = 0};
    uint32_t top = cw_html_tree_add(&tree, CW_HTML_ROOT, 1);
    uint32_t below = cw_html_tree_add(&tree, top, 2);

    cr_expect_eq(cw_html_tree_add(&tree, CW_HTML_ROOT, 1), top);
    cr_expect_eq(cw_html_tree_add(&tree, top, 2), below);
    cr_expect_neq(cw_html_tree_add(&tree, CW_HTML_ROOT, 2), below);
    for (uint32_t i = 0; i < 20000; i++)
        cr_assert_eq(cw_html_tree_add(&tree, below, 10 + i), 3 + i);
    for (uint32_t i = 0; i < 20000; i++)
        cr_assert_eq(cw_html_tree_add(&tree, below, 10 + i), 3 + i);
    cr_expect_eq(tree.count, 20003);
    for (uint32_t i = 0; i < tree.count; i++)
        cr_assert(tree.node[i].parent == CW_HTML_ROOT || tree.node[i].parent < i);
    cw_html_tree_free(&tree);
}
