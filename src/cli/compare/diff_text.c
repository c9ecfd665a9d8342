/* SPDX-License-Identifier: MIT */
/* A comparison as text, and as collapsed stacks. See diff.h. */
#include "cli/compare/diff.h"

#include <inttypes.h>

#include "cli/export/form_collapsed.h"
#include "cli/ui/color.h"
#include "cli/model/site_text.h"

#define ROWS_SHOWN   20 /* without --top */
#define FRAMES_SHOWN 8

struct text {
    const struct cw_diff *diff;
    FILE *out;
    int has_color;
};

/* Growth is red. */
static void put_change(const struct text *text, enum cw_metric metric, const uint64_t value[2],
                       int width)
{
    int has_color = text->has_color && value[0] != value[1];
    char buf[CW_AMOUNT_MAX];

    if (has_color)
        fputs(value[1] > value[0] ? CW_PAINT_RED : CW_PAINT_GREEN, text->out);
    fprintf(text->out, "%*s", width, cw_change_format(buf, metric, value[0], value[1]));
    if (has_color)
        fputs(CW_PAINT_PLAIN, text->out);
}

/* ---- totals ---- */

/* Omits totals that are 0 in both. */
static void put_total(const struct text *text, const char *of, const struct cw_diff_total *total)
{
    char label[64], before[CW_AMOUNT_MAX], after[CW_AMOUNT_MAX], share[CW_AMOUNT_MAX];

    if (total->value[0] == 0 && total->value[1] == 0)
        return;
    snprintf(label, sizeof(label), "%s %s", of, total->label);
    fprintf(text->out, "  %-22s %12s %12s  ", label,
            cw_amount_format(before, total->unit, total->value[0]),
            cw_amount_format(after, total->unit, total->value[1]));
    put_change(text, total->unit, total->value, 12);
    cw_share_format(share, total->value[0], total->value[1]);
    fprintf(text->out, "%s%s\n", share[0] ? "  " : "", share);
}

static void put_totals(const struct text *text)
{
    struct cw_diff_total device[CW_DIFF_DEVICE_TOTALS], summary[CW_DIFF_SUMMARY_TOTALS];
    const struct cw_selection *selection = &text->diff->selection;
    char name[CW_AMOUNT_MAX];

    fprintf(text->out, "TOTALS\n  %-22s %12s %12s  %12s\n", "", "before", "after", "change");
    for (uint32_t ordinal = 0; ordinal <= CW_DEVICE_HOST; ordinal++) {
        if ((selection->has_device && selection->device != ordinal) ||
            !cw_diff_device_totals(text->diff, ordinal, device))
            continue;
        for (unsigned i = 0; i < CW_DIFF_DEVICE_TOTALS; i++)
            put_total(text, cw_device_format(name, ordinal), &device[i]);
    }
    cw_diff_summary_totals(text->diff, summary);
    for (unsigned i = 0; i < CW_DIFF_SUMMARY_TOTALS; i++)
        put_total(text, "process", &summary[i]);
}

/* ---- sites ---- */

static void put_site(const struct text *text, uint32_t site)
{
    const struct cw_match *match = &text->diff->match;
    const struct cw_match_cell *before = cw_match_cell(match, site, 0);
    const struct cw_match_cell *after = cw_match_cell(match, site, 1);
    enum cw_metric metric = text->diff->selection.metric;
    enum cw_diff_state state = cw_diff_state(text->diff, site);
    uint64_t value[2] = {before->value, after->value};
    char from[CW_AMOUNT_MAX], to[CW_AMOUNT_MAX];

    fputs("  ", text->out);
    put_change(text, metric, value, 12);
    fprintf(text->out, "  %s -> %s  ", cw_amount_format(from, metric, value[0]),
            cw_amount_format(to, metric, value[1]));
    cw_site_put(text->out, cw_match_model(match, site), cw_match_record(match, site),
                cw_diff_device(text->diff, site));
    if (state == CW_DIFF_NEW || state == CW_DIFF_GONE)
        fprintf(text->out, " [%s]", cw_diff_state_name(state));
    if (match->site[site].is_by_name)
        fputs(" [matched by name]", text->out);
    fputc('\n', text->out);
    cw_stack_put(text->out, cw_match_model(match, site), cw_match_record(match, site),
                 FRAMES_SHOWN);
}

