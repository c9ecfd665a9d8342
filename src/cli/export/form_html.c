/* SPDX-License-Identifier: MIT */
/*
 * The report as a page to look at: one file that needs no network. What a browser shows is made by
 * the scripts of cli/html, which the build turns into cw_html_top and cw_html_script; this file
 * writes the data between them, in elements <script type="application/json" id="data-NAME">. The
 * first, "main", is small and stands before the scripts, so that a large report shows something at
 * once.
 *
 * Numbers beyond 2^53 are rounded by the page; times of day are therefore in milliseconds.
 */
#include "cli/export/form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/export/html_columns.h"
#include "cli/export/html_page.inc"
#include "cli/export/html_tree.h"
#include "cli/export/html_whole.h"
#include "cli/ui/message.h"

struct page {
    const struct cw_form_request *request;
    const struct cw_model *model;
    FILE *out;
    struct cw_html_writer writer;
    struct cw_strings apis; /* leaves of the call tree: frames behind the model's */
    struct cw_html_tree tree;
    uint32_t *row;  /* of each site of the model among those shown */
    uint32_t *leaf; /* node of each site that is shown */
};

#define COLUMN(record, type, name, field)                                                          \
    {                                                                                              \
        name, CW_HTML_##type, offsetof(struct cw_model_##record, field)                            \
    }
#define LAST_COLUMN                                                                                \
    {                                                                                              \
        NULL, CW_HTML_U8, 0                                                                        \
    }

static const struct cw_html_column point_columns[] = {
    COLUMN(point, U64, "t", t_ns),    COLUMN(point, U64, "live", live),
    COLUMN(point, U64, "held", held), COLUMN(point, U64, "idle", idle),
    COLUMN(point, U64, "used", used), LAST_COLUMN,
};

static const struct cw_html_column bucket_columns[] = {
    COLUMN(bucket, TEXT, "kind", kind),
    COLUMN(bucket, U64, "size", size),
    COLUMN(bucket, U64, "hits", hits),
    COLUMN(bucket, U64, "misses", misses),
    COLUMN(bucket, U64, "blocks", idle_blocks),
    COLUMN(bucket, U64, "bytes", idle_bytes),
    LAST_COLUMN,
};

static const struct cw_html_column module_columns[] = {
    COLUMN(module, TEXT, "path", path),
    LAST_COLUMN,
};

static const struct cw_html_column frame_columns[] = {
    COLUMN(frame, TEXT, "name", function),    COLUMN(frame, TEXT, "file", file),
    COLUMN(frame, U32, "line", line),         COLUMN(frame, U32, "module", module),
    COLUMN(frame, U64, "offset", offset),     COLUMN(frame, U8, "python", is_python),
    COLUMN(frame, U8, "inlined", is_inlined), LAST_COLUMN,
};

static const struct cw_html_column site_columns[] = {
    COLUMN(site, U32, "id", id),
    COLUMN(site, U32, "device", device),
    COLUMN(site, TEXT, "api", api),
    COLUMN(site, TEXT, "kind", kind),
    COLUMN(site, TEXT, "tag", tag),
    COLUMN(site, TEXT, "leak", leak),
    COLUMN(site, U8, "isLeak", is_leak),
    COLUMN(site, U64, "liveCount", live.count),
    COLUMN(site, U64, "liveBytes", live.bytes),
    COLUMN(site, U64, "goneCount", reclaimed.count),
    COLUMN(site, U64, "goneBytes", reclaimed.bytes),
    COLUMN(site, U64, "totalCount", total.count),
    COLUMN(site, U64, "totalBytes", total.bytes),
    COLUMN(site, U64, "peakBytes", peak.bytes),
    COLUMN(site, U64, "atPeakBytes", at_peak.bytes),
    COLUMN(site, U64, "held", held),
    COLUMN(site, U64, "frees", frees),
    COLUMN(site, U64, "failed", failed),
    COLUMN(site, U64, "oom", oom),
    COLUMN(site, U64, "first", first_ns),
    COLUMN(site, U64, "last", last_ns),
    COLUMN(site, U64, "oldest", oldest_ns),
    COLUMN(site, REAL, "slope", growth.slope_bytes_per_s),
    COLUMN(site, REAL, "r2", growth.r2),
    COLUMN(site, U32, "samples", growth.samples),
    COLUMN(site, U8, "suspect", growth.is_suspect),
    LAST_COLUMN,
};

