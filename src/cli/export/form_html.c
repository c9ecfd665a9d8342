/* SPDX-License-Identifier: MIT */
/*
 * The report as one HTML file that needs no network. The scripts of cli/html, which the build turns
 * into cw_html_top and cw_html_script, make the visible page; this file writes the data between
 * them, in elements <script type="application/json" id="data-NAME">. The first, "main", is small
 * and comes before the scripts, so that a large report shows something at once.
 *
 * The page rounds numbers above 2^53, so times of day are in milliseconds.
 */
#include "cli/export/form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/export/event_words.h"
#include "cli/export/html_columns.h"
#include "cli/export/html_page.inc"
#include "cli/export/html_process.h"
#include "cli/export/html_tensors.h"
#include "cli/export/html_tree.h"
#include "cli/export/html_whole.h"
#include "cli/model/calls.h"
#include "cli/ui/message.h"
#include "live/view.h"
#include "report/model/code_kind.h"
#include "report/text/text_put.h"

#define CONTRAST_MAX 2048 /* longer is cut */

/* A site and its derived values. */
struct site_row {
    struct cw_snapshot_site of;
    const char *tag, *leak;
    const char *contrast; /* the frames that tell it from sites that begin alike */
    uint8_t is_leak;
    uint32_t home; /* the device that counts it */
    struct cw_trend trend;
};

/* A function, and whose code it is. */
struct frame_row {
    struct cw_call of;
    const char *kind;
};

struct page {
    const struct cw_form_request *request;
    const struct cw_report_model *model;
    FILE *out;
    struct cw_html_writer writer;
    struct cw_strings contrasts;
    struct cw_strings apis; /* leaves of the call tree, numbered after the calls */
    struct cw_html_tree tree;
    uint32_t *row;  /* of each site of the model, among those shown */
    uint32_t *leaf; /* node of each site that is shown */
    struct cw_calls calls;
    struct frame_row *frame; /* of each call */
    struct site_row *site;   /* shown */
    struct cw_event_words *event;
    uint32_t events;
    struct cw_report_tag *step; /* tags with steps */
    uint32_t steps;
};

#define COLUMN(record, type, name, field)                                                          \
    {                                                                                              \
        name, CW_HTML_##type, offsetof(struct record, field)                                       \
    }
#define LAST_COLUMN                                                                                \
    {                                                                                              \
        NULL, CW_HTML_U8, 0                                                                        \
    }

#define RECORDS(array, number)                                                                     \
    &(struct cw_html_records)                                                                      \
    {                                                                                              \
        .base = (array), .size = sizeof(*(array)), .count = (number)                               \
    }

static const struct cw_html_column point_columns[] = {
    COLUMN(cw_growth_point, U64, "t", t_ns),    COLUMN(cw_growth_point, U64, "live", live),
    COLUMN(cw_growth_point, U64, "held", held), COLUMN(cw_growth_point, U64, "idle", idle),
    COLUMN(cw_growth_point, U64, "used", used), LAST_COLUMN,
};

static const struct cw_html_column bucket_columns[] = {
    COLUMN(cw_snapshot_bucket, KIND, "kind", kind),
    COLUMN(cw_snapshot_bucket, U64, "size", size),
    COLUMN(cw_snapshot_bucket, U64, "hits", sums.hits),
    COLUMN(cw_snapshot_bucket, U64, "misses", sums.misses),
    COLUMN(cw_snapshot_bucket, U64, "blocks", sums.idle_blocks),
    COLUMN(cw_snapshot_bucket, U64, "bytes", sums.idle_bytes),
    LAST_COLUMN,
};

static const struct cw_html_column module_columns[] = {
    COLUMN(cw_report_module, TEXT, "path", path),
    LAST_COLUMN,
};

static const struct cw_html_column frame_columns[] = {
    COLUMN(frame_row, TEXT, "name", of.function),
    COLUMN(frame_row, TEXT, "file", of.file),
    COLUMN(frame_row, U32, "line", of.line),
    COLUMN(frame_row, U32, "module", of.module),
    COLUMN(frame_row, U64, "offset", of.offset),
    COLUMN(frame_row, U8, "python", of.is_python),
    COLUMN(frame_row, U8, "inlined", of.is_inlined),
    COLUMN(frame_row, TEXT, "kind", kind),
    LAST_COLUMN,
};

