/* SPDX-License-Identifier: MIT */
/* The section BUDGETS: what tags may have, had, and were refused. See text_sections.h. No line
 * exceeds 100 columns. */
#include "report/text/text_sections.h"

#include "base/compiler.h"
#include "base/printable.h"
#include "report/text/text_event.h"
#include "report/text/text_table.h"

#define TAG_WIDTH 40 /* a pattern in the table, with its NUL */

enum column { TAG, BUDGET, DOES, LIVE, PEAK, BEYOND, REFUSED, COLUMNS };

static const char *const titles[COLUMNS] = {"tag",  "budget", "beyond it", "live",
                                            "peak", "beyond", "refused"};

static void format_pattern(const struct cw_report_budget *budget, char *cell)
{
    size_t len = cw_format(cell, TAG_WIDTH, "%s", budget->pattern);

    if (len >= TAG_WIDTH)
        cw_format(cell + TAG_WIDTH - 4, 4, "...");
    (void)cw_printable_clean_string(cell);
}

static void format(const struct cw_text *text, uint32_t row, unsigned column, char *cell)
{
    const struct cw_report_budget *budget = &text->model->budget[row];

    switch (column) {
    case TAG:
        format_pattern(budget, cell);
        return;
    case BUDGET:
        cw_format_size(cell, CW_TEXT_CELL_MAX, budget->bytes);
        return;
    case DOES:
        cw_format(cell, CW_TEXT_CELL_MAX, "%s",
                  !budget->is_set   ? "unset since"
                  : budget->refuses ? "refuse"
                                    : "warn");
        return;
    case LIVE:
        cw_format_size(cell, CW_TEXT_CELL_MAX, budget->live);
        return;
    case PEAK:
        cw_format_size(cell, CW_TEXT_CELL_MAX, budget->peak);
        return;
    case BEYOND:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)budget->exceeded);
        return;
    default:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)budget->refused);
        return;
    }
}

static void put_event(const struct cw_text *text, const struct cw_report_event *event)
{
    char time[32], size[24];

    cw_text_begin_line(text);
    cw_out_printf(text->out, "    %s  beyond its budget, with %s live: ",
                  cw_format_duration(time, sizeof(time), event->t_ns),
                  cw_format_size(size, sizeof(size), event->bytes));
    cw_text_call(text, event->site);
    cw_text_end_line(text);
    cw_text_call_stack(text, event->site);
}

/* Likely a pattern that matches no tag. */
static void put_unused(const struct cw_text *text, const struct cw_report_budget *budget)
{
    if (budget->peak != 0 || budget->refused != 0)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  no device memory was allocated with a tag that ");
    cw_text_clean(text, budget->pattern, TAG_WIDTH);
    cw_out_string(text->out, " matches\n");
}

void cw_text_budgets(const struct cw_text *text)
{
    static const struct cw_text_table table = {
        .title = titles, .columns = COLUMNS, .left = 1u << TAG | 1u << DOES, .format = format};
    uint32_t rows[CW_BUDGETS];
    struct cw_newest newest;

    if (text->model->budgets == 0)
        return;
    cw_text_heading(text, "BUDGETS\n");
    for (uint32_t i = 0; i < text->model->budgets && i < CW_BUDGETS; i++)
        rows[i] = i;
    cw_text_table(text, &table, rows,
                  text->model->budgets < CW_BUDGETS ? text->model->budgets : CW_BUDGETS);
    cw_text_line(text, "  live bytes of device memory by tag, over all devices; beyond: times that "
                       "they went so");
    for (uint32_t i = 0; i < text->model->budgets; i++)
        put_unused(text, &text->model->budget[i]);
    cw_newest_find(text->model, 1u << CW_EVENT_BUDGET, &newest);
    if (newest.count == 0)
        return;
    cw_text_blank(text);
    cw_text_begin_line(text);
    cw_out_string(text->out, "  allocations that went beyond: ");
    cw_text_count(text, newest.of, "time");
    cw_text_newest_note(text, newest.of, newest.of, newest.count);
    for (unsigned i = 0; i < newest.count; i++)
        put_event(text, &text->model->event[newest.event[i]]);
}