static void put_counts(const struct text *text)
{
    static const enum cw_diff_state order[] = {CW_DIFF_GREW, CW_DIFF_NEW, CW_DIFF_SHRANK,
                                               CW_DIFF_GONE, CW_DIFF_SAME};
    const struct cw_diff *diff = text->diff;
    enum cw_metric metric = diff->selection.metric;
    char from[CW_AMOUNT_MAX], to[CW_AMOUNT_MAX], share[CW_AMOUNT_MAX];

    fprintf(text->out, "\nSITES by %s %s: ", cw_metric_name(metric),
            metric == CW_METRIC_COUNT ? "of allocations" : "bytes");
    for (unsigned i = 0; i < CW_DIFF_STATES; i++)
        fprintf(text->out, "%s%" PRIu32 " %s", i ? ", " : "", diff->count[order[i]],
                cw_diff_state_name(order[i]));
    fprintf(text->out, "\n  %s -> %s, ", cw_amount_format(from, metric, diff->sum[0]),
            cw_amount_format(to, metric, diff->sum[1]));
    put_change(text, metric, diff->sum, 0);
    cw_share_format(share, diff->sum[0], diff->sum[1]);
    fprintf(text->out, "%s%s%s in all\n", share[0] ? " (" : "", share, share[0] ? ")" : "");
}

static void put_rebuilt(const struct text *text)
{
    const struct cw_match *match = &text->diff->match;

    if (match->by_name == 0)
        return;
    fprintf(text->out, "  %" PRIu32 " matched by function name", match->by_name);
    for (unsigned i = 0; i < match->rebuilt_count; i++) {
        fputs(i ? ", " : "; rebuilt: ", text->out);
        cw_text_put(text->out, match->rebuilt[i]);
    }
    fputc('\n', text->out);
}

static void put_side(const struct text *text, const char *label,
                     const struct cw_report_model *model)
{
    fprintf(text->out, "%s ", label);
    cw_text_put(text->out, model->source);
    fputs(": ", text->out);
    cw_process_put(text->out, model);
    fputc('\n', text->out);
}

void cw_diff_text(const struct cw_diff *diff, FILE *out, int has_color)
{
    struct text text = {.diff = diff, .out = out, .has_color = has_color};
    uint32_t shown = diff->selection.top ? diff->selection.top : ROWS_SHOWN;

    put_side(&text, "before", diff->model[0].report);
    put_side(&text, "after ", diff->model[1].report);
    fputc('\n', out);
    put_totals(&text);
    put_counts(&text);
    put_rebuilt(&text);
    for (uint32_t i = 0; i < diff->rows && i < shown; i++)
        put_site(&text, diff->row[i].site);
    if (diff->rows > shown)
        fprintf(out, "  ... %" PRIu32 " more with smaller changes (--top=N)\n", diff->rows - shown);
}

/* ---- collapsed ---- */

void cw_diff_collapsed(const struct cw_diff *diff, FILE *out)
{
    const struct cw_match *match = &diff->match;

    for (uint32_t i = 0; i < match->sites; i++) {
        uint64_t before = cw_match_cell(match, i, 0)->value;
        uint64_t after = cw_match_cell(match, i, 1)->value;

        if (!match->site[i].is_selected || (before == 0 && after == 0))
            continue;
        cw_form_collapsed_stack(out, cw_match_model(match, i), cw_match_record(match, i), 0);
        fprintf(out, " %" PRIu64 " %" PRIu64 "\n", before, after);
    }
}
