/* SPDX-License-Identifier: MIT */
/*
 * Matching call sites. See match.h.
 *
 * The sites of all models become entries sorted by a hash of their key; each run of equal entries
 * is a site of the match. Sites that only one of two models has are then matched again, by the
 * names of their functions.
 */
#include "cli/compare/match.h"

#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#include "base/hash.h"
#include "live/view.h"
#include "cli/compare/match_name.h"
#include "cli/ui/message.h"

struct entry {
    uint64_t key;
    uint32_t model; /* second pass: which of the two has the site */
    uint32_t site;  /* second pass: in the match */
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->model != y->model)
        return x->model < y->model ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static uint64_t key_of(const struct cw_report_model *model, const struct cw_snapshot_site *site,
                       uint64_t place, int by_device)
{
    uint64_t key = cw_hash_mix(CW_MATCH_SEED, place);

    key = cw_match_mix_text(key, cw_kind_name(site->kind));
    key = cw_match_mix_text(key, site->api);
    key = cw_match_mix_text(key, cw_report_tag_label(model, site->tag));
    return by_device ? cw_hash_mix(key, site->device) : key;
}

/* ---- by id ---- */

/* The sites of one model that count: --device limits the sums, the other flags the rows. */
static int add_entries(struct entry *entry, uint32_t *count, const struct cw_report_model *model,
                       uint32_t which, const struct cw_match_request *request)
{
    struct cw_selection selection = {.has_device = request->selection->has_device,
                                     .device = request->selection->device};
    uint32_t sites;
    uint32_t *site = cw_select_sites(model, &selection, &sites);

    if (!site)
        return -1;
    for (uint32_t i = 0; i < sites; i++) {
        const struct cw_snapshot_site *record = &model->snapshot.site[site[i]];

        entry[(*count)++] =
            (struct entry){.key = key_of(model, record, record->id, request->by_device),
                           .model = which,
                           .site = site[i]};
    }
    free(site);
    return 0;
}

static void add_to_cell(struct cw_match *match, const struct entry *entry, uint32_t row,
                        const struct cw_selection *selection)
{
    const struct cw_snapshot_site *site =
        &match->model[entry->model].report->snapshot.site[entry->site];
    struct cw_match_cell *cell = &match->cell[(size_t)row * match->models + entry->model];
    enum cw_metric order = selection->has_sort ? selection->sort : selection->metric;

    cell->value += cw_metric_of(site, selection->metric);
    cell->order += cw_metric_of(site, order);
    cell->sites++;
    match->site[row].model = entry->model;
    match->site[row].site = entry->site;
}

static uint32_t count_runs(const struct entry *entry, uint32_t count)
{
    uint32_t runs = 0;

    for (uint32_t i = 0; i < count; i++)
        runs += i == 0 || entry[i].key != entry[i - 1].key;
    return runs;
}

/* `row` of a site of a model, for the marks. */
static int make_rows(struct cw_match *match, const struct entry *entry, uint32_t count,
                     const struct cw_selection *selection, uint32_t *const *row)
{
    uint32_t runs = count_runs(entry, count);

    match->site = calloc(runs + 1u, sizeof(*match->site));
    match->cell = calloc((size_t)runs * match->models + 1, sizeof(*match->cell));
    if (!match->site || !match->cell)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || entry[i].key != entry[i - 1].key)
            match->sites++;
        add_to_cell(match, &entry[i], match->sites - 1, selection);
        row[entry[i].model][entry[i].site] = match->sites - 1;
    }
    return 0;
}

static int mark_selected(struct cw_match *match, const struct cw_selection *selection,
                         uint32_t *const *row)
{
    struct cw_selection all = *selection;

    all.top = 0;
    for (uint32_t m = 0; m < match->models; m++) {
        uint32_t sites;
        uint32_t *site = cw_select_sites(match->model[m].report, &all, &sites);

        if (!site)
            return -1;
        for (uint32_t i = 0; i < sites; i++)
            match->site[row[m][site[i]]].is_selected = 1;
        free(site);
    }
    return 0;
}

static int match_by_id(struct cw_match *match, const struct cw_match_request *request,
                       struct entry *entry, uint32_t *const *row)
{
    uint32_t count = 0;

    for (uint32_t m = 0; m < match->models; m++)
        if (add_entries(entry, &count, match->model[m].report, m, request) != 0)
            return -1;
    qsort(entry, count, sizeof(*entry), compare);
    if (make_rows(match, entry, count, request->selection, row) != 0) {
        cw_cli_error("out of memory");
        return -1;
    }
    return mark_selected(match, request->selection, row);
}

/* ---- by name ---- */

static void note_rebuilt(struct cw_match *match, unsigned which, uint32_t module)
{
    const char *name = cw_report_module_name(match->model[which].report, module);

    for (unsigned i = 0; i < match->rebuilt_count; i++)
        if (strcmp(match->rebuilt[i], name) == 0)
            return;
    if (match->rebuilt_count < CW_MATCH_REBUILT_MAX && *name)
        match->rebuilt[match->rebuilt_count++] = name;
}