static const struct cw_html_column site_columns[] = {
    COLUMN(site_row, U32, "id", of.id),
    COLUMN(site_row, U8, "device", of.device),
    COLUMN(site_row, TEXT, "api", of.api),
    COLUMN(site_row, KIND, "kind", of.kind),
    COLUMN(site_row, TEXT, "tag", tag),
    COLUMN(site_row, TEXT, "leak", leak),
    COLUMN(site_row, TEXT, "contrast", contrast),
    COLUMN(site_row, U8, "isLeak", is_leak),
    COLUMN(site_row, U64, "liveCount", of.live_blocks),
    COLUMN(site_row, U64, "liveBytes", of.live_bytes),
    COLUMN(site_row, U64, "goneCount", of.reclaimed),
    COLUMN(site_row, U64, "goneBytes", of.reclaimed_bytes),
    COLUMN(site_row, U64, "totalCount", of.allocs),
    COLUMN(site_row, U64, "totalBytes", of.total_bytes),
    COLUMN(site_row, U64, "peakBytes", of.peak_bytes),
    COLUMN(site_row, U64, "atPeakBytes", of.at_peak_bytes),
    COLUMN(site_row, U64, "atPeakCount", of.at_peak_blocks),
    COLUMN(site_row, U32, "home", home),
    COLUMN(site_row, U64, "held", of.live_held),
    COLUMN(site_row, U64, "frees", of.frees),
    COLUMN(site_row, U64, "failed", of.failed),
    COLUMN(site_row, U64, "oom", of.oom),
    COLUMN(site_row, U64, "first", of.first_ns),
    COLUMN(site_row, U64, "last", of.last_ns),
    COLUMN(site_row, U64, "oldest", of.oldest_ns),
    COLUMN(site_row, REAL, "slope", trend.slope),
    COLUMN(site_row, REAL, "r2", trend.r2),
    COLUMN(site_row, U32, "samples", trend.n),
    COLUMN(site_row, U8, "suspect", trend.is_steady),
    LAST_COLUMN,
};

static const struct cw_html_column event_columns[] = {
    COLUMN(cw_event_words, TEXT, "type", type),
    COLUMN(cw_event_words, STEP, "t", t_ns),
    COLUMN(cw_event_words, U32, "device", device),
    COLUMN(cw_event_words, ROW, "site", site),
    COLUMN(cw_event_words, U64, "bytes", bytes),
    COLUMN(cw_event_words, TEXT, "level", level),
    COLUMN(cw_event_words, TEXT, "before", level_before),
    COLUMN(cw_event_words, TEXT, "cause", cause),
    COLUMN(cw_event_words, U32, "count", count),
    LAST_COLUMN,
};

static const struct cw_html_column step_columns[] = {
    COLUMN(cw_report_tag, TEXT, "name", label),
    COLUMN(cw_report_tag, U64, "steps", steps),
    COLUMN(cw_report_tag, U64, "first", first_ns),
    COLUMN(cw_report_tag, U64, "last", last_ns),
    COLUMN(cw_report_tag, U64, "firstBytes", first_bytes),
    COLUMN(cw_report_tag, U64, "lastBytes", last_bytes),
    COLUMN(cw_report_tag, REAL, "slope", slope),
    COLUMN(cw_report_tag, REAL, "r2", r2),
    COLUMN(cw_report_tag, U8, "rising", is_rising),
    LAST_COLUMN,
};

static const struct cw_html_column regrowth_columns[] = {
    COLUMN(cw_growth_regrowth, ROW, "site", site),
    COLUMN(cw_growth_regrowth, U64, "resizes", resizes),
    COLUMN(cw_growth_regrowth, REAL, "factor", factor),
    COLUMN(cw_growth_regrowth, U64, "copied", copied_bytes),
    COLUMN(cw_growth_regrowth, U64, "capacity", largest_bytes),
    LAST_COLUMN,
};

