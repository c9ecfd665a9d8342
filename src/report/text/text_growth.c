/* SPDX-License-Identifier: MIT */
/* The section GROWTH. See text_sections.h. As in OLD, a line for figures, a line for the place. */
#include "report/text/text_sections.h"

#include "base/compiler.h"
#include "report/snapshot/snapshot_growth.h"

#define SUSPECTS_MAX 10
#define INDENT       7

/* ---- words ---- */

static void put_slope(const struct cw_text *text, double per_second)
{
    char slope[CW_SLOPE_MAX];

    cw_out_string(text->out,
                  cw_trend_format_slope(slope, per_second, text->snapshot->growth.end_ns));
}

static void put_r2(const struct cw_text *text, double r2)
{
    uint64_t hundredths = cw_trend_to_bytes(r2 * 100);

    cw_out_printf(text->out, "R2 %ju.%02ju", (uintmax_t)(hundredths / 100),
                  (uintmax_t)(hundredths % 100));
}

static void put_from_to(const struct cw_text *text, uint64_t from, uint64_t to)
{
    cw_text_size(text, from);
    cw_out_string(text->out, " -> ");
    cw_text_size(text, to);
}

static void put_floors(const struct cw_text *text, const struct cw_trend *trend)
{
    cw_out_string(text->out, "floor ");
    put_from_to(text, trend->floor[0], trend->floor[CW_TREND_QUARTERS - 1]);
}

/* "+1.0 MiB per step of "train_step" (domain)" */
static void put_per_step(const struct cw_text *text, double bytes, uint32_t tag)
{
    cw_out_char(text->out, '+');
    cw_text_size(text, cw_trend_to_bytes(bytes));
    cw_out_string(text->out, " per step of \"");
    cw_text_clean(text, cw_report_tag_label(text->model, tag), CW_TEXT_NAME_MAX);
    cw_out_char(text->out, '"');
}

static void begin_detail(const struct cw_text *text)
{
    cw_text_begin_line(text);
    cw_text_padding(text, 0, INDENT);
}

/* "  site 9f3c21aa  cudaMalloc, device 0", the end of the line, and the place on its own line. */
static void put_place(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    cw_out_printf(text->out, "  site %08x  ", site->id);
    cw_text_site_call(text, site, CW_TEXT_NAME_WIDTH);
    cw_text_end_line(text);
    begin_detail(text);
    cw_text_trail(text, site->stack, text->columns - 4);
    cw_text_end_line(text);
}

void cw_text_site_slope(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    const struct cw_growth_row *row =
        cw_snapshot_growth_row(text->snapshot, (uint32_t)(site - text->snapshot->site));

    if (!row)
        return;
    cw_out_char(text->out, ' ');
    put_slope(text, row->trend.slope);
}

/* ---- places ---- */

static void put_suspect(const struct cw_text *text, const struct cw_growth_row *row)
{
    const struct cw_snapshot_site *site = &text->snapshot->site[row->site];

    cw_text_begin_line(text);
    cw_out_string(text->out, "  ");
    put_slope(text, row->trend.slope);
    cw_out_string(text->out, "  ");
    put_r2(text, row->trend.r2);
    cw_out_printf(text->out, ", %u samples  ", row->trend.n);
    put_floors(text, &row->trend);
    if (site->live_blocks == 0)
        cw_out_string(text->out, site->reclaimed > 0 ? ", gone with its context" : ", all freed");
    cw_text_in_cache(text, site->cache);
    put_place(text, site);
    if (row->tag == 0)
        return;
    begin_detail(text);
    put_per_step(text, row->per_step, row->tag);
    cw_text_end_line(text);
}

static void put_suspects(const struct cw_text *text)
{
    const struct cw_snapshot_growth *growth = &text->snapshot->growth;
    uint32_t shown = cw_text_shown(text, growth->suspects, SUSPECTS_MAX);
    struct cw_text_list list;

    cw_text_begin_list(text, growth->suspect, sizeof(*growth->suspect), shown, &list);
    for (uint32_t i = 0; i < shown; i++)
        put_suspect(&list.text, cw_snapshot_growth_row(text->snapshot, growth->suspect[i]));
    cw_text_end_list(&list);
    if (growth->suspects == shown)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ... ");
    cw_text_count(text, growth->suspects - shown, "more site");
    cw_text_end_line(text);
}

/* ---- steps, regrowth, devices ---- */

static void put_steps(const struct cw_text *text)
{
    const struct cw_snapshot_growth *growth = &text->snapshot->growth;

    for (uint32_t i = 0; i < growth->risings; i++) {
        const struct cw_growth_step *step = &growth->step[growth->rising[i]];

        cw_text_begin_line(text);
        cw_out_string(text->out, "  whole process: ");
        put_per_step(text, step->slope, step->tag);
        cw_out_string(text->out, "  ");
        put_r2(text, step->r2);
        cw_out_printf(text->out, ", %ju steps  ", (uintmax_t)step->steps);
        put_from_to(text, step->first_bytes, step->last_bytes);
        cw_text_end_line(text);
    }
}

