/* SPDX-License-Identifier: MIT */
/*
 * The text report, made from the model: of a report in JSON, and of some of the call sites. It
 * reads as the library's own does, with the sections that a model is enough for; the line for
 * scripts comes last, and its sums are those of the whole process.
 */
#include "cli/form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/out.h"
#include "cli/cli.h"
#include "cli/form_whole.h"
#include "cli/say.h"
#include "live/view.h"
#include "report/trend.h"

#define LEAKS_MAX   20 /* unless --top says otherwise */
#define APART_MAX   10
#define PEAK_MAX    10
#define SITES_MAX   20
#define COMMAND_MAX 64

/* ---- the head ---- */

static void put_end(const struct cw_say *to)
{
    const struct cw_model_process *process = &to->model->process;

    if (strcmp(process->end, "died") == 0)
        fputs("died: no orderly end was recorded", to->out);
    else if (strcmp(process->end, "running") == 0)
        fputs(to->model->is_alive ? "still running" : "was still running", to->out);
    else
        cw_say_clean(to, process->end[0] ? process->end : "no exit seen", COMMAND_MAX);
    if (process->has_exit_code)
        fprintf(to->out, " %d", process->exit_code);
}

static uint32_t count_devices(const struct cw_model *model)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->devices; i++)
        count += model->device[i].ordinal != CW_MODEL_HOST;
    return count;
}

static void put_head(const struct cw_say *to)
{
    const struct cw_model_process *process = &to->model->process;

    cw_say_begin(to);
    fputs("cuwarden ", to->out);
    cw_say_clean(to, process->version, COMMAND_MAX);
    fputs("  ", to->out);
    cw_say_clean(to, process->command[0] ? process->command : process->exe, COMMAND_MAX);
    fputs("  (", to->out);
    cw_say_count(to, count_devices(to->model), "device");
    fputs(", ", to->out);
    cw_say_time(to, process->duration_ns);
    fputs(", ", to->out);
    put_end(to);
    fputs(")\n", to->out);
}

static void put_diagnostics(const struct cw_say *to)
{
    for (uint32_t i = 0; i < to->model->diagnostics; i++) {
        cw_say_begin(to);
        fputs("accounting is incomplete: ", to->out);
        cw_say_clean(to, to->model->diagnostic[i], 256);
        fputc('\n', to->out);
    }
}

static void put_selected(const struct cw_say *to, uint32_t sites)
{
    if (sites == to->model->sites_of)
        return;
    cw_say_line(to,
                "selected: %" PRIu32 " of %" PRIu32
                " call sites; DEVICES, POOL, PRESSURE, errors and SUMMARY are of the whole process",
                sites, to->model->sites_of);
}

#define CELL 64

/* ---- call sites ---- */

static struct cw_model_amount left_of(const struct cw_model_site *site)
{
    return (struct cw_model_amount){site->live.count + site->reclaimed.count,
                                    site->live.bytes + site->reclaimed.bytes};
}

/* "+37.4 MiB/min": by the longest time in which it is not too small to be read. */
static void put_slope(const struct cw_say *to, double per_second)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"day", 86400}};
    unsigned at = to->model->process.duration_ns >= UINT64_C(60000000000) ? 1 : 0;

    while (at + 1 < CW_ARRAY_LEN(units) && per_second * units[at].seconds < 1024)
        at++;
    fputc('+', to->out);
    cw_say_size(to, cw_trend_to_bytes(per_second * units[at].seconds));
    fprintf(to->out, "/%s", units[at].name);
}

static void put_tag(const struct cw_say *to, const struct cw_model_site *site)
{
    if (!site->tag[0])
        return;
    fputs("  tag: ", to->out);
    cw_say_clean(to, site->tag, CW_SAY_NAME_MAX);
}

/* "cudaMalloc, device 0" */
static void put_call(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_clean(to, site->api, CW_SAY_NAME_MAX);
    fputs(", ", to->out);
    cw_say_device(to, site->device);
}

static void put_times(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_begin(to);
    fprintf(to->out, "    site %08" PRIx32 "  first ", site->id);
    cw_say_time(to, site->first_ns);
    fputs("  last ", to->out);
    cw_say_time(to, site->last_ns);
    if (site->oldest_ns != 0) {
        fputs("  oldest ", to->out);
        cw_say_time(to, to->model->process.duration_ns - site->oldest_ns);
        fputs(" ago", to->out);
    }
    put_tag(to, site);
    fputc('\n', to->out);
}