static const struct cw_html_column event_columns[] = {
    COLUMN(event, TEXT, "type", type),           COLUMN(event, STEP, "t", t_ns),
    COLUMN(event, U32, "device", device),        COLUMN(event, ROW, "site", site),
    COLUMN(event, U64, "bytes", bytes),          COLUMN(event, TEXT, "level", level),
    COLUMN(event, TEXT, "before", level_before), COLUMN(event, TEXT, "cause", cause),
    COLUMN(event, U32, "count", count),          LAST_COLUMN,
};

static const struct cw_html_column step_columns[] = {
    COLUMN(step, TEXT, "name", name),
    COLUMN(step, U64, "steps", steps),
    COLUMN(step, U64, "first", first_ns),
    COLUMN(step, U64, "last", last_ns),
    COLUMN(step, U64, "firstBytes", first_bytes),
    COLUMN(step, U64, "lastBytes", last_bytes),
    COLUMN(step, REAL, "slope", slope_bytes),
    COLUMN(step, REAL, "r2", r2),
    COLUMN(step, U8, "rising", is_rising),
    LAST_COLUMN,
};

static const struct cw_html_column regrowth_columns[] = {
    COLUMN(regrowth, ROW, "site", site),
    COLUMN(regrowth, U64, "resizes", resizes),
    COLUMN(regrowth, REAL, "factor", factor),
    COLUMN(regrowth, U64, "copied", copied_bytes),
    COLUMN(regrowth, U64, "capacity", capacity_bytes),
    LAST_COLUMN,
};

static const struct cw_html_column block_columns[] = {
    COLUMN(block, ROW, "site", site),   COLUMN(block, U64, "address", address),
    COLUMN(block, U64, "bytes", bytes), COLUMN(block, U64, "born", born_ns),
    COLUMN(block, U32, "tid", tid),     LAST_COLUMN,
};

static const struct cw_html_column node_columns[] = {
    {"parent", CW_HTML_U32, offsetof(struct cw_html_node, parent)},
    {"frame", CW_HTML_U32, offsetof(struct cw_html_node, frame)},
    LAST_COLUMN,
};

/* ---- elements ---- */

static void begin_part(const struct page *page, const char *name)
{
    fprintf(page->out, "<script type=\"application/json\" id=\"data-%s\">", name);
}

static void end_part(const struct page *page)
{
    fputs("</script>\n", page->out);
}

static void put_part(struct page *page, const char *name, const struct cw_html_column *columns,
                     const struct cw_html_records *records)
{
    begin_part(page, name);
    cw_html_put_columns(&page->writer, columns, records);
    end_part(page);
}

/* In an object that is open and not empty. */
static void put_text(const struct page *page, const char *key, const char *text)
{
    fprintf(page->out, ",\"%s\":", key);
    cw_html_put_text(page->out, text);
}

static void put_number(const struct page *page, const char *key, uint64_t value)
{
    fprintf(page->out, ",\"%s\":%" PRIu64, key, value);
}

static void put_texts(const struct page *page, const char *const *text, uint32_t count)
{
    putc('[', page->out);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            putc(',', page->out);
        cw_html_put_text(page->out, text[i]);
    }
    putc(']', page->out);
}

static void put_numbers(const struct page *page, const uint64_t *value, size_t count)
{
    putc('[', page->out);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            putc_unlocked(',', page->out);
        cw_html_put_number(page->out, (int64_t)value[i]);
    }
    putc(']', page->out);
}

/* ---- the process and its devices ---- */

static void put_process(const struct page *page)
{
    const struct cw_model_process *process = &page->model->process;

    fprintf(page->out, ",\"process\":{\"pid\":%" PRIu32, process->pid);
    put_number(page, "ppid", process->ppid);
    put_text(page, "exe", process->exe);
    put_text(page, "command", process->command);
    put_text(page, "cwd", process->cwd);
    put_text(page, "host", process->host);
    put_text(page, "rank", process->rank);
    put_text(page, "mode", process->mode);
    put_text(page, "version", process->version);
    put_text(page, "end", process->end);
    if (process->has_exit_code)
        fprintf(page->out, ",\"code\":%d", process->exit_code);
    put_number(page, "startMs", process->start_realtime_ns / 1000000);
    put_number(page, "duration", process->duration_ns);
    put_number(page, "driver", process->driver_version);
    fputc('}', page->out);
}

