/* SPDX-License-Identifier: MIT */
/* Comparing ranks. See ranks.h. */
#include "cli/compare/ranks.h"
#include "cli/ui/message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

/* ---- ranks ---- */

static const char *rank_of(const struct cw_model *model)
{
    return model->report->process.rank;
}

/* Of so many digits that it fits. */
static int has_number(const struct cw_model *model)
{
    size_t digits = strspn(rank_of(model), "0123456789");

    return digits > 0 && digits < 20 && rank_of(model)[digits] == '\0';
}

/* Processes without a rank come last, in the order of the operands. */
struct place {
    uint64_t number;
    uint32_t pid, index;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    if (x->pid != y->pid && x->number != UINT64_MAX)
        return x->pid < y->pid ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* How much of the label two processes next to each other need: the rank, the process id, the
 * operand. */
static int is_alike(const struct place *x, const struct place *y)
{
    return x->number != y->number ? 0 : x->pid != y->pid ? 1 : 2;
}

/* No two have the same label. */
static void name_ranks(struct cw_ranks *ranks, const struct place *place)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        int before = i > 0 ? is_alike(&place[i], &place[i - 1]) : 0;
        int after = i + 1 < ranks->count ? is_alike(&place[i], &place[i + 1]) : 0;
        int alike = before > after ? before : after, len = 0;
        char *label = ranks->rank[i].label;

        if (place[i].number != UINT64_MAX)
            len = snprintf(label, CW_RANK_LABEL_MAX, "%s", rank_of(&ranks->model[i]));
        if (len > 0 && alike > 0)
            len +=
                snprintf(label + len, CW_RANK_LABEL_MAX - (size_t)len, ":%" PRIu32, place[i].pid);
        if (len == 0 || alike > 1)
            snprintf(label + len, CW_RANK_LABEL_MAX - (size_t)len, "#%" PRIu32, place[i].index);
    }
}

static int sort_by_rank(struct cw_ranks *ranks)
{
    struct place *place = calloc(ranks->count + 1u, sizeof(*place));
    struct cw_model *sorted = calloc(ranks->count + 1u, sizeof(*sorted));

    for (uint32_t i = 0; place && i < ranks->count; i++)
        place[i] = (struct place){.number = has_number(&ranks->model[i])
                                                ? strtoull(rank_of(&ranks->model[i]), NULL, 10)
                                                : UINT64_MAX,
                                  .pid = ranks->model[i].report->process.pid,
                                  .index = i};
    if (!place || !sorted) {
        free(place);
        free(sorted);
        return -1;
    }
    qsort(place, ranks->count, sizeof(*place), compare_places);
    for (uint32_t i = 0; i < ranks->count; i++)
        sorted[i] = ranks->model[place[i].index];
    free(ranks->model);
    ranks->model = sorted;
    name_ranks(ranks, place);
    free(place);
    return 0;
}

/* ---- spread ---- */

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorts the numbers; the median of an even count is the mean of the middle two. */
static uint64_t median(uint64_t *number, uint32_t count)
{
    qsort(number, count, sizeof(*number), compare_numbers);
    if (count % 2 == 1)
        return number[count / 2];
    return number[count / 2 - 1] + (number[count / 2] - number[count / 2 - 1]) / 2;
}

struct cw_ranks_spread cw_ranks_spread(const struct cw_ranks *ranks, uint32_t site)
{
    struct cw_ranks_spread spread = {.min = UINT64_MAX};

    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct cw_match_cell *cell = cw_match_cell(&ranks->match, site, i);

        ranks->scratch[i] = cell->value;
        spread.sum += cell->value;
        spread.ranks += cell->sites > 0;
        if (cell->value < spread.min)
            spread.min = cell->value;
        if (cell->value > spread.max) {
            spread.max = cell->value;
            spread.max_rank = i;
        }
    }
    spread.mean = spread.sum / ranks->count;
    spread.median = median(ranks->scratch, ranks->count);
    return spread;
}

static uint64_t peak_of(const struct cw_ranks *ranks, const struct cw_report_model *model)
{
    const struct cw_snapshot_device *device = model->snapshot.device;
    uint64_t peak = 0;

    if (ranks->selection.has_device)
        return device[ranks->selection.device].peak_bytes;
    for (uint32_t i = 0; i < CW_DEVICE_HOST; i++)
        peak += device[i].peak_bytes;
    return peak;
}

/* A rank that has not used the device of --device counts for no median. */
static void find_outliers(struct cw_ranks *ranks)
{
    const struct cw_selection *selection = &ranks->selection;
    uint32_t count = 0;

    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct cw_report_model *model = ranks->model[i].report;

        ranks->rank[i].peak = peak_of(ranks, model);
        if (!selection->has_device || cw_report_has_device(model, selection->device))
            ranks->scratch[count++] = ranks->rank[i].peak;
    }
    ranks->median_peak = count > 0 ? median(ranks->scratch, count) : 0;
    for (uint32_t i = 0; i < ranks->count; i++)
        ranks->rank[i].is_outlier = (double)ranks->rank[i].peak * CW_OUTLIER_DEN >
                                    (double)ranks->median_peak * CW_OUTLIER_NUM;
}

