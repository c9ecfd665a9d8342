/* SPDX-License-Identifier: MIT */
/* Choosing and ordering sites. See select.h. */
#include "cli/model/select.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/number.h"
#include "base/options/option_values.h"
#include "live/view.h"
#include "base/pattern.h"
#include "cli/ui/flags.h"
#include "cli/ui/message.h"

static const struct {
    const char *name, *help;
} metrics[CW_METRIC_COUNT_OF] = {
#define X(id, name, help) [CW_METRIC_##id] = {name, help},
    CW_METRICS(X)
#undef X
};

const char *cw_metric_name(enum cw_metric metric)
{
    return metrics[metric].name;
}

const char *cw_metric_unit(enum cw_metric metric)
{
    return metric == CW_METRIC_COUNT ? "count" : "bytes";
}

uint64_t cw_metric_of(const struct cw_snapshot_site *site, enum cw_metric metric)
{
    switch (metric) {
    case CW_METRIC_LIVE:
        return cw_leaked_bytes(site);
    case CW_METRIC_PEAK:
        return site->at_peak_bytes;
    case CW_METRIC_TOTAL:
        return site->total_bytes;
    default:
        return site->allocs;
    }
}

/* ---- flags ---- */

enum flag {
    FLAG_DEVICE = CW_SELECT_FLAG,
    FLAG_KIND,
    FLAG_TAG,
    FLAG_SITE,
    FLAG_CLASS,
    FLAG_MIN_AGE,
    FLAG_MIN_SIZE,
    FLAG_SORT,
    FLAG_TOP,
    FLAG_METRIC,
};

static int set_device(struct cw_selection *selection, const char *value)
{
    uint64_t number;

    selection->has_device = 1;
    selection->device = CW_DEVICE_HOST;
    if (strcmp(value, "host") == 0)
        return 0;
    if (cw_count_parse(value, &number) != 0 || number >= CW_DEVICE_HOST)
        return -1;
    selection->device = (uint32_t)number;
    return 0;
}

static int set_site(struct cw_selection *selection, const char *value)
{
    selection->has_site = 1;
    selection->site = (uint32_t)strtoul(value, NULL, 16);
    return strlen(value) == 8 && strspn(value, "0123456789abcdefABCDEF") == 8 ? 0 : -1;
}

static int set_min_age(struct cw_selection *selection, const char *value)
{
    return cw_time_parse(value, &selection->min_age_ns);
}

static int set_min_size(struct cw_selection *selection, const char *value)
{
    struct cw_decimal number;
    const char *end = cw_number_read_decimal(value, &number);

    if (end)
        end = cw_number_read_bytes(end, &number, &selection->min_bytes);
    return end && *end == '\0' ? 0 : -1;
}

static int find_metric(const char *value, enum cw_metric *out)
{
    for (unsigned i = 0; i < CW_METRIC_COUNT_OF; i++) {
        if (strcmp(value, metrics[i].name) == 0) {
            *out = (enum cw_metric)i;
            return 0;
        }
    }
    return -1;
}

static int set_sort(struct cw_selection *selection, const char *value)
{
    selection->has_sort = 1;
    return find_metric(value, &selection->sort);
}

static int set_top(struct cw_selection *selection, const char *value)
{
    uint64_t number;

    if (cw_count_parse(value, &number) != 0 || number == 0 || number > UINT32_MAX)
        return -1;
    selection->top = (uint32_t)number;
    return 0;
}

static int set_metric(struct cw_selection *selection, const char *value)
{
    return find_metric(value, &selection->metric);
}

const struct cw_flag cw_select_flags[CW_SELECT_FLAGS] = {
    {.id = FLAG_DEVICE,
     .name = "device",
     .value = "N",
     .offers = "host",
     .help = "only call sites of device N, or of the \"host\""},
    {.id = FLAG_KIND,
     .name = "kind",
     .value = "PATTERN",
     .help = "only this kind of memory, as in pinned"},
    {.id = FLAG_TAG, .name = "tag", .value = "PATTERN", .help = "only call sites with this tag"},
    {.id = FLAG_SITE, .name = "site", .value = "ID", .help = "only the call site with this id"},
    {.id = FLAG_CLASS,
     .name = "class",
     .value = "PATTERN",
     .help = "only this class of leaks, as in growing"},
    {.id = FLAG_MIN_AGE,
     .name = "min-age",
     .value = "TIME",
     .help = "only call sites with a block at least this old"},
    {.id = FLAG_MIN_SIZE,
     .name = "min-size",
     .value = "SIZE",
     .help = "only call sites with at least this many live bytes"},
    {.id = FLAG_SORT,
     .name = "sort",
     .value = "METRIC",
     .words = "live peak total count",
     .help = "sort by a different metric than the one shown"},
    {.id = FLAG_TOP, .name = "top", .value = "N", .help = "at most N call sites"},
    {.id = FLAG_METRIC,
     .name = "metric",
     .value = "METRIC",
     .words = "*live peak total count",
     .help = "%w: live bytes, bytes at the device's peak, bytes of all "
             "allocations, or their number"},
};