static const char *kind_label(const char *name)
{
    for (unsigned i = 0; i < CW_KIND_COUNT; i++)
        if (strcmp(name, cw_kind_name(i)) == 0)
            return cw_kind_label(i);
    return name; /* of a later version */
}

static void put_leak(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_begin(to);
    cw_say_amount(to, left_of(site));
    fputs("  ", to->out);
    cw_say_clean(to, site->leak, CW_SAY_NAME_MAX);
    if (strcmp(site->leak, "growing") == 0) {
        fputc(' ', to->out);
        put_slope(to, site->growth.slope_bytes_per_s);
    }
    fputs("  ", to->out);
    put_call(to, site);
    fputs(", ", to->out);
    cw_say_clean(to, kind_label(site->kind), CW_SAY_NAME_MAX);
    fputc('\n', to->out);
    put_times(to, site);
    cw_say_stack(to, site);
}

/* The sites of a list that are of one sort, in the selection's order. */
struct listing {
    uint32_t *site;
    uint32_t count;
    struct cw_model_amount sum;
};

typedef int (*sort_fn)(const struct cw_model_site *site);

static int is_leak(const struct cw_model_site *site)
{
    return site->is_leak;
}

static int is_apart(const struct cw_model_site *site)
{
    return site->leak[0] && !site->is_leak;
}

static int is_suspect(const struct cw_model_site *site)
{
    return site->growth.is_suspect;
}

/* Others were called to free, or in vain. */
static int has_allocated(const struct cw_model_site *site)
{
    return site->total.count > 0;
}

/* listing->site has room for all. */
static void list(const struct cw_form_request *request, sort_fn is_wanted, struct listing *out)
{
    out->count = 0;
    out->sum = (struct cw_model_amount){0, 0};
    for (uint32_t i = 0; i < request->sites; i++) {
        const struct cw_model_site *site = &request->model->site[request->site[i]];
        struct cw_model_amount left = left_of(site);

        if (!is_wanted(site))
            continue;
        out->site[out->count++] = request->site[i];
        out->sum.count += left.count;
        out->sum.bytes += left.bytes;
    }
}

static uint32_t shown_of(const struct cw_form_request *request, const struct listing *listing,
                         uint32_t max)
{
    return request->selection->top == 0 && listing->count > max ? max : listing->count;
}

static void put_rest(const struct cw_say *to, const struct listing *listing, uint32_t shown)
{
    if (listing->count == shown)
        return;
    cw_say_begin(to);
    fputs("... ", to->out);
    cw_say_count(to, listing->count - shown, "more site");
    fputs(" (--top=N shows N)\n", to->out);
}

static void put_leaks(const struct cw_say *to, const struct cw_form_request *request,
                      struct listing *listing)
{
    uint32_t shown;

    list(request, is_leak, listing);
    shown = shown_of(request, listing, LEAKS_MAX);
    cw_say_heading(to, "LEAKS  ");
    if (listing->count == 0) {
        fputs("none\n", to->out);
        return;
    }
    cw_say_amount(to, listing->sum);
    fputs(" from ", to->out);
    cw_say_count(to, listing->count, "call site");
    fputc('\n', to->out);
    for (uint32_t i = 0; i < shown; i++)
        put_leak(to, &to->model->site[listing->site[i]]);
    put_rest(to, listing, shown);
}

static void put_apart(const struct cw_say *to, const struct cw_form_request *request,
                      struct listing *listing)
{
    uint32_t shown;

    list(request, is_apart, listing);
    if (listing->count == 0)
        return;
    shown = shown_of(request, listing, APART_MAX);
    cw_say_heading(to, "APART  ");
    cw_say_amount(to, listing->sum);
    fputs(", not counted as leaked\n", to->out);
    for (uint32_t i = 0; i < shown; i++) {
        const struct cw_model_site *site = &to->model->site[listing->site[i]];

        cw_say_begin(to);
        fputs("  ", to->out);
        cw_say_amount(to, left_of(site));
        fputs("  ", to->out);
        cw_say_clean(to, site->leak, CW_SAY_NAME_MAX);
        fprintf(to->out, "  site %08" PRIx32 "  ", site->id);
        put_call(to, site);
        fputs("  ", to->out);
        cw_say_innermost(to, site);
        put_tag(to, site);
        fputc('\n', to->out);
    }
    put_rest(to, listing, shown);
}