static const struct cw_html_column block_columns[] = {
    COLUMN(cw_report_block, ROW, "site", site),   COLUMN(cw_report_block, U64, "address", address),
    COLUMN(cw_report_block, U64, "bytes", bytes), COLUMN(cw_report_block, U64, "born", born_ns),
    COLUMN(cw_report_block, U32, "tid", tid),     LAST_COLUMN,
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

/* ---- devices ---- */

static void put_device_numbers(const struct page *page, uint32_t ordinal)
{
    const struct cw_snapshot_device *device = &page->model->snapshot.device[ordinal];
    const struct cw_snapshot_pressure_device *pressure =
        &page->model->snapshot.pressure.device[ordinal];
    const struct cw_snapshot_pool_device *pool = &page->model->snapshot.pool.device[ordinal];

    cw_html_add_number(page->out, "total", device->total);
    cw_html_add_number(page->out, "liveCount", device->sums.live_blocks);
    cw_html_add_number(page->out, "liveBytes", device->sums.live_bytes);
    cw_html_add_number(page->out, "idleBytes", device->idle_bytes);
    cw_html_add_number(page->out, "held", device->sums.live_held);
    cw_html_add_number(page->out, "peakBytes", device->peak_bytes);
    cw_html_add_number(page->out, "peakT", device->peak_ns);
    cw_html_add_number(page->out, "allocs", device->sums.allocs);
    cw_html_add_number(page->out, "frees", device->sums.frees);
    cw_html_add_number(page->out, "failed", device->sums.failed);
    cw_html_add_number(page->out, "used", device->sampled ? device->driver_used : 0);
    cw_html_add_number(page->out, "unattributed", device->sampled ? device->unattributed : 0);
    cw_html_add_number(page->out, "limit", pressure->limit);
    cw_html_add_number(page->out, "minFree", pressure->min_free);
    cw_html_add_number(page->out, "hits", pool->sums.hits);
    cw_html_add_number(page->out, "misses", pool->sums.misses);
}

static void put_device(struct page *page, uint32_t ordinal)
{
    const struct cw_snapshot *snapshot = &page->model->snapshot;
    const struct cw_snapshot_device *device = &snapshot->device[ordinal];
    const struct cw_snapshot_pool_device *pool = &snapshot->pool.device[ordinal];
    const struct cw_growth_timeline *timeline = &snapshot->growth.timeline[ordinal];

    fprintf(page->out, "{\"ordinal\":%" PRIu32, ordinal);
    fprintf(page->out, ",\"isHost\":%s", ordinal == CW_DEVICE_HOST ? "true" : "false");
    cw_html_add_text(page->out, "name", device->name ? device->name : "");
    cw_html_add_text(page->out, "uuid", device->uuid ? device->uuid : "");
    cw_html_add_text(page->out, "level", cw_level_name(snapshot->pressure.device[ordinal].level));
    put_device_numbers(page, ordinal);
    fputs(",\"points\":", page->out);
    cw_html_put_columns(&page->writer, point_columns, RECORDS(timeline->point, timeline->count));
    fputs(",\"buckets\":", page->out);
    cw_html_put_columns(
        &page->writer, bucket_columns,
        RECORDS(pool->buckets > 0 ? &snapshot->pool.bucket[pool->first] : NULL, pool->buckets));
    fputc('}', page->out);
}

static void put_main(struct page *page)
{
    const struct cw_report_model *model = page->model;
    const struct cw_form_request *request = page->request;
    int is_first = 1;

    begin_part(page, "main");
    fprintf(page->out, "{\"sitesShown\":%" PRIu32, request->sites);
    cw_html_add_number(page->out, "sitesAll", model->sites_of);
    cw_html_add_number(page->out, "events", page->events);
    cw_html_add_number(page->out, "blocksLeftOut", model->blocks_left_out);
    cw_html_add_text(page->out, "source", model->source);
    cw_html_add_text(page->out, "metric", cw_metric_name(request->selection->metric));
    fprintf(page->out, ",\"alive\":%s", model->is_alive ? "true" : "false");
    cw_html_put_process(page->out, model);
    fputs(",\"devices\":[", page->out);
    for (uint32_t i = 0; i < CW_DEVICES; i++) {
        if (!cw_report_has_device(model, i))
            continue;
        fputs(is_first ? "" : ",", page->out);
        put_device(page, i);
        is_first = 0;
    }
    fputs("],\"moments\":", page->out);
    put_numbers(page, model->snapshot.growth.t_ns, model->snapshot.growth.moments);
    cw_html_put_tensors(page->out, &model->tensors);
    fputs(",\"diagnostics\":[", page->out);
    for (uint32_t i = 0; i < model->diagnostics; i++) {
        fputs(i > 0 ? "," : "", page->out);
        cw_html_put_text(page->out, model->diagnostic[i].text);
    }
    fputs("]}", page->out);
    end_part(page);
}

/* ---- records of the page ---- */

/* The CUDA function is the innermost frame, numbered after the calls. */
static uint32_t add_leaf(struct page *page, const struct cw_snapshot_site *site)
{
    const struct cw_call_stack *stack = cw_calls_stack(&page->calls, site->stack);
    uint32_t node = CW_HTML_ROOT;

    for (uint32_t k = stack->count; k-- > 0;)
        node = cw_html_tree_add(&page->tree, node, page->calls.stack_call[stack->first + k]);
    return cw_html_tree_add(&page->tree, node,
                            page->calls.count + cw_strings_add(&page->apis, site->api));
}

/* " <- main (train.py:31)" */
static const char *contrast_of(struct page *page, const struct cw_text_list *list, uint32_t stack)
{
    char buf[CONTRAST_MAX];
    struct cw_text text = list->text;
    struct cw_out out;
    uint32_t number;

    cw_out_init(&out, -1, buf, sizeof(buf) - 1);
    text.out = &out;
    cw_text_contrast(&text, stack);
    buf[out.len] = '\0';
    number = cw_strings_add(&page->contrasts, buf);
    return page->contrasts.failed ? "" : page->contrasts.text[number];
}

/* As in text: what is left of a process that runs, or was ended, is not lost. */
static const char *class_of(const struct cw_report_model *model,
                            const struct cw_snapshot_site *site)
{
    return !cw_report_has_leaks(model) && site->leak == CW_LEAK_LOST ? "live" : cw_leak_name(site);
}

static void fill_sites(struct page *page)
{
    const struct cw_report_model *model = page->model;
    const struct cw_text text = {.model = model, .snapshot = &model->snapshot};
    struct cw_text_list list;

    cw_text_begin_list(&text, page->request->site, sizeof(*page->request->site),
                       page->request->sites, &list);
    memset(page->row, 0xff, model->snapshot.sites * sizeof(*page->row));
    for (uint32_t i = 0; i < page->request->sites; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[page->request->site[i]];
        const struct cw_growth_row *growth =
            cw_snapshot_growth_row(&model->snapshot, page->request->site[i]);

        page->row[page->request->site[i]] = i;
        page->leaf[i] = add_leaf(page, site);
        page->site[i] = (struct site_row){
            .of = *site,
            .tag = cw_report_tag_label(model, site->tag),
            .leak = class_of(model, site),
            .home = cw_report_site_home(site),
            .contrast = contrast_of(page, &list, site->stack),
            .is_leak = (uint8_t)(cw_report_has_leaks(model) && cw_leak_is_counted(site->leak))};
        if (growth)
            page->site[i].trend = growth->trend;
    }
    cw_text_end_list(&list);
}

static const char *kind_of(const struct page *page, const struct cw_call *call)
{
    static const char *const names[] = {[CW_CODE_OWN] = "own",
                                        [CW_CODE_FRAMEWORK] = "framework",
                                        [CW_CODE_PYTHON] = "python",
                                        [CW_CODE_LIBRARY] = "library"};
    struct cw_report_frame frame = {
        .is_python = call->is_python, .file = call->file, .module = call->module + 1};

    return names[cw_code_kind(page->model, &frame)];
}

static void fill_frames(struct page *page)
{
    for (uint32_t i = 0; i < page->calls.count; i++)
        page->frame[i] =
            (struct frame_row){page->calls.call[i], kind_of(page, &page->calls.call[i])};
}

static void fill_events(struct page *page)
{
    for (uint32_t i = 0; i < page->model->events; i++)
        page->event[page->events++] = cw_event_words(&page->model->event[i]);
}

static void fill_steps(struct page *page)
{
    for (uint32_t i = 0; i < page->model->tags; i++) {
        const struct cw_report_tag *tag = &page->model->tag[i];

        if (tag->begun != 0 || tag->steps != 0)
            page->step[page->steps++] = *tag;
    }
}

static int prepare(struct page *page)
{
    const struct cw_report_model *model = page->model;
    size_t shown = (size_t)page->request->sites + 1;

    if (cw_calls_init(&page->calls, model) != 0)
        return CW_FORM_TOLD;
    page->row = calloc((size_t)model->snapshot.sites + 1, sizeof(*page->row));
    page->leaf = calloc(shown, sizeof(*page->leaf));
    page->frame = calloc((size_t)page->calls.count + 1, sizeof(*page->frame));
    page->site = calloc(shown, sizeof(*page->site));
    page->event = calloc((size_t)model->events + 1, sizeof(*page->event));
    page->step = calloc((size_t)model->tags + 1, sizeof(*page->step));
    if (!page->row || !page->leaf || !page->frame || !page->site || !page->event || !page->step) {
        cw_cli_error("out of memory for the records of the HTML report");
        return CW_FORM_TOLD;
    }
    page->apis.borrows = 1;
    fill_frames(page);
    fill_sites(page);
    fill_events(page);
    fill_steps(page);
    page->writer = (struct cw_html_writer){.out = page->out,
                                           .row = page->row,
                                           .rows = model->snapshot.sites,
                                           .strings = {.borrows = 1}};
    return page->tree.failed || page->apis.failed || page->contrasts.failed ? CW_FORM_TOLD : 0;
}

static void put_tree(struct page *page)
{
    put_part(page, "nodes", node_columns, RECORDS(page->tree.node, page->tree.count));
    begin_part(page, "apis");
    put_texts(page, page->apis.text, page->apis.count);
    end_part(page);
}

/* ---- sites ---- */

/* The node of each site, and its first number in the part "series". */
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

/* [row, bytes at each moment...] for each site that has a series. */
static void put_series(struct page *page)
{
    const struct cw_snapshot *snapshot = &page->model->snapshot;
    int is_first = 1;

    begin_part(page, "series");
    fputc('[', page->out);
    for (uint32_t i = 0; i < page->request->sites; i++) {
        const struct cw_growth_row *row = cw_snapshot_growth_row(snapshot, page->request->site[i]);

        if (!row || row->count == 0)
            continue;
        fprintf(page->out, "%s[%" PRIu32 ",", is_first ? "" : ",", i);
        put_numbers(page, snapshot->growth.bytes + row->first, row->count);
        fputc(']', page->out);
        is_first = 0;
    }
    fputc(']', page->out);
    end_part(page);
}

static void put_parts(struct page *page)
{
    const struct cw_report_model *model = page->model;
    const struct cw_snapshot_growth *growth = &model->snapshot.growth;

    /* Events come first: they are the most records, so their texts get the shortest numbers. */
    put_part(page, "events", event_columns, RECORDS(page->event, page->events));
    put_part(page, "modules", module_columns, RECORDS(model->module, model->modules));
    put_part(page, "frames", frame_columns, RECORDS(page->frame, page->calls.count));
    put_tree(page);
    put_part(page, "sites", site_columns, RECORDS(page->site, page->request->sites));
    put_leaves(page);
    put_series(page);
    put_part(page, "steps", step_columns, RECORDS(page->step, page->steps));
    put_part(page, "regrowth", regrowth_columns, RECORDS(growth->regrowth, growth->regrowths));
    begin_part(page, "whole");
    cw_html_put_whole(&page->writer, model);
    end_part(page);
    put_part(page, "blocks", block_columns, RECORDS(model->block, model->blocks));
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
    free(page.frame);
    free(page.site);
    free(page.event);
    free(page.step);
    cw_calls_free(&page.calls);
    cw_html_tree_free(&page.tree);
    cw_strings_free(&page.apis);
    cw_strings_free(&page.contrasts);
    cw_strings_free(&page.writer.strings);
    return rc;
}