static void put_summary(const struct page *page)
{
    const struct cw_model_summary *summary = &page->model->summary;

    fprintf(page->out, ",\"summary\":{\"leakedBytes\":%" PRIu64, summary->leaked_bytes);
    put_number(page, "leakedBlocks", summary->leaked_blocks);
    put_number(page, "leakSites", summary->leak_sites);
    put_number(page, "peakBytes", summary->peak_bytes);
    put_number(page, "allocs", summary->allocs);
    put_number(page, "frees", summary->frees);
    put_number(page, "failed", summary->failed);
    put_number(page, "hits", summary->pool_hits);
    put_number(page, "misses", summary->pool_misses);
    fputc('}', page->out);
}

static void put_device_numbers(const struct page *page, const struct cw_model_device *device)
{
    put_number(page, "total", device->total);
    put_number(page, "liveCount", device->live.count);
    put_number(page, "liveBytes", device->live.bytes);
    put_number(page, "idleBytes", device->idle.bytes);
    put_number(page, "held", device->held);
    put_number(page, "peakBytes", device->peak_bytes);
    put_number(page, "peakT", device->peak_ns);
    put_number(page, "allocs", device->allocs);
    put_number(page, "frees", device->frees);
    put_number(page, "failed", device->failed);
    put_number(page, "used", device->driver_used);
    put_number(page, "unattributed", device->unattributed);
    put_number(page, "limit", device->limit);
    put_number(page, "minFree", device->min_free);
    put_number(page, "hits", device->pool_hits);
    put_number(page, "misses", device->pool_misses);
    put_number(page, "ooms", device->ooms);
}

static void put_device(struct page *page, const struct cw_model_device *device)
{
    const struct cw_model *model = page->model;
    struct cw_html_records points = {.base = model->point + device->first_point,
                                     .size = sizeof(*model->point),
                                     .count = device->points};
    struct cw_html_records buckets = {.base = model->bucket + device->first_bucket,
                                      .size = sizeof(*model->bucket),
                                      .count = device->buckets};

    fprintf(page->out, "{\"ordinal\":%" PRIu32, device->ordinal);
    fprintf(page->out, ",\"isHost\":%s", device->ordinal == CW_MODEL_HOST ? "true" : "false");
    put_text(page, "name", device->name);
    put_text(page, "uuid", device->uuid);
    put_text(page, "level", device->level);
    put_device_numbers(page, device);
    fputs(",\"points\":", page->out);
    cw_html_put_columns(&page->writer, point_columns, &points);
    fputs(",\"buckets\":", page->out);
    cw_html_put_columns(&page->writer, bucket_columns, &buckets);
    fputc('}', page->out);
}

static void put_main(struct page *page)
{
    const struct cw_model *model = page->model;
    const struct cw_form_request *request = page->request;

    begin_part(page, "main");
    fprintf(page->out, "{\"sitesShown\":%" PRIu32, request->sites);
    put_number(page, "sitesAll", model->sites_of);
    put_number(page, "events", model->events);
    put_number(page, "blocksLeftOut", model->blocks_left_out);
    put_text(page, "source", model->source);
    put_text(page, "metric", cw_metric_name(request->selection->metric));
    fprintf(page->out, ",\"alive\":%s", model->is_alive ? "true" : "false");
    put_process(page);
    put_summary(page);
    fputs(",\"devices\":[", page->out);
    for (uint32_t i = 0; i < model->devices; i++) {
        if (i > 0)
            fputc(',', page->out);
        put_device(page, &model->device[i]);
    }
    fputs("],\"moments\":", page->out);
    put_numbers(page, model->sample_ns, model->samples);
    fputs(",\"diagnostics\":[", page->out);
    for (uint32_t i = 0; i < model->diagnostics; i++) {
        fputs(i > 0 ? "," : "", page->out);
        cw_html_put_text(page->out, model->diagnostic[i].text);
    }
    fputs("]}", page->out);
    end_part(page);
}

/* ---- the call tree ---- */

/* What was called is the innermost frame; its number is behind those of the model. */
static uint32_t add_site(struct page *page, const struct cw_model_site *site)
{
    const struct cw_model *model = page->model;
    uint32_t node = CW_HTML_ROOT;

    if (site->stack != CW_MODEL_NONE) {
        const struct cw_model_stack *stack = &model->stack[site->stack];

        for (uint32_t k = stack->count; k-- > 0;)
            node = cw_html_tree_add(&page->tree, node, model->stack_frame[stack->first + k]);
    }
    return cw_html_tree_add(&page->tree, node,
                            model->frames + cw_strings_add(&page->apis, site->api));
}

