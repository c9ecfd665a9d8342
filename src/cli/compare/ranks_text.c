/* SPDX-License-Identifier: MIT */
/* The ranks of a job as text. See ranks.h. */
#include "cli/compare/ranks.h"

#include <inttypes.h>
#include <string.h>

#include "cli/ui/color.h"
#include "cli/ui/message.h"
#include "cli/model/site_text.h"

#define ROWS_SHOWN   20 /* without --top */
#define FRAMES_SHOWN 8

struct text {
    const struct cw_ranks *ranks;
    FILE *out;
    int has_color;
};

static void put_name(FILE *out, const char *name, int width)
{
    int len = (int)strlen(name);

    cw_text_put(out, name);
    fprintf(out, "%*s", len < width ? width - len : 0, "");
}

/* ---- ranks ---- */

static void put_device(const struct text *text, uint32_t rank, uint32_t index)
{
    const struct cw_report_model *model = text->ranks->model[rank].report;
    const struct cw_snapshot_device *device = &model->snapshot.device[index];
    uint64_t most = model->snapshot.pressure.device[index].limit;
    struct cw_ranks_leaks leaks = cw_ranks_leaks(text->ranks, rank, index);
    char name[CW_AMOUNT_MAX], live[CW_AMOUNT_MAX], peak[CW_AMOUNT_MAX], limit[CW_AMOUNT_MAX] = "-",
                                                                        leaked[CW_AMOUNT_MAX];

    if (most != 0)
        cw_amount_format(limit, CW_METRIC_LIVE, most);
    fputs("  ", text->out);
    put_name(text->out, text->ranks->rank[rank].label, 8);
    fprintf(text->out, " %8" PRIu32 "  ", model->process.pid);
    put_name(text->out, model->process.host, 16);
    fprintf(text->out, " %-10s %11s %11s %11s %11s in %" PRIu64 " block%s, %" PRIu32 " site%s\n",
            cw_device_format(name, index),
            cw_amount_format(live, CW_METRIC_LIVE, device->sums.live_bytes),
            cw_amount_format(peak, CW_METRIC_LIVE, device->peak_bytes), limit,
            cw_amount_format(leaked, CW_METRIC_LIVE, leaks.bytes), leaks.blocks,
            leaks.blocks == 1 ? "" : "s", leaks.sites, leaks.sites == 1 ? "" : "s");
}

static void put_ranks(const struct text *text)
{
    fprintf(text->out, "RANKS\n  %-8s %8s  %-16s %-10s %11s %11s %11s %11s\n", "rank", "pid",
            "host", "device", "live", "peak", "limit", "leaked");
    for (uint32_t i = 0; i < text->ranks->count; i++) {
        for (uint32_t k = 0; k < CW_DEVICES; k++)
            if (cw_report_has_device(text->ranks->model[i].report, k) &&
                cw_ranks_has_device(text->ranks, k))
                put_device(text, i, k);
    }
}

/* Where the peaks are that outliers are found by. */
static const char *place_of_peaks(const struct cw_selection *selection, char name[CW_AMOUNT_MAX])
{
    if (!selection->has_device)
        return "devices";
    return selection->device == CW_DEVICE_HOST ? "the host"
                                               : cw_device_format(name, selection->device);
}

static void put_outliers(const struct text *text)
{
    const struct cw_ranks *ranks = text->ranks;
    char peak[CW_AMOUNT_MAX], median[CW_AMOUNT_MAX], device[CW_AMOUNT_MAX];

    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct cw_rank *rank = &ranks->rank[i];

        if (!rank->is_outlier)
            continue;
        fprintf(text->out, "  %srank %s is an outlier%s: its peak of %s on %s ",
                text->has_color ? CW_PAINT_RED : "", rank->label,
                text->has_color ? CW_PAINT_PLAIN : "",
                cw_amount_format(peak, CW_METRIC_LIVE, rank->peak),
                place_of_peaks(&ranks->selection, device));
        if (ranks->median_peak > 0)
            fprintf(text->out, "is %.2f times ", (double)rank->peak / (double)ranks->median_peak);
        fprintf(text->out, "%s median of %s\n", ranks->median_peak > 0 ? "the" : "against a",
                cw_amount_format(median, CW_METRIC_LIVE, ranks->median_peak));
    }
}

