/* SPDX-License-Identifier: MIT */
/*
 * The text report, made from the model: of a report in JSON, and of some of the call sites. It
 * reads as the library's own does, with the sections that a model is enough for; the line for
 * scripts comes last, and its sums are those of the whole process.
 */
#include "cli/text/form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "cli/cli.h"
#include "cli/text/form_sites.h"
#include "cli/text/form_whole.h"
#include "cli/text/say.h"
#include "report/text/text_put.h"

#define PEAK_MAX    10 /* unless --top says otherwise */
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
        count += model->device[i].is_listed && model->device[i].ordinal != CW_MODEL_HOST;
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
        if (to->model->diagnostic[i].is_loss)
            fputs("accounting is incomplete: ", to->out);
        cw_say_clean(to, to->model->diagnostic[i].text, 255);
        fputc('\n', to->out);
    }
}

static void put_selected(const struct cw_say *to, uint32_t sites)
{
    if (sites == to->model->sites_of)
        return;
    cw_say_line(to,
                "selected: %" PRIu32 " of %" PRIu32
                " call sites; DEVICES, POOL, PRESSURE, AUDIT, errors, SUPPRESSED and SUMMARY are "
                "of the whole process",
                sites, to->model->sites_of);
}

#define CELL 64

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
    cw_say_call(to, site, CW_SAY_NAME_MAX);
    fputs("  ", to->out);
    cw_say_innermost(to, site);
    cw_say_tag(to, site);
    fputc('\n', to->out);
}

/* Others were called to free, or in vain. */
static int has_allocated(const struct cw_model_site *site)
{
    return site->total.count > 0;
}

/* By what LEAKS does not show; the order is the selection's. */
static void put_sites(const struct cw_say *to, const struct cw_form_request *request,
                      struct cw_form_list *list)
{
    enum cw_metric metric = request->selection->metric;
    uint64_t whole = 0;
    uint32_t shown;

    if (metric == CW_METRIC_LIVE)
        return;
    cw_form_list(request, has_allocated, list);
    shown = cw_form_shown(request, list->count, SITES_MAX);
    for (uint32_t i = 0; i < list->count; i++)
        whole += cw_metric_of(&to->model->site[list->site[i]], metric);
    cw_say_heading(to, "CALL SITES  ");
    fprintf(to->out, "by %s\n", cw_metric_name(metric));
    for (uint32_t i = 0; i < shown; i++)
        put_ranked(to, &to->model->site[list->site[i]], metric, whole);
    if (list->count == shown)
        return;
    cw_say_begin(to);
    fputs("... ", to->out);
    cw_say_count(to, list->count - shown, "more site");
    fputs(" (--top=N shows N)\n", to->out);
}

/* ---- PEAK ---- */

static const struct cw_model *ordered; /* the model whose sites are being sorted */

static int compare_peak(const void *a, const void *b)
{
    const struct cw_model_site *x = &ordered->site[*(const uint32_t *)a];
    const struct cw_model_site *y = &ordered->site[*(const uint32_t *)b];

    if (x->at_peak.bytes != y->at_peak.bytes)
        return x->at_peak.bytes < y->at_peak.bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void list_peak(const struct cw_form_request *request, uint32_t device,
                      struct cw_form_list *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < request->sites; i++) {
        const struct cw_model_site *site = &request->model->site[request->site[i]];

        if (cw_model_site_home(site) == device && site->at_peak.bytes > 0)
            out->site[out->count++] = request->site[i];
    }
    ordered = request->model;
    qsort(out->site, out->count, sizeof(*out->site), compare_peak);
}

struct widths {
    int blocks, api;
};

static struct widths measure_peak(const struct cw_model *model, const struct cw_form_list *list,
                                  uint32_t shown)
{
    struct widths widths = {0, 0};

    for (uint32_t i = 0; i < shown; i++) {
        const struct cw_model_site *site = &model->site[list->site[i]];
        int api = (int)strnlen(site->api, CW_TEXT_NAME_WIDTH);
        int blocks = snprintf(NULL, 0, "%" PRIu64, site->at_peak.count);

        widths.api = api > widths.api ? api : widths.api;
        widths.blocks = blocks > widths.blocks ? blocks : widths.blocks;
    }
    return widths;
}

