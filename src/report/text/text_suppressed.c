/* SPDX-License-Identifier: MIT */
/* The section SUPPRESSED. See text_sections.h. No line exceeds 100 columns. */
#include "report/text/text_sections.h"

#include <string.h>

#include "base/printable.h"
#include "report/text/text_table.h"

#define ROWS_MAX   30
#define UNUSED_MAX 10
#define RULE_WIDTH 60
#define CELL_WIDTH 44 /* a rule in the table, with its NUL */
#define PATH_WIDTH 60

enum column { BYTES, BLOCKS, SITES, PAST, FROM, RULE, COLUMNS };

static const char *const titles[COLUMNS] = {"bytes", "blocks", "sites", "past cap", "from", "rule"};

/* ---- words ---- */

static int is_builtin(const struct cw_report_rule *rule)
{
    return rule->owner[0] != '\0';
}

static void format_rule(const struct cw_report_rule *rule, char *buf, size_t cap)
{
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap - 1);
    if (is_builtin(rule))
        cw_out_printf(&out, "%s %s (%s)", cw_leak_class_name(rule->leak), rule->owner,
                      rule->pattern);
    else
        cw_out_string(&out, rule->pattern);
    buf[out.len] = '\0';
    if (out.truncated && cap > 4)
        cw_format(buf + cap - 4, 4, "...");
    (void)cw_printable_clean_string(buf);
}

static void format_from(const struct cw_report_rule *rule, char *buf, size_t cap)
{
    if (is_builtin(rule))
        cw_format(buf, cap, "built-in");
    else
        cw_format(buf, cap, "line %u", rule->line);
}

static void format_cell(const struct cw_text *text, uint32_t row, unsigned column, char *cell)
{
    const struct cw_report_rule *rule = &text->model->rule[row];

    switch ((enum column)column) {
    case BYTES:
        cw_format_size(cell, CW_TEXT_CELL_MAX, rule->use.bytes);
        return;
    case BLOCKS:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)rule->use.blocks);
        return;
    case SITES:
        cw_format(cell, CW_TEXT_CELL_MAX, "%u", rule->use.sites);
        return;
    case PAST:
        cw_format(cell, CW_TEXT_CELL_MAX, "%u", rule->use.past);
        return;
    case FROM:
        format_from(rule, cell, CW_TEXT_CELL_MAX);
        return;
    default:
        format_rule(rule, cell, CELL_WIDTH);
        return;
    }
}

/* ---- the section ---- */

static int is_used(const struct cw_report_rule *rule)
{
    return rule->use.sites > 0 || rule->use.past > 0;
}

static void put_used(const struct cw_text *text)
{
    struct cw_text_table table = {.title = titles,
                                  .columns = COLUMNS,
                                  .left = 1u << FROM | 1u << RULE,
                                  .hidden = 1u << PAST,
                                  .format = format_cell};
    uint32_t rows[ROWS_MAX];
    uint32_t used = 0;

    for (uint32_t i = 0; i < text->model->rules; i++) {
        if (!is_used(&text->model->rule[i]))
            continue;
        if (text->model->rule[i].use.past > 0)
            table.hidden = 0;
        if (used++ < ROWS_MAX)
            rows[used - 1] = i;
    }
    if (used == 0)
        return;
    cw_text_table(text, &table, rows, used < ROWS_MAX ? used : ROWS_MAX);
    if (used > ROWS_MAX)
        cw_text_line(text, "  ... %u more rules (all of them: CUWARDEN_FORMAT=json)",
                     used - ROWS_MAX);
}

static int is_unused_line(const struct cw_report_rule *rule)
{
    return !is_builtin(rule) && !is_used(rule);
}

static void put_unused(const struct cw_text *text)
{
    uint32_t unused = 0, put = 0;
    char words[RULE_WIDTH];

    for (uint32_t i = 0; i < text->model->rules; i++)
        unused += is_unused_line(&text->model->rule[i]);
    if (unused == 0)
        return;
    cw_text_line(
        text,
        "  %u rule%s of the file matched nothing, or only sites that an earlier rule decides:",
        unused, unused == 1 ? "" : "s");
    for (uint32_t i = 0; i < text->model->rules && put < UNUSED_MAX; i++) {
        const struct cw_report_rule *rule = &text->model->rule[i];

        if (!is_unused_line(rule))
            continue;
        put++;
        format_rule(rule, words, sizeof(words));
        cw_text_line(text, "    line %u  %s", rule->line, words);
    }
    if (unused > put)
        cw_text_line(text, "    ... %u more", unused - put);
}

static void put_heading(const struct cw_text *text)
{
    const char *path = "";
    size_t len;
    uint64_t bytes = 0, blocks = 0;

    for (uint32_t i = 0; i < text->model->rules; i++) {
        const struct cw_report_rule *rule = &text->model->rule[i];

        if (is_builtin(rule))
            continue;
        path = rule->source;
        bytes += rule->use.bytes;
        blocks += rule->use.blocks;
    }
    len = strnlen(path, CW_TEXT_NAME_MAX * 8);
    cw_text_heading(text, "SUPPRESSED  ");
    if (blocks > 0) {
        cw_text_bytes_in_blocks(text, bytes, blocks);
        cw_out_string(text->out, ", not counted as leaked");
    } else {
        cw_out_string(text->out,
                      len > 0 ? "nothing by the file's rules" : "only by built-in rules");
    }
    cw_text_end_line(text);
    if (len == 0)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  the file is ");
    if (len > PATH_WIDTH) /* the end identifies a path better than the beginning */
        cw_out_string(text->out, "...");
    cw_text_clean(text, len > PATH_WIDTH ? path + len - PATH_WIDTH : path, PATH_WIDTH);
    cw_text_end_line(text);
}

void cw_text_suppressed(const struct cw_text *text)
{
    if (text->model->rules == 0)
        return;
    put_heading(text);
    put_used(text);
    put_unused(text);
}

void cw_text_past_cap(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    const struct cw_report_rule *rule =
        site->past_cap ? cw_report_rule_at(text->model, site->rule) : NULL;
    char words[RULE_WIDTH], from[24];

    if (!rule)
        return;
    format_rule(rule, words, sizeof(words));
    format_from(rule, from, sizeof(from));
    cw_text_line(text, "    past the cap of %s (%s)", words, from);
}
