/* SPDX-License-Identifier: MIT */
/* SUPPRESSED from the model, and what went past a rule's cap. It reads as the library's own. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/form_whole.h"
#include "live/view.h"
#include "report/text/text_table.h"

#define ROWS_MAX   30
#define UNUSED_MAX 10
#define RULE_WIDTH 60
#define CELL_WIDTH 44 /* of a rule in the table, with its NUL */
#define PATH_WIDTH 60

enum column { BYTES, BLOCKS, SITES, PAST, FROM, RULE, COLUMNS };

static const char *const titles[COLUMNS] = {"bytes", "blocks", "sites", "past cap", "from", "rule"};

/* What a cell is made from: the text comes first. */
struct table {
    struct cw_text text;
    const struct cw_model *model;
    uint32_t row[ROWS_MAX];
    uint32_t rows;
    unsigned hidden;
};

const struct cw_model_rule *cw_form_rule(const struct cw_model *model, uint32_t id)
{
    for (uint32_t i = 0; i < model->rules; i++)
        if (model->rule[i].id == id)
            return &model->rule[i];
    return NULL;
}

/* ---- words ---- */

static int is_builtin(const struct cw_model_rule *rule)
{
    return rule->line == 0;
}

/* "leak:grow_cache max=8M", "library cuBLAS (libcublas)" */
static void format_rule(const struct cw_model_rule *rule, char *buf, size_t cap)
{
    int len;

    if (is_builtin(rule))
        len = snprintf(buf, cap, "%s %s (%s)", rule->leak, rule->owner, rule->pattern);
    else
        len = snprintf(buf, cap, "%s", rule->pattern);
    if (len >= (int)cap)
        memcpy(buf + cap - 4, "...", 4);
    for (; *buf; buf++)
        if ((unsigned char)*buf < 0x20 || *buf == 0x7f)
            *buf = '?';
}

static void format_from(const struct cw_model_rule *rule, char *buf, size_t cap)
{
    if (is_builtin(rule))
        snprintf(buf, cap, "built-in");
    else
        snprintf(buf, cap, "line %" PRIu32, rule->line);
}

static void format_cell(const struct cw_text *text, uint32_t row, unsigned column, char *cell)
{
    const struct cw_model_rule *rule = &((const struct table *)text)->model->rule[row];

    switch ((enum column)column) {
    case BYTES:
        cw_format_size(cell, CW_TEXT_CELL_MAX, rule->kept.bytes);
        return;
    case BLOCKS:
        snprintf(cell, CW_TEXT_CELL_MAX, "%" PRIu64, rule->kept.count);
        return;
    case SITES:
        snprintf(cell, CW_TEXT_CELL_MAX, "%" PRIu64, rule->sites);
        return;
    case PAST:
        snprintf(cell, CW_TEXT_CELL_MAX, "%" PRIu64, rule->past_cap);
        return;
    case FROM:
        format_from(rule, cell, CW_TEXT_CELL_MAX);
        return;
    default:
        format_rule(rule, cell, CELL_WIDTH);
        return;
    }
}

void cw_form_past_cap(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_rule *rule =
        site->is_past_cap ? cw_form_rule(to->model, site->rule) : NULL;
    char words[RULE_WIDTH], from[24];

    if (!rule)
        return;
    format_rule(rule, words, sizeof(words));
    format_from(rule, from, sizeof(from));
    cw_say_line(to, "    past the cap of %s (%s)", words, from);
}

/* ---- the section ---- */

static int is_used(const struct cw_model_rule *rule)
{
    return rule->sites > 0 || rule->past_cap > 0;
}

static void write_table(const struct cw_text *text)
{
    const struct table *table = (const struct table *)text;
    struct cw_text_table shape = {.title = titles,
                                  .columns = COLUMNS,
                                  .left = 1u << FROM | 1u << RULE,
                                  .hidden = table->hidden,
                                  .format = format_cell};

    cw_text_table(text, &shape, table->row, table->rows);
}