/* ---- by another measure ---- */

static void format_value(const struct cw_model_site *site, enum cw_metric metric, char *cell)
{
    uint64_t value = cw_metric_of(site, metric);

    if (metric == CW_METRIC_COUNT)
        snprintf(cell, CELL, "%" PRIu64, value);
    else
        cw_format_size(cell, CELL, value);
}

static void put_share(const struct cw_say *to, uint64_t part, uint64_t whole)
{
    double share = whole > 0 ? 100.0 * (double)part / (double)whole : 0;

    fprintf(to->out, "  %5.1f%%", share);
}

static void put_ranked(const struct cw_say *to, const struct cw_model_site *site,
                       enum cw_metric metric, uint64_t whole)
{
    char cell[CELL];

    format_value(site, metric, cell);
    cw_say_begin(to);
    put_share(to, cw_metric_of(site, metric), whole);
    fprintf(to->out, "  %10s  site %08" PRIx32 "  ", cell, site->id);
    put_call(to, site);
    fputs("  ", to->out);
    cw_say_innermost(to, site);
    put_tag(to, site);
    fputc('\n', to->out);
}

/* By what LEAKS does not show; the order is the selection's. */
static void put_sites(const struct cw_say *to, const struct cw_form_request *request,
                      struct listing *listing)
{
    enum cw_metric metric = request->selection->metric;
    uint64_t whole = 0;
    uint32_t shown;

    if (metric == CW_METRIC_LIVE)
        return;
    list(request, has_allocated, listing);
    shown = shown_of(request, listing, SITES_MAX);
    for (uint32_t i = 0; i < listing->count; i++)
        whole += cw_metric_of(&to->model->site[listing->site[i]], metric);
    cw_say_heading(to, "CALL SITES  ");
    fprintf(to->out, "by %s\n", cw_metric_name(metric));
    for (uint32_t i = 0; i < shown; i++)
        put_ranked(to, &to->model->site[listing->site[i]], metric, whole);
    put_rest(to, listing, shown);
}

/* ---- PEAK ---- */

static const struct cw_model *ordered; /* the model whose sites are being sorted */

static int compare_peak(const void *a, const void *b)
{
    const struct cw_model_site *x = &ordered->site[*(const uint32_t *)a];
    const struct cw_model_site *y = &ordered->site[*(const uint32_t *)b];

    if (x->at_peak.bytes != y->at_peak.bytes)
        return x->at_peak.bytes < y->at_peak.bytes ? 1 : -1;
    return x < y ? -1 : 1;
}

static void list_peak(const struct cw_form_request *request, uint32_t device, struct listing *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < request->sites; i++) {
        const struct cw_model_site *site = &request->model->site[request->site[i]];

        if (site->device == device && site->at_peak.bytes > 0)
            out->site[out->count++] = request->site[i];
    }
    ordered = request->model;
    qsort(out->site, out->count, sizeof(*out->site), compare_peak);
}

static void put_peak(const struct cw_say *to, const struct cw_form_request *request,
                     const struct cw_model_device *device, struct listing *listing)
{
    uint32_t shown;

    list_peak(request, device->ordinal, listing);
    if (device->peak_bytes == 0 || listing->count == 0)
        return;
    shown = shown_of(request, listing, PEAK_MAX);
    cw_say_heading(to, "PEAK  ");
    cw_say_device(to, device->ordinal);
    fputs(": ", to->out);
    cw_say_size(to, device->peak_bytes);
    fputs(" at ", to->out);
    cw_say_time(to, device->peak_ns);
    fputc('\n', to->out);
    for (uint32_t i = 0; i < shown; i++)
        put_ranked(to, &to->model->site[listing->site[i]], CW_METRIC_PEAK, device->peak_bytes);
    put_rest(to, listing, shown);
}

/* ---- GROWTH ---- */