/* ---- order ---- */

/* 0, or -1 after a message. */
static int order_rows(struct cw_ranks *ranks)
{
    const struct cw_match *match = &ranks->match;
    uint32_t selected = 0;

    ranks->row = calloc(match->sites + 1u, sizeof(*ranks->row));
    if (!ranks->row) {
        cw_cli_error("out of memory");
        return -1;
    }
    for (uint32_t i = 0; i < match->sites; i++) {
        struct cw_ranked row = {.id = cw_match_record(match, i)->id, .site = i};
        uint64_t sum = 0;

        for (uint32_t m = 0; m < ranks->count; m++) {
            const struct cw_match_cell *cell = cw_match_cell(match, i, m);

            sum += cell->value;
            if (cell->order > row.value)
                row.value = cell->order;
        }
        selected += match->site[i].is_selected;
        if (match->site[i].is_selected && sum > 0)
            ranks->row[ranks->rows++] = row;
    }
    cw_ranked_sort(ranks->row, ranks->rows);
    if (selected > 0 || !cw_select_filters(&ranks->selection))
        return 0;
    cw_cli_error("no call site of any rank matches the selection");
    return -1;
}

int cw_ranks_make(struct cw_ranks *ranks)
{
    struct cw_match_request request = {
        .selection = &ranks->selection, .by_device = ranks->by_device, .how = CW_MATCH_ID};

    ranks->rank = calloc(ranks->count + 1u, sizeof(*ranks->rank));
    ranks->scratch = calloc(ranks->count + 1u, sizeof(*ranks->scratch));
    if (!ranks->rank || !ranks->scratch || sort_by_rank(ranks) != 0) {
        cw_cli_error("out of memory");
        return -1;
    }
    find_outliers(ranks);
    if (cw_match_models(&ranks->match, ranks->model, ranks->count, &request) != 0)
        return -1;
    return order_rows(ranks);
}

void cw_ranks_free(struct cw_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->count; i++)
        cw_model_free(&ranks->model[i]);
    free(ranks->model);
    free(ranks->rank);
    free(ranks->scratch);
    free(ranks->row);
    cw_match_free(&ranks->match);
}

/* ---- totals ---- */

struct cw_ranks_leaks cw_ranks_leaks(const struct cw_ranks *ranks, uint32_t rank, uint32_t device)
{
    const struct cw_report_model *model = ranks->model[rank].report;
    const struct cw_snapshot *snapshot = &model->snapshot;
    struct cw_ranks_leaks leaks = {.sites = 0};

    for (uint32_t i = 0; cw_report_has_leaks(model) && i < snapshot->sites; i++) {
        const struct cw_snapshot_site *site = &snapshot->site[i];

        if (!cw_leak_is_counted(site->leak) || cw_report_site_home(site) != device)
            continue;
        leaks.bytes += cw_leaked_bytes(site);
        leaks.blocks += cw_leaked_blocks(site);
        leaks.sites++;
    }
    return leaks;
}

/* What the summary has of the process, of one device. */
static struct cw_snapshot_summary device_summary(const struct cw_ranks *ranks, uint32_t rank,
                                                 uint32_t index)
{
    const struct cw_snapshot *snapshot = &ranks->model[rank].report->snapshot;
    const struct cw_snapshot_device *device = &snapshot->device[index];
    const struct cw_snapshot_pool_device *pool = &snapshot->pool.device[index];
    struct cw_ranks_leaks leaks = cw_ranks_leaks(ranks, rank, index);

    return (struct cw_snapshot_summary){.leaked_bytes = leaks.bytes,
                                        .leaked_blocks = leaks.blocks,
                                        .leak_sites = leaks.sites,
                                        .allocs = device->sums.allocs,
                                        .frees = device->sums.frees,
                                        .failed = device->sums.failed,
                                        .pool_hits = pool->sums.hits,
                                        .pool_misses = pool->sums.misses};
}

void cw_ranks_sums(const struct cw_ranks *ranks, struct cw_ranks_sums *sums)
{
    const struct cw_selection *selection = &ranks->selection;

    *sums = (struct cw_ranks_sums){.live = 0};
    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct cw_report_model *model = ranks->model[i].report;
        struct cw_snapshot_summary summary = selection->has_device
                                                 ? device_summary(ranks, i, selection->device)
                                                 : cw_report_summary(model);

        for (uint32_t k = 0; k < CW_DEVICES; k++) {
            if (!cw_ranks_has_device(ranks, k))
                continue;
            sums->live += model->snapshot.device[k].sums.live_bytes;
            sums->held += model->snapshot.device[k].sums.live_held;
            sums->peak += model->snapshot.device[k].peak_bytes;
        }
        cw_snapshot_summary_add(&sums->summary, &summary);
    }
}