/* The only model that has the site; 2: both have it. */
static uint32_t only_model(const struct cw_match *match, uint32_t site)
{
    if (cw_match_cell(match, site, 0)->sites == 0)
        return 1;
    return cw_match_cell(match, site, 1)->sites == 0 ? 0 : 2;
}

static uint32_t add_left_over(const struct cw_match *match, const struct cw_match_builds *builds,
                              const struct cw_match_request *request, struct entry *entry)
{
    uint32_t count = 0, module;

    for (uint32_t i = 0; i < match->sites; i++) {
        const struct cw_snapshot_site *site = cw_match_record(match, i);
        uint32_t which = only_model(match, i);
        uint64_t name;

        if (which == 2)
            continue;
        name = cw_match_name_hash(builds, which, site, request->how, &module);
        if (name != 0)
            entry[count++] = (struct entry){
                .key = key_of(cw_match_model(match, i), site, name, request->by_device),
                .model = which,
                .site = i};
    }
    return count;
}

/* Merges the second site into the first. */
static void join(struct cw_match *match, uint32_t to, uint32_t from)
{
    for (uint32_t m = 0; m < match->models; m++) {
        struct cw_match_cell *target = &match->cell[(size_t)to * match->models + m];
        struct cw_match_cell *source = &match->cell[(size_t)from * match->models + m];

        target->value += source->value;
        target->order += source->order;
        target->sites += source->sites;
        *source = (struct cw_match_cell){.sites = 0};
    }
    if (match->site[from].model >= match->site[to].model) {
        match->site[to].model = match->site[from].model;
        match->site[to].site = match->site[from].site;
    }
    match->site[to].is_selected |= match->site[from].is_selected;
}

/* Entries with the same name; the first model's come first. */
static void join_run(struct cw_match *match, const struct cw_match_builds *builds,
                     const struct cw_match_request *request, const struct entry *entry,
                     uint32_t count)
{
    uint32_t row = entry[0].site, module;

    if (entry[0].model == entry[count - 1].model)
        return; /* in one model only */
    cw_match_name_hash(builds, 0, cw_match_record(match, row), request->how, &module);
    note_rebuilt(match, 0, module);
    for (uint32_t i = 1; i < count; i++)
        join(match, row, entry[i].site);
    match->site[row].is_by_name = 1;
    match->by_name++;
}

static void drop_joined(struct cw_match *match)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < match->sites; i++) {
        if (cw_match_cell(match, i, 0)->sites + cw_match_cell(match, i, 1)->sites == 0)
            continue;
        match->site[kept] = match->site[i];
        memmove(&match->cell[(size_t)kept * 2], &match->cell[(size_t)i * 2],
                2 * sizeof(*match->cell));
        kept++;
    }
    match->sites = kept;
}

static int match_by_name(struct cw_match *match, const struct cw_match_request *request,
                         struct entry *entry)
{
    struct cw_match_builds builds;
    uint32_t count, begin = 0;
    int rc = cw_match_builds_find(&builds, match->model);

    if (rc != 0)
        cw_cli_error("out of memory");
    count = rc == 0 ? add_left_over(match, &builds, request, entry) : 0;
    qsort(entry, count, sizeof(*entry), compare);
    for (uint32_t i = 1; i <= count; i++) {
        if (i < count && entry[i].key == entry[begin].key)
            continue;
        join_run(match, &builds, request, &entry[begin], i - begin);
        begin = i;
    }
    if (match->by_name > 0)
        drop_joined(match);
    cw_match_builds_free(&builds);
    return rc;
}

/* ---- both ---- */

int cw_match_models(struct cw_match *match, const struct cw_model *model, uint32_t models,
                    const struct cw_match_request *request)
{
    uint32_t **row = calloc(models + 1u, sizeof(*row));
    struct entry *entry;
    size_t count = 0;
    int rc = -1, has_memory = row != NULL;

    *match = (struct cw_match){.model = model, .models = models};
    for (uint32_t m = 0; m < models; m++)
        count += model[m].report->snapshot.sites;
    entry = calloc(count + 1, sizeof(*entry));
    for (uint32_t m = 0; has_memory && m < models; m++)
        has_memory = (row[m] = calloc(model[m].report->snapshot.sites + 1u, sizeof(**row))) != NULL;
    if (!entry || !has_memory)
        cw_cli_error("out of memory");
    else
        rc = match_by_id(match, request, entry, row);
    if (rc == 0 && request->how != CW_MATCH_ID && models == 2)
        rc = match_by_name(match, request, entry);
    for (uint32_t m = 0; row && m < models; m++)
        free(row[m]);
    free(row);
    free(entry);
    return rc;
}

void cw_match_free(struct cw_match *match)
{
    free(match->site);
    free(match->cell);
    *match = (struct cw_match){.sites = 0};
}