static void put_suspect(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_begin(to);
    fputs("  ", to->out);
    put_slope(to, site->growth.slope_bytes_per_s);
    fprintf(to->out, "  R2 %.2f, %" PRIu32 " samples  site %08" PRIx32 "  ", site->growth.r2,
            site->growth.samples, site->id);
    put_call(to, site);
    fputs("  ", to->out);
    cw_say_innermost(to, site);
    fputc('\n', to->out);
}

static void put_step(const struct cw_say *to, const struct cw_model_step *step)
{
    cw_say_begin(to);
    fputs("  whole process: +", to->out);
    cw_say_size(to, cw_trend_to_bytes(step->slope_bytes));
    fputs(" per step of \"", to->out);
    cw_say_clean(to, step->name, CW_SAY_NAME_MAX);
    fprintf(to->out, "\"  R2 %.2f, %" PRIu64 " steps  ", step->r2, step->steps);
    cw_say_size(to, step->first_bytes);
    fputs(" -> ", to->out);
    cw_say_size(to, step->last_bytes);
    fputc('\n', to->out);
}

static void put_growth(const struct cw_say *to, const struct cw_form_request *request,
                       struct listing *listing)
{
    const struct cw_model *model = to->model;
    uint32_t shown, risings = 0;

    list(request, is_suspect, listing);
    shown = shown_of(request, listing, PEAK_MAX);
    for (uint32_t i = 0; i < model->steps; i++)
        risings += model->step[i].is_rising;
    if (listing->count + risings == 0)
        return;
    cw_say_heading(to, "GROWTH\n");
    for (uint32_t i = 0; i < shown; i++)
        put_suspect(to, &model->site[listing->site[i]]);
    put_rest(to, listing, shown);
    for (uint32_t i = 0; i < model->steps; i++)
        if (model->step[i].is_rising)
            put_step(to, &model->step[i]);
}

/* ---- the whole ---- */

static void put_summary(const struct cw_say *to)
{
    const struct cw_model_summary *s = &to->model->summary;

    cw_say_line(to,
                "SUMMARY: leaked_bytes=%" PRIu64 " leaked_blocks=%" PRIu64 " leak_sites=%" PRIu64
                " peak_bytes=%" PRIu64 " allocs=%" PRIu64 " frees=%" PRIu64 " failed=%" PRIu64
                " pool_hits=%" PRIu64 " pool_misses=%" PRIu64,
                s->leaked_bytes, s->leaked_blocks, s->leak_sites, s->peak_bytes, s->allocs,
                s->frees, s->failed, s->pool_hits, s->pool_misses);
}

/* Which sites are shown, by their index; NULL: no memory. */
static uint8_t *mark_shown(const struct cw_form_request *request)
{
    uint8_t *is_shown = calloc(request->model->sites + 1u, 1);

    for (uint32_t i = 0; is_shown && i < request->sites; i++)
        is_shown[request->site[i]] = 1;
    return is_shown;
}

static int put_body(const struct cw_say *to, const struct cw_form_request *request,
                    struct listing *listing, const uint8_t *is_shown)
{
    int rc = cw_form_whole(to);

    if (rc != 0)
        return rc;
    put_leaks(to, request, listing);
    put_apart(to, request, listing);
    put_sites(to, request, listing);
    put_growth(to, request, listing);
    cw_form_old(to, is_shown);
    cw_form_ooms(to);
    cw_form_errors(to);
    for (uint32_t i = 0; i < request->model->devices; i++)
        put_peak(to, request, &request->model->device[i], listing);
    return 0;
}

int cw_form_text(const struct cw_form_request *request)
{
    struct cw_say to = {.model = request->model, .out = request->out};
    struct listing listing = {.site = calloc(request->sites + 1u, sizeof(uint32_t))};
    uint8_t *is_shown = mark_shown(request);
    int rc = -1;

    if (listing.site && is_shown) {
        put_head(&to);
        put_diagnostics(&to);
        put_selected(&to, request->sites);
        rc = put_body(&to, request, &listing, is_shown);
        cw_say_begin(&to);
        fputc('\n', to.out);
        put_summary(&to);
    } else {
        cw_cli_error("'%s': out of memory", request->model->source);
        rc = CW_FORM_TOLD;
    }
    free(listing.site);
    free(is_shown);
    return ferror(to.out) ? -1 : rc;
}