static void put_sums(const struct text *text)
{
    struct cw_ranks_sums sums;
    char live[CW_AMOUNT_MAX], peak[CW_AMOUNT_MAX], leaked[CW_AMOUNT_MAX];

    cw_ranks_sums(text->ranks, &sums);
    fprintf(text->out,
            "\nTOTALS of %" PRIu32 " rank%s: %s live, %s of peaks, %s leaked in %" PRIu64
            " block%s; %" PRIu64 " allocation%s, %" PRIu64 " free%s, %" PRIu64 " failed\n",
            text->ranks->count, cw_cli_plural(text->ranks->count),
            cw_amount_format(live, CW_METRIC_LIVE, sums.live),
            cw_amount_format(peak, CW_METRIC_LIVE, sums.peak),
            cw_amount_format(leaked, CW_METRIC_LIVE, sums.summary.leaked_bytes),
            sums.summary.leaked_blocks, cw_cli_plural(sums.summary.leaked_blocks),
            sums.summary.allocs, cw_cli_plural(sums.summary.allocs), sums.summary.frees,
            cw_cli_plural(sums.summary.frees), sums.summary.failed);
}

/* ---- sites ---- */

static void put_site(const struct text *text, uint32_t site)
{
    const struct cw_ranks *ranks = text->ranks;
    const struct cw_match *match = &ranks->match;
    const struct cw_snapshot_site *record = cw_match_record(match, site);
    struct cw_ranks_spread spread = cw_ranks_spread(ranks, site);
    enum cw_metric metric = ranks->selection.metric;
    char min[CW_AMOUNT_MAX], median[CW_AMOUNT_MAX], max[CW_AMOUNT_MAX], mean[CW_AMOUNT_MAX];

    fprintf(text->out, "  %11s %11s %11s %11s  %-8s ", cw_amount_format(min, metric, spread.min),
            cw_amount_format(median, metric, spread.median),
            cw_amount_format(max, metric, spread.max), cw_amount_format(mean, metric, spread.mean),
            ranks->rank[spread.max_rank].label);
    cw_site_put(text->out, cw_match_model(match, site), record,
                ranks->by_device ? record->device : CW_SITE_NONE);
    if (spread.ranks < ranks->count)
        fprintf(text->out, ", in %" PRIu32 " of %" PRIu32 " ranks", spread.ranks, ranks->count);
    fputc('\n', text->out);
    cw_stack_put(text->out, cw_match_model(match, site), record, FRAMES_SHOWN);
}

static void put_sites(const struct text *text)
{
    const struct cw_ranks *ranks = text->ranks;
    enum cw_metric metric = ranks->selection.metric;
    uint32_t shown = ranks->selection.top ? ranks->selection.top : ROWS_SHOWN;

    fprintf(text->out, "\nSITES by %s %s, over the ranks\n  %11s %11s %11s %11s  %s\n",
            cw_metric_name(metric), metric == CW_METRIC_COUNT ? "of allocations" : "bytes", "min",
            "median", "max", "mean", "rank of max");
    for (uint32_t i = 0; i < ranks->rows && i < shown; i++)
        put_site(text, ranks->row[i].site);
    if (ranks->rows > shown)
        fprintf(text->out, "  ... %" PRIu32 " more with less (--top=N)\n", ranks->rows - shown);
}

void cw_ranks_text(const struct cw_ranks *ranks, FILE *out, int has_color)
{
    struct text text = {.ranks = ranks, .out = out, .has_color = has_color};

    put_ranks(&text);
    put_outliers(&text);
    put_sums(&text);
    put_sites(&text);
}