static void put_regrowth(const struct cw_text *text, const struct cw_growth_regrowth *regrowth)
{
    uint64_t factor = cw_trend_to_bytes(regrowth->factor * 100);

    cw_text_begin_line(text);
    cw_out_printf(text->out, "  regrown %ju times, by %ju.%02ju on average, ",
                  (uintmax_t)regrowth->resizes, (uintmax_t)(factor / 100),
                  (uintmax_t)(factor % 100));
    cw_text_size(text, regrowth->copied_bytes);
    cw_out_string(text->out, " copied");
    put_place(text, &text->snapshot->site[regrowth->site]);
    begin_detail(text);
    cw_out_string(text->out, "an initial capacity of ");
    cw_text_size(text, regrowth->largest_bytes);
    cw_out_string(text->out, " would have avoided ");
    cw_out_string(text->out, regrowth->chains > 1 ? "them for each of " : "them");
    if (regrowth->chains > 1)
        cw_text_count(text, regrowth->chains, "block");
    cw_text_end_line(text);
}

static void put_regrowths(const struct cw_text *text,
                          const struct cw_growth_regrowth *const *regrowth, uint32_t count)
{
    uint32_t site[CW_REGROWTHS_SHOWN];
    struct cw_text_list list;

    for (uint32_t i = 0; i < count; i++)
        site[i] = regrowth[i]->site;
    cw_text_begin_list(text, site, sizeof(*site), count, &list);
    for (uint32_t i = 0; i < count; i++)
        put_regrowth(&list.text, regrowth[i]);
    cw_text_end_list(&list);
}

/* At most CW_REGROWTHS_SHOWN that are worth a line, most bytes copied first. */
static uint32_t find_regrowths(const struct cw_snapshot_growth *growth,
                               const struct cw_growth_regrowth **out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < growth->regrowths && count < CW_REGROWTHS_SHOWN; i++)
        if (cw_snapshot_regrowth_is_large(&growth->regrowth[i]))
            out[count++] = &growth->regrowth[i];
    return count;
}

static void put_peak(const struct cw_text *text, unsigned device)
{
    const struct cw_growth_timeline *timeline = &text->snapshot->growth.timeline[device];
    uint64_t before = 0;

    for (unsigned i = 0; i + 1 < CW_TREND_QUARTERS; i++)
        before = timeline->peak[i] > before ? timeline->peak[i] : before;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ");
    cw_text_device(text, device);
    cw_out_string(text->out, ": the peak still rose in the last quarter of the run, ");
    put_from_to(text, before, timeline->peak[CW_TREND_QUARTERS - 1]);
    cw_text_end_line(text);
}

static void put_idle(const struct cw_text *text, unsigned device)
{
    const struct cw_trend *idle = &text->snapshot->growth.timeline[device].idle;

    cw_text_begin_line(text);
    cw_out_string(text->out, "  ");
    cw_text_device(text, device);
    cw_out_string(text->out, ": what the pool keeps idle grew steadily, ");
    put_slope(text, idle->slope);
    cw_out_string(text->out, ", ");
    put_floors(text, idle);
    cw_text_end_line(text);
}

/* ---- the section ---- */

static int has_device_growth(const struct cw_growth_timeline *timeline)
{
    return timeline->peak_rose || timeline->idle.is_steady;
}

static int has_more(const struct cw_snapshot_growth *growth, uint32_t regrowths)
{
    int found = growth->risings > 0 || regrowths > 0;

    for (unsigned i = 0; i < CW_DEVICES; i++)
        found |= has_device_growth(&growth->timeline[i]);
    return found;
}

static void put_heading(const struct cw_text *text, int more)
{
    uint32_t suspects = text->snapshot->growth.suspects;

    cw_text_heading(text, "GROWTH  ");
    if (suspects > 0) {
        cw_text_count(text, suspects, "call site");
        cw_out_string(text->out, " grew steadily");
    } else {
        cw_out_string(text->out, more ? "no call site grew steadily" : "nothing grew steadily");
    }
    cw_text_end_line(text);
}

void cw_text_growth(const struct cw_text *text)
{
    const struct cw_snapshot_growth *growth = &text->snapshot->growth;
    const struct cw_growth_regrowth *regrowth[CW_REGROWTHS_SHOWN];
    uint32_t regrowths = find_regrowths(growth, regrowth);
    int more = has_more(growth, regrowths);

    if (growth->suspects == 0 && !more && !cw_snapshot_growth_was_watched(growth))
        return;
    put_heading(text, more);
    put_suspects(text);
    put_steps(text);
    put_regrowths(text, regrowth, regrowths);
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        if (growth->timeline[i].peak_rose)
            put_peak(text, i);
        if (growth->timeline[i].idle.is_steady)
            put_idle(text, i);
    }
}
