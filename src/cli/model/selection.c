/* SPDX-License-Identifier: MIT */
/*
 * Restricts a model to a selection. See selection.h.
 *
 * Filters the filler's lists in place; builds the lists of classes, peaks and ranks anew, in one
 * block of memory that the model owns.
 */
#include "cli/model/selection.h"

#include <stdlib.h>
#include <string.h>

#include "cli/ui/message.h"
#include "base/sort.h"

struct lists {
    struct cw_report_selection selection;
    uint32_t *next; /* free space for list indices, after the ranks */
    uint8_t *is_of; /* by site, after the indices */
    struct cw_report_rank rank[];
};

/* Each site is in at most one class list, in `apart`, and in at most one peak. */
#define LISTS_OF_A_SITE 3

static struct lists *make_lists(const struct cw_report_model *model, const uint32_t *site,
                                uint32_t sites)
{
    size_t a_site = sizeof(struct cw_report_rank) + LISTS_OF_A_SITE * sizeof(uint32_t);
    struct lists *lists = calloc(1, sizeof(*lists) + sites * a_site + model->snapshot.sites);

    if (!lists)
        return NULL;
    lists->next = (uint32_t *)&lists->rank[sites];
    lists->is_of = (uint8_t *)(lists->next + (size_t)LISTS_OF_A_SITE * sites);
    for (uint32_t i = 0; i < sites; i++)
        lists->is_of[site[i]] = 1;
    return lists;
}

/* ---- the filler's lists ---- */

static int is_of(const struct lists *lists, const struct cw_report_model *model, uint32_t site)
{
    return site < model->snapshot.sites && lists->is_of[site];
}

static void filter_blocks(struct cw_report_model *model, const struct lists *lists)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->blocks; i++)
        if (is_of(lists, model, model->block[i].site))
            model->block[count++] = model->block[i];
    model->blocks = count;
}

static void filter_regrowth(struct cw_report_model *model, const struct lists *lists)
{
    struct cw_snapshot_growth *growth = &model->snapshot.growth;
    uint32_t count = 0;

    for (uint32_t i = 0; i < growth->regrowths; i++)
        if (is_of(lists, model, growth->regrowth[i].site))
            growth->regrowth[count++] = growth->regrowth[i];
    growth->regrowths = count;
}

static void filter_suspects(struct cw_report_model *model, const struct lists *lists)
{
    struct cw_snapshot_growth *growth = &model->snapshot.growth;
    uint32_t count = 0;

    for (uint32_t i = 0; i < growth->suspects; i++)
        if (is_of(lists, model, growth->suspect[i]) &&
            cw_snapshot_growth_row(&model->snapshot, growth->suspect[i]))
            growth->suspect[count++] = growth->suspect[i];
    growth->suspects = count;
}

/* The snapshot's list, if any, has the same order. */
static void filter_old(struct cw_report_model *model, const struct lists *lists)
{
    struct cw_snapshot_list list = {.site = model->snapshot.old.site};

    for (uint32_t i = 0; i < model->olds; i++) {
        struct cw_report_old old = model->old[i];

        if (!is_of(lists, model, old.site))
            continue;
        if (list.site)
            list.site[list.count] = old.site;
        model->old[list.count++] = old;
        list.bytes += old.bytes;
        list.blocks += old.blocks;
    }
    model->olds = list.count;
    model->snapshot.old = list;
}

/* ---- rebuilt lists ---- */

#define CLASS(leak) (1u << (leak))
#define LEAKS       (CLASS(CW_LEAK_LOST) | CLASS(CW_LEAK_GROWING) | CLASS(CW_LEAK_CONTEXT))
#define APART       (CLASS(CW_LEAK_SUPPRESSED) | CLASS(CW_LEAK_HANDLE))

static void list_classes(const struct cw_report_model *model, struct lists *lists, unsigned classes,
                         struct cw_snapshot_list *list)
{
    const struct cw_report_selection *selection = &lists->selection;

    *list = (struct cw_snapshot_list){.site = lists->next};
    for (uint32_t i = 0; i < selection->sites; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[selection->site[i]];

        if (!(CLASS(site->leak) & classes))
            continue;
        list->site[list->count++] = selection->site[i];
        list->bytes += cw_leaked_bytes(site);
        list->blocks += cw_leaked_blocks(site);
    }
    lists->next += list->count;
}