static void put_peak_site(const struct cw_say *to, const struct cw_model_site *site, uint64_t peak,
                          const struct widths *widths)
{
    int len = (int)strnlen(site->api, CW_SAY_NAME_MAX);
    char share[16], size[24];

    cw_say_begin(to);
    fprintf(to->out, "  %6s  %10s in %*" PRIu64 " block%s  site %08" PRIx32 "  ",
            cw_text_format_share(share, sizeof(share), site->at_peak.bytes, peak),
            cw_format_size(size, sizeof(size), site->at_peak.bytes), widths->blocks,
            site->at_peak.count, site->at_peak.count == 1 ? " " : "s", site->id);
    cw_say_clean(to, site->api, CW_SAY_NAME_MAX);
    fprintf(to->out, "%*s", (len < widths->api ? widths->api - len : 0) + 2, "");
    cw_say_innermost(to, site);
    cw_say_tag(to, site);
    fputc('\n', to->out);
}

static void put_peak_rest(const struct cw_say *to, const struct cw_form_list *list, uint32_t shown)
{
    uint64_t bytes = 0;

    for (uint32_t i = shown; i < list->count; i++)
        bytes += to->model->site[list->site[i]].at_peak.bytes;
    cw_say_begin(to);
    fputs("  ... ", to->out);
    cw_say_count(to, list->count - shown, "more site");
    fputs(", ", to->out);
    cw_say_size(to, bytes);
    fputc('\n', to->out);
}

static void put_peak(const struct cw_say *to, const struct cw_form_request *request,
                     const struct cw_model_device *device, struct cw_form_list *list)
{
    struct widths widths;
    uint32_t shown;

    list_peak(request, device->ordinal, list);
    if (device->peak_bytes == 0 || (list->count == 0 && !cw_form_is_whole(request)))
        return;
    shown = cw_form_shown(request, list->count, PEAK_MAX);
    widths = measure_peak(to->model, list, shown);
    cw_say_heading(to, "PEAK  ");
    cw_say_device(to, device->ordinal);
    fputs(": ", to->out);
    cw_say_size(to, device->peak_bytes);
    fputs(" at ", to->out);
    cw_say_time(to, device->peak_ns);
    fputc('\n', to->out);
    for (uint32_t i = 0; i < shown; i++)
        put_peak_site(to, &to->model->site[list->site[i]], device->peak_bytes, &widths);
    if (list->count > shown)
        put_peak_rest(to, list, shown);
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

static int put_body(const struct cw_say *to, const struct cw_form_request *request,
                    struct cw_form_list *list, const uint8_t *is_shown)
{
    int rc = cw_form_whole(to);

    if (rc != 0)
        return rc;
    cw_form_leaks(to, request, list);
    put_sites(to, request, list);
    cw_form_growth(to, request, is_shown);
    rc = cw_form_audit(to);
    if (rc != 0)
        return rc;
    cw_form_old(to, is_shown);
    cw_form_ooms(to);
    cw_form_errors(to);
    for (uint32_t i = 0; i < request->model->devices; i++)
        put_peak(to, request, &request->model->device[i], list);
    return cw_form_suppressed(to);
}

int cw_form_text(const struct cw_form_request *request)
{
    struct cw_say to = {.model = request->model, .out = request->out};
    struct cw_form_list list = {.site = calloc(request->sites + 1u, sizeof(uint32_t))};
    uint8_t *is_shown = cw_form_mark_shown(request);
    int rc = -1;

    if (list.site && is_shown) {
        put_head(&to);
        put_diagnostics(&to);
        put_selected(&to, request->sites);
        rc = put_body(&to, request, &list, is_shown);
        cw_say_begin(&to);
        fputc('\n', to.out);
        put_summary(&to);
    } else {
        if (!list.site)
            cw_cli_error("'%s': out of memory", request->model->source);
        rc = CW_FORM_TOLD;
    }
    free(list.site);
    free(is_shown);
    return ferror(to.out) ? -1 : rc;
}