static int put_used(const struct cw_say *to)
{
    struct cw_live_header header = {.pid = to->model->process.pid};
    struct cw_view view = {.base = (const char *)&header, .size = sizeof(header)};
    struct table table = {
        .text = {.view = &view, .form = CW_TEXT_FULL}, .model = to->model, .hidden = 1u << PAST};
    uint32_t used = 0;
    int rc = 0;

    for (uint32_t i = 0; i < to->model->rules; i++) {
        if (!is_used(&to->model->rule[i]))
            continue;
        if (to->model->rule[i].past_cap > 0)
            table.hidden = 0;
        if (used++ < ROWS_MAX)
            table.row[table.rows++] = i;
    }
    if (used > 0)
        rc = cw_form_borrow(to, &table.text, write_table);
    if (used > ROWS_MAX)
        cw_say_line(to, "  ... %" PRIu32 " more rules (all of them: CUWARDEN_FORMAT=json)",
                    used - ROWS_MAX);
    return rc;
}

static int is_unused_line(const struct cw_model_rule *rule)
{
    return !is_builtin(rule) && !is_used(rule);
}

static void put_unused(const struct cw_say *to)
{
    uint32_t unused = 0, put = 0;
    char words[RULE_WIDTH];

    for (uint32_t i = 0; i < to->model->rules; i++)
        unused += is_unused_line(&to->model->rule[i]);
    if (unused == 0)
        return;
    cw_say_line(to,
                "  %" PRIu32
                " rule%s of the file matched nothing, or only what an earlier one decides:",
                unused, unused == 1 ? "" : "s");
    for (uint32_t i = 0; i < to->model->rules; i++) {
        const struct cw_model_rule *rule = &to->model->rule[i];

        if (!is_unused_line(rule) || put == UNUSED_MAX)
            continue;
        put++;
        format_rule(rule, words, sizeof(words));
        cw_say_line(to, "    line %" PRIu32 "  %s", rule->line, words);
    }
    if (unused > UNUSED_MAX)
        cw_say_line(to, "    ... %" PRIu32 " more", unused - UNUSED_MAX);
}

static const char *file_of(const struct cw_model *model)
{
    for (uint32_t i = 0; i < model->rules; i++)
        if (!is_builtin(&model->rule[i]))
            return model->rule[i].source;
    return NULL;
}

/* The end of a path says more than its beginning. */
static void put_file(const struct cw_say *to, const char *path)
{
    size_t len = strnlen(path, CW_TEXT_NAME_MAX * 8);

    cw_say_begin(to);
    fputs("  the file is ", to->out);
    if (len > PATH_WIDTH)
        fputs("...", to->out);
    cw_say_clean(to, len > PATH_WIDTH ? path + len - PATH_WIDTH : path, PATH_WIDTH);
    fputc('\n', to->out);
}

static void put_heading(const struct cw_say *to, const char *file)
{
    struct cw_model_amount sum = {0, 0};

    for (uint32_t i = 0; i < to->model->rules; i++) {
        const struct cw_model_rule *rule = &to->model->rule[i];

        if (is_builtin(rule))
            continue;
        sum.count += rule->kept.count;
        sum.bytes += rule->kept.bytes;
    }
    cw_say_heading(to, "SUPPRESSED  ");
    if (sum.count > 0) {
        cw_say_amount(to, sum);
        fputs(", not counted as leaked\n", to->out);
    } else {
        fputs(file ? "nothing by rules of the file\n" : "only by what is built in\n", to->out);
    }
    if (file)
        put_file(to, file);
}

int cw_form_suppressed(const struct cw_say *to)
{
    const char *file = file_of(to->model);
    int rc;

    if (to->model->rules == 0)
        return 0;
    put_heading(to, file);
    rc = put_used(to);
    put_unused(to);
    return rc;
}