static int is_larger_at_peak(const void *a, const void *b, const void *arg)
{
    const struct cw_snapshot_site *site = arg;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

    if (site[i].at_peak_bytes != site[k].at_peak_bytes)
        return site[i].at_peak_bytes > site[k].at_peak_bytes;
    return i < k;
}

static void list_peak(struct cw_report_model *model, struct lists *lists, uint32_t device)
{
    const struct cw_report_selection *selection = &lists->selection;
    const struct cw_snapshot_site *site = model->snapshot.site;
    struct cw_report_peak peak = {.site = lists->next};

    for (uint32_t i = 0; i < selection->sites; i++) {
        uint32_t index = selection->site[i];

        if (site[index].at_peak_bytes > 0 && cw_report_site_home(&site[index]) == device)
            lists->next[peak.count++] = index;
    }
    cw_sort(lists->next, peak.count, sizeof(*lists->next), is_larger_at_peak, site);
    lists->next += peak.count;
    peak.shown = peak.count < CW_PEAK_SITES || selection->shows_all ? peak.count : CW_PEAK_SITES;
    for (uint32_t i = peak.shown; i < peak.count; i++)
        peak.rest += site[peak.site[i]].at_peak_bytes;
    model->peak[device] = peak;
}

static void list_ranks(const struct cw_report_model *model, struct lists *lists,
                       enum cw_metric metric)
{
    struct cw_report_selection *selection = &lists->selection;

    selection->metric = cw_metric_name(metric);
    selection->is_count = metric == CW_METRIC_COUNT;
    selection->rank = lists->rank;
    for (uint32_t i = 0; i < selection->sites; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[selection->site[i]];

        if (site->allocs > 0)
            lists->rank[selection->ranks++] =
                (struct cw_report_rank){selection->site[i], cw_metric_of(site, metric)};
    }
}

static void list_anew(struct cw_report_model *model, struct lists *lists, enum cw_metric metric)
{
    struct cw_snapshot *snapshot = &model->snapshot;

    list_classes(model, lists, LEAKS, &snapshot->leaks);
    list_classes(model, lists, CLASS(CW_LEAK_LIBRARY), &snapshot->library);
    list_classes(model, lists, CLASS(CW_LEAK_CACHE), &snapshot->caches);
    list_classes(model, lists, CLASS(CW_LEAK_IMPORT) | CLASS(CW_LEAK_IPC), &snapshot->imports);
    list_classes(model, lists, CLASS(CW_LEAK_SUPPRESSED), &snapshot->suppressed);
    list_classes(model, lists, APART, &lists->selection.apart);
    for (uint32_t i = 0; i < CW_DEVICES; i++)
        if (cw_report_has_device(model, i))
            list_peak(model, lists, i);
    if (metric != CW_METRIC_LIVE)
        list_ranks(model, lists, metric);
}

/* ---- both ---- */

int cw_selection_apply(struct cw_model *model, const struct cw_selection *selection,
                       const uint32_t *site, uint32_t sites, enum cw_selection_form form)
{
    struct cw_report_model *report = model->report;
    struct lists *lists = make_lists(report, site, sites);

    if (!lists) {
        cw_cli_error("'%s': out of memory", report->source);
        return -1;
    }
    model->lists = lists;
    lists->selection = (struct cw_report_selection){
        .site = site, .sites = sites, .of = report->sites_of, .shows_all = selection->top != 0};
    filter_blocks(report, lists);
    filter_regrowth(report, lists);
    if (form == CW_SELECTION_TEXT) {
        filter_suspects(report, lists);
        filter_old(report, lists);
        list_anew(report, lists, selection->metric);
    }
    if (form == CW_SELECTION_JSON || sites != report->sites_of || selection->top != 0 ||
        selection->has_sort || selection->metric != CW_METRIC_LIVE)
        report->selection = &lists->selection;
    return 0;
}

void cw_selection_free(struct cw_model *model)
{
    free(model->lists);
    model->lists = NULL;
}