/* For each flag: its setter and the expected form, or the place of its pattern. */
static const struct {
    int (*set)(struct cw_selection *selection, const char *value);
    const char *form;
    size_t pattern;
} setters[CW_SELECT_FLAGS] = {
    [FLAG_DEVICE - CW_SELECT_FLAG] = {set_device, "a device's number from 0 to 63, or host"},
    [FLAG_KIND - CW_SELECT_FLAG] = {.pattern = offsetof(struct cw_selection, kind)},
    [FLAG_TAG - CW_SELECT_FLAG] = {.pattern = offsetof(struct cw_selection, tag)},
    [FLAG_SITE - CW_SELECT_FLAG] = {set_site, "an id of 8 hexadecimal digits, as in 9f3c21aa"},
    [FLAG_CLASS - CW_SELECT_FLAG] = {.pattern = offsetof(struct cw_selection, leak)},
    [FLAG_MIN_AGE - CW_SELECT_FLAG] = {set_min_age, "a time, as in 500ms, 10s or 2m"},
    [FLAG_MIN_SIZE - CW_SELECT_FLAG] = {set_min_size, "a size, as in 512K or 1.5G"},
    [FLAG_SORT - CW_SELECT_FLAG] = {set_sort, ""},
    [FLAG_TOP - CW_SELECT_FLAG] = {set_top, "a number from 1 on"},
    [FLAG_METRIC - CW_SELECT_FLAG] = {set_metric, ""},
};

int cw_select_has_flag(int flag)
{
    return flag >= CW_SELECT_FLAG && flag < CW_SELECT_FLAG + CW_SELECT_FLAGS;
}

int cw_select_set(struct cw_selection *selection, int flag, const char *value)
{
    size_t i = (size_t)(flag - CW_SELECT_FLAG);

    if (!setters[i].set)
        *(const char **)((char *)selection + setters[i].pattern) = value;
    if (!setters[i].set || setters[i].set(selection, value) == 0)
        return 0;
    for (size_t k = 0; k < CW_SELECT_FLAGS; k++)
        if (cw_select_flags[k].id == flag)
            cw_cli_error("--%s: '%s' is not %s", cw_select_flags[k].name, value, setters[i].form);
    return -1;
}

/* ---- sites ---- */

static int passes(const struct cw_report_model *model, const struct cw_snapshot_site *site,
                  const struct cw_selection *selection)
{
    uint64_t end_ns = model->snapshot.duration_ns;

    if (site->is_empty)
        return 0;
    if ((selection->has_device && site->device != selection->device) ||
        (selection->has_site && site->id != selection->site))
        return 0;
    if ((selection->kind && !cw_pattern_matches(selection->kind, cw_kind_name(site->kind))) ||
        (selection->tag &&
         !cw_pattern_matches(selection->tag, cw_report_tag_label(model, site->tag))) ||
        (selection->leak && !cw_pattern_matches(selection->leak, cw_leak_name(site))))
        return 0;
    if (selection->min_age_ns != 0 && (site->oldest_ns == 0 || site->oldest_ns > end_ns ||
                                       end_ns - site->oldest_ns < selection->min_age_ns))
        return 0;
    return cw_metric_of(site, CW_METRIC_LIVE) >= selection->min_bytes;
}

static int compare(const void *a, const void *b)
{
    const struct cw_ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

void cw_ranked_sort(struct cw_ranked *ranked, uint32_t count)
{
    qsort(ranked, count, sizeof(*ranked), compare);
}

int cw_select_filters(const struct cw_selection *selection)
{
    return selection->has_device || selection->kind || selection->tag || selection->leak ||
           selection->has_site || selection->min_age_ns != 0 || selection->min_bytes != 0;
}

uint32_t *cw_select_sites(const struct cw_report_model *model, const struct cw_selection *selection,
                          uint32_t *out_count)
{
    enum cw_metric by = selection->has_sort ? selection->sort : selection->metric;
    const struct cw_snapshot *snapshot = &model->snapshot;
    struct cw_ranked *ranked = malloc((snapshot->sites + 1) * sizeof(*ranked));
    uint32_t *sites = malloc((snapshot->sites + 1) * sizeof(*sites));
    uint32_t count = 0;

    *out_count = 0;
    for (uint32_t i = 0; ranked && i < snapshot->sites; i++) {
        const struct cw_snapshot_site *site = &snapshot->site[i];

        if (passes(model, site, selection))
            ranked[count++] =
                (struct cw_ranked){.value = cw_metric_of(site, by), .id = site->id, .site = i};
    }
    if (!ranked || !sites) {
        cw_cli_error("'%s': out of memory", model->source);
        free(ranked);
        free(sites);
        return NULL;
    }
    cw_ranked_sort(ranked, count);
    if (selection->top != 0 && count > selection->top)
        count = selection->top;
    for (uint32_t i = 0; i < count; i++)
        sites[i] = ranked[i].site;
    free(ranked);
    *out_count = count;
    return sites;
}
