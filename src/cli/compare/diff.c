/* SPDX-License-Identifier: MIT */
/* Comparing two processes. See diff.h. */
#include "cli/compare/diff.h"
#include "cli/ui/message.h"

#include <stdlib.h>
#include <stdint.h>
#include <string.h>

enum cw_diff_state cw_diff_state(const struct cw_diff *diff, uint32_t site)
{
    const struct cw_match_cell *before = cw_match_cell(&diff->match, site, 0);
    const struct cw_match_cell *after = cw_match_cell(&diff->match, site, 1);

    if (before->value == after->value)
        return CW_DIFF_SAME;
    if (before->sites == 0)
        return CW_DIFF_NEW;
    if (after->sites == 0)
        return CW_DIFF_GONE;
    return after->value > before->value ? CW_DIFF_GREW : CW_DIFF_SHRANK;
}

const char *cw_diff_state_name(enum cw_diff_state state)
{
    static const char *const names[CW_DIFF_STATES] = {
        [CW_DIFF_SAME] = "unchanged", [CW_DIFF_GREW] = "grew", [CW_DIFF_SHRANK] = "shrank",
        [CW_DIFF_NEW] = "new",        [CW_DIFF_GONE] = "gone",
    };

    return names[state];
}

/* ---- order ---- */

static uint64_t change_of(const struct cw_diff *diff, uint32_t site)
{
    uint64_t before = cw_match_cell(&diff->match, site, 0)->order;
    uint64_t after = cw_match_cell(&diff->match, site, 1)->order;

    return after > before ? after - before : before - after;
}

/* Counts the selected sites and collects those that changed. */
static void gather(struct cw_diff *diff)
{
    const struct cw_match *match = &diff->match;

    for (uint32_t i = 0; i < match->sites; i++) {
        const struct cw_snapshot_site *site = cw_match_record(match, i);
        enum cw_diff_state state = cw_diff_state(diff, i);
        int is_counted = cw_report_site_home(site) != CW_SITE_NONE;

        if (!match->site[i].is_selected)
            continue;
        diff->count[state]++;
        for (uint32_t side = 0; is_counted && side < 2; side++)
            diff->sum[side] += cw_match_cell(match, i, side)->value;
        if (state != CW_DIFF_SAME)
            diff->row[diff->rows++] = (struct cw_ranked){change_of(diff, i), site->id, i};
    }
    cw_ranked_sort(diff->row, diff->rows);
}

int cw_diff_make(struct cw_diff *diff, enum cw_match_how how)
{
    struct cw_match_request request = {
        .selection = &diff->selection, .by_device = diff->by_device, .how = how};

    if (cw_match_models(&diff->match, diff->model, 2, &request) != 0)
        return -1;
    diff->row = calloc(diff->match.sites + 1u, sizeof(*diff->row));
    if (!diff->row) {
        cw_cli_error("out of memory");
        return -1;
    }
    gather(diff);
    return 0;
}

void cw_diff_free(struct cw_diff *diff)
{
    cw_match_free(&diff->match);
    free(diff->row);
    cw_model_free(&diff->model[0]);
    cw_model_free(&diff->model[1]);
}

/* ---- totals ---- */

int cw_diff_device_totals(const struct cw_diff *diff, uint32_t device,
                          struct cw_diff_total total[CW_DIFF_DEVICE_TOTALS])
{
    const struct cw_report_model *before = diff->model[0].report, *after = diff->model[1].report;
    const struct cw_snapshot_device *a = &before->snapshot.device[device];
    const struct cw_snapshot_device *b = &after->snapshot.device[device];
    const struct cw_diff_total totals[CW_DIFF_DEVICE_TOTALS] = {
        {"live", "live", CW_METRIC_LIVE, {a->sums.live_bytes, b->sums.live_bytes}},
        {"held", "held", CW_METRIC_LIVE, {a->sums.live_held, b->sums.live_held}},
        {"peak", "peak", CW_METRIC_LIVE, {a->peak_bytes, b->peak_bytes}},
        {"allocs", "allocations", CW_METRIC_COUNT, {a->sums.allocs, b->sums.allocs}},
    };

    memcpy(total, totals, sizeof(totals));
    return cw_report_has_device(before, device) || cw_report_has_device(after, device);
}

void cw_diff_summary_totals(const struct cw_diff *diff,
                            struct cw_diff_total total[CW_DIFF_SUMMARY_TOTALS])
{
    const struct cw_snapshot_summary before = cw_report_summary(diff->model[0].report);
    const struct cw_snapshot_summary after = cw_report_summary(diff->model[1].report);
    const struct cw_snapshot_summary *a = &before, *b = &after;
    const struct cw_diff_total totals[CW_DIFF_SUMMARY_TOTALS] = {
        {"leaked_bytes", "leaked", CW_METRIC_LIVE, {a->leaked_bytes, b->leaked_bytes}},
        {"leaked_blocks", "leaked blocks", CW_METRIC_COUNT, {a->leaked_blocks, b->leaked_blocks}},
        {"leak_sites", "leaking sites", CW_METRIC_COUNT, {a->leak_sites, b->leak_sites}},
        {"peak_bytes", "peak", CW_METRIC_LIVE, {a->peak_bytes, b->peak_bytes}},
        {"allocs", "allocations", CW_METRIC_COUNT, {a->allocs, b->allocs}},
        {"frees", "frees", CW_METRIC_COUNT, {a->frees, b->frees}},
        {"failed", "failed", CW_METRIC_COUNT, {a->failed, b->failed}},
        {"pool_hits", "pool hits", CW_METRIC_COUNT, {a->pool_hits, b->pool_hits}},
        {"pool_misses", "pool misses", CW_METRIC_COUNT, {a->pool_misses, b->pool_misses}},
    };

    memcpy(total, totals, sizeof(totals));
}
