/* SPDX-License-Identifier: MIT */
/* Comparing two processes. See diff.h. */
#include "cli/compare/diff.h"
#include "cli/ui/message.h"

#include <stdlib.h>
#include <stdint.h>

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

struct ranked {
    uint64_t change;
    uint32_t id, site;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->change != y->change)
        return x->change < y->change ? 1 : -1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static uint64_t change_of(const struct cw_diff *diff, uint32_t site)
{
    uint64_t before = cw_match_cell(&diff->match, site, 0)->order;
    uint64_t after = cw_match_cell(&diff->match, site, 1)->order;

    return after > before ? after - before : before - after;
}

/* Counts what is selected, and gathers what of it has changed. */
static void gather(struct cw_diff *diff, struct ranked *ranked)
{
    for (uint32_t i = 0; i < diff->match.sites; i++) {
        enum cw_diff_state state = cw_diff_state(diff, i);

        if (!diff->match.site[i].is_selected)
            continue;
        diff->count[state]++;
        for (uint32_t side = 0; cw_match_record(&diff->match, i)->is_counted && side < 2; side++)
            diff->sum[side] += cw_match_cell(&diff->match, i, side)->value;
        if (state != CW_DIFF_SAME)
            ranked[diff->rows++] = (struct ranked){.change = change_of(diff, i),
                                                   .id = cw_match_record(&diff->match, i)->id,
                                                   .site = i};
    }
}

int cw_diff_make(struct cw_diff *diff, enum cw_match_how how)
{
    struct cw_match_request request = {
        .selection = &diff->selection, .by_device = diff->by_device, .how = how};
    struct ranked *ranked;

    if (cw_match_models(&diff->match, diff->model, 2, &request) != 0)
        return -1;
    ranked = calloc(diff->match.sites + 1u, sizeof(*ranked));
    diff->row = calloc(diff->match.sites + 1u, sizeof(*diff->row));
    if (!ranked || !diff->row) {
        cw_cli_error("out of memory");
        free(ranked);
        return -1;
    }
    gather(diff, ranked);
    qsort(ranked, diff->rows, sizeof(*ranked), compare);
    for (uint32_t i = 0; i < diff->rows; i++)
        diff->row[i] = ranked[i].site;
    free(ranked);
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

static const struct cw_model_device *find_device(const struct cw_model *model, uint32_t ordinal)
{
    for (uint32_t i = 0; i < model->devices; i++)
        if (model->device[i].ordinal == ordinal)
            return &model->device[i];
    return NULL;
}

int cw_diff_device_totals(const struct cw_diff *diff, uint32_t device,
                          struct cw_diff_total total[CW_DIFF_DEVICE_TOTALS])
{
    static const struct cw_model_device none = {.ordinal = 0};
    const struct cw_model_device *found[2];
    int is_there = 0;

    for (unsigned i = 0; i < 2; i++) {
        found[i] = find_device(&diff->model[i], device);
        is_there |= found[i] != NULL;
        if (!found[i])
            found[i] = &none;
    }
#define ROW(name, label, unit, field)                                                              \
    (struct cw_diff_total)                                                                         \
    {                                                                                              \
        name, label, unit,                                                                         \
        {                                                                                          \
            found[0]->field, found[1]->field                                                       \
        }                                                                                          \
    }
    total[0] = ROW("live", "live", CW_METRIC_LIVE, live.bytes);
    total[1] = ROW("held", "held", CW_METRIC_LIVE, held);
    total[2] = ROW("peak", "peak", CW_METRIC_LIVE, peak_bytes);
    total[3] = ROW("allocs", "allocations", CW_METRIC_COUNT, allocs);
#undef ROW
    return is_there;
}

void cw_diff_summary_totals(const struct cw_diff *diff,
                            struct cw_diff_total total[CW_DIFF_SUMMARY_TOTALS])
{
    const struct cw_model_summary *a = &diff->model[0].summary, *b = &diff->model[1].summary;

#define ROW(field, label, unit)                                                                    \
    (struct cw_diff_total)                                                                         \
    {                                                                                              \
#field, label, unit,                                                                       \
        {                                                                                          \
            a->field, b->field                                                                     \
        }                                                                                          \
    }
    total[0] = ROW(leaked_bytes, "leaked", CW_METRIC_LIVE);
    total[1] = ROW(leaked_blocks, "leaked blocks", CW_METRIC_COUNT);
    total[2] = ROW(leak_sites, "leaking sites", CW_METRIC_COUNT);
    total[3] = ROW(peak_bytes, "peak", CW_METRIC_LIVE);
    total[4] = ROW(allocs, "allocations", CW_METRIC_COUNT);
    total[5] = ROW(frees, "frees", CW_METRIC_COUNT);
    total[6] = ROW(failed, "failed", CW_METRIC_COUNT);
    total[7] = ROW(pool_hits, "pool hits", CW_METRIC_COUNT);
    total[8] = ROW(pool_misses, "pool misses", CW_METRIC_COUNT);
#undef ROW
}