static int prepare(struct page *page)
{
    const struct cw_model *model = page->model;
    const struct cw_form_request *request = page->request;

    page->row = calloc((size_t)model->sites + 1, sizeof(*page->row));
    page->leaf = calloc((size_t)request->sites + 1, sizeof(*page->leaf));
    if (!page->row || !page->leaf) {
        cw_cli_error("no memory for the sites of the HTML report");
        return CW_FORM_TOLD;
    }
    memset(page->row, 0xff, model->sites * sizeof(*page->row));
    for (uint32_t i = 0; i < request->sites; i++) {
        page->row[request->site[i]] = i;
        page->leaf[i] = add_site(page, &model->site[request->site[i]]);
    }
    page->writer = (struct cw_html_writer){
        .out = page->out, .row = page->row, .rows = model->sites, .strings = {.borrows = 1}};
    page->apis.borrows = 1;
    return page->tree.failed || page->apis.failed ? CW_FORM_TOLD : 0;
}

static void put_tree(struct page *page)
{
    struct cw_html_records nodes = {
        .base = page->tree.node, .size = sizeof(*page->tree.node), .count = page->tree.count};

    put_part(page, "nodes", node_columns, &nodes);
    begin_part(page, "apis");
    put_texts(page, page->apis.text, page->apis.count);
    end_part(page);
}

/* ---- sites ---- */

/* Which node each site is, and the first of its numbers in the part "series". */
static void put_leaves(struct page *page)
{
    begin_part(page, "leaves");
    fputc('[', page->out);
    for (uint32_t i = 0; i < page->request->sites; i++) {
        if (i > 0)
            putc_unlocked(',', page->out);
        cw_html_put_number(page->out, page->leaf[i]);
    }
    fputc(']', page->out);
    end_part(page);
}

/* [row, bytes at each moment...] of each site that has a series. */
static void put_series(struct page *page)
{
    const struct cw_model *model = page->model;
    int is_first = 1;

    begin_part(page, "series");
    fputc('[', page->out);
    for (uint32_t i = 0; i < page->request->sites; i++) {
        const struct cw_model_site *site = &model->site[page->request->site[i]];

        if (site->series == CW_MODEL_NONE)
            continue;
        fprintf(page->out, "%s[%" PRIu32 ",", is_first ? "" : ",", i);
        put_numbers(page, model->series_bytes + site->series, model->samples);
        fputc(']', page->out);
        is_first = 0;
    }
    fputc(']', page->out);
    end_part(page);
}

#define PUT_ALL(page, name, columns, array, number)                                                \
    put_part(                                                                                      \
        page, name, columns,                                                                       \
        &(struct cw_html_records){.base = (array), .size = sizeof(*(array)), .count = (number)})

static void put_parts(struct page *page)
{
    const struct cw_model *model = page->model;

    /* What is read last stands first: the texts of its many records get the shortest numbers. */
    PUT_ALL(page, "events", event_columns, model->event, model->events);
    PUT_ALL(page, "modules", module_columns, model->module, model->modules);
    PUT_ALL(page, "frames", frame_columns, model->frame, model->frames);
    put_tree(page);
    put_part(page, "sites", site_columns,
             &(struct cw_html_records){.base = model->site,
                                       .size = sizeof(*model->site),
                                       .index = page->request->site,
                                       .count = page->request->sites});
    put_leaves(page);
    put_series(page);
    PUT_ALL(page, "steps", step_columns, model->step, model->steps);
    PUT_ALL(page, "regrowth", regrowth_columns, model->regrowth, model->regrowths);
    begin_part(page, "whole");
    cw_html_put_whole(&page->writer, model);
    end_part(page);
    PUT_ALL(page, "blocks", block_columns, model->block, model->blocks);
    begin_part(page, "strings");
    put_texts(page, page->writer.strings.text, page->writer.strings.count);
    end_part(page);
}

int cw_form_html(const struct cw_form_request *request)
{
    struct page page = {.request = request, .model = request->model, .out = request->out};
    int rc = prepare(&page);

    if (rc == 0) {
        fputs(cw_html_top, page.out);
        put_main(&page);
        fputs(cw_html_script, page.out);
        put_parts(&page);
        fputs("</body>\n</html>\n", page.out);
        rc = page.writer.strings.failed ? CW_FORM_TOLD : ferror(page.out) ? -1 : 0;
    }
    free(page.row);
    free(page.leaf);
    cw_html_tree_free(&page.tree);
    cw_strings_free(&page.apis);
    cw_strings_free(&page.writer.strings);
    return rc;
}
