/* SPDX-License-Identifier: MIT */
/*
 * Memory use over time as a trace in Chrome's JSON form, which ui.perfetto.dev and
 * chrome://tracing show and which can be merged with traces of other tools: counters for each
 * device, marks for events. If call sites are selected, each sampled one has counters, and only
 * their events are written. Times are microseconds since the library was armed.
 */
#include "cli/export/form.h"
#include "base/pattern.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "base/out.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "base/compiler.h"
#include "cli/export/event_words.h"
#include "cli/ui/message.h"
#include "report/snapshot/tag.h"

/* Threads of the trace: one for each device's events, one for the program's own marks. */
#define THREAD_OF_DEVICE 1
#define THREAD_OF_MARKS  (THREAD_OF_DEVICE + CW_DEVICE_HOST + 1)

#define NAME_MAX_BYTES (CW_TAG_LABEL_MAX + 64)

struct trace {
    const struct cw_form_request *request;
    FILE *out;
    const uint8_t *is_shown; /* by site index; NULL: all are */
    uint32_t pid;
    uint64_t events; /* so far */
};

/* Text is UTF-8: the reader guarantees it. */
static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (size_t len = strlen(text), size; len > 0; text += size, len -= size) {
        int is_printable;

        size = cw_printable_scan(text, len, &is_printable);
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (!is_printable)
            fprintf(out, "\\u%04x", (unsigned)cw_utf8_decode(text, size));
        else
            fwrite(text, 1, size, out);
    }
    fputc('"', out);
}

static void put_time(const struct trace *trace, uint64_t ns)
{
    fprintf(trace->out, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static void begin_event(struct trace *trace, const char *phase, uint32_t thread)
{
    fprintf(trace->out, "%s{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
            trace->events++ > 0 ? ",\n" : "", phase, trace->pid, thread);
}

static int is_selected(const struct trace *trace, uint32_t device)
{
    const struct cw_selection *selection = trace->request->selection;

    return !selection->has_device || selection->device == device;
}

static int is_wanted(const struct trace *trace, uint32_t device)
{
    return is_selected(trace, device) && cw_report_has_device(trace->request->model, device);
}

static int selects_sites(const struct cw_selection *selection)
{
    return selection->has_site || selection->kind || selection->tag || selection->leak ||
           selection->top != 0 || selection->min_age_ns != 0 || selection->min_bytes != 0;
}

/* Tags without steps, and with one that has not ended, appear only on call sites. */
static int is_step(const struct cw_report_tag *tag)
{
    return tag->steps != 0;
}

/* An event without a site concerns the device. */
static int is_event_wanted(const struct trace *trace, const struct cw_event_words *event)
{
    if (!is_selected(trace, event->device))
        return 0;
    return !trace->is_shown || event->site == CW_SITE_NONE || trace->is_shown[event->site];
}

static int is_step_wanted(const struct trace *trace, const struct cw_report_tag *step)
{
    const char *tag = trace->request->selection->tag;

    return is_step(step) && (!tag || cw_pattern_matches(tag, step->label));
}

/* ---- names ---- */

static void put_name(struct trace *trace, const char *what, uint32_t thread, const char *name)
{
    begin_event(trace, "M", thread);
    fprintf(trace->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    put_string(trace->out, name);
    fputs("}}", trace->out);
}

static const char *device_label(uint32_t device, char *buf, size_t cap)
{
    if (device == CW_DEVICE_HOST)
        snprintf(buf, cap, "host");
    else
        snprintf(buf, cap, "device %" PRIu32, device);
    return buf;
}

static void put_names(struct trace *trace)
{
    const struct cw_report_model *model = trace->request->model;
    const char *program = model->process.exe[0] ? model->process.exe : model->process.command;
    uint32_t tag = 0;
    char label[32];

    put_name(trace, "process_name", 0, program);
    for (uint32_t i = 0; i < CW_DEVICES; i++)
        if (is_wanted(trace, i))
            put_name(trace, "thread_name", THREAD_OF_DEVICE + i,
                     device_label(i, label, sizeof(label)));
    while (tag < model->tags && !is_step(&model->tag[tag]))
        tag++;
    if (tag < model->tags)
        put_name(trace, "thread_name", THREAD_OF_MARKS, "ranges and marks");
}

/* ---- counters ---- */

static void put_counter(struct trace *trace, uint32_t device, const char *what, uint64_t t_ns,
                        uint64_t bytes)
{
    char label[32];

    begin_event(trace, "C", THREAD_OF_DEVICE + device);
    fputs(",\"ts\":", trace->out);
    put_time(trace, t_ns);
    fprintf(trace->out, ",\"name\":\"%s %s\",\"args\":{\"bytes\":%" PRIu64 "}}",
            device_label(device, label, sizeof(label)), what, bytes);
}

static void put_points(struct trace *trace, uint32_t device)
{
    const struct cw_growth_timeline *timeline =
        &trace->request->model->snapshot.growth.timeline[device];

    for (uint32_t i = 0; i < timeline->count; i++) {
        const struct cw_growth_point *point = &timeline->point[i];

        put_counter(trace, device, "live", point->t_ns, point->live);
        put_counter(trace, device, "held", point->t_ns, point->held);
        put_counter(trace, device, "idle", point->t_ns, point->idle);
        if (device != CW_DEVICE_HOST)
            put_counter(trace, device, "used", point->t_ns, point->used);
    }
}

static int looks_alike(const struct cw_snapshot_site *a, const struct cw_snapshot_site *b)
{
    return a->id == b->id && a->device == b->device && a->context == b->context && a->tag == b->tag;
}

/* How many of those before it in the trace would have the same name: libraries of one name in two
 * directories make equal ids. */
static uint32_t count_twins(const struct cw_form_request *request, uint32_t index)
{
    const struct cw_snapshot_site *site = request->model->snapshot.site;
    uint32_t count = 0;

    for (uint32_t i = 0; request->site[i] != index; i++)
        count += looks_alike(&site[request->site[i]], &site[index]);
    return count;
}

/* The viewer takes counters of one name for one, so it has all that tells sites apart. */
static void name_site(const struct cw_form_request *request, uint32_t index, char *buf, size_t cap)
{
    const struct cw_snapshot_site *site = &request->model->snapshot.site[index];
    const char *tag = cw_report_tag_label(request->model, site->tag);
    uint32_t twins = count_twins(request, index);
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap - 1);
    cw_out_printf(&out, "site %08x", site->id);
    if (site->device != CW_DEVICE_HOST)
        cw_out_printf(&out, " device %u", (unsigned)site->device);
    if (site->context != 0)
        cw_out_printf(&out, " context %u", (unsigned)site->context);
    if (tag[0])
        cw_out_printf(&out, " tag %s", tag);
    if (twins > 0)
        cw_out_printf(&out, " (%u)", twins + 1);
    buf[out.len] = '\0';
}

/* The bytes that a site held at each growth sample. */
static void put_series(struct trace *trace, uint32_t index)
{
    const struct cw_snapshot *snapshot = &trace->request->model->snapshot;
    const struct cw_snapshot_site *site = &snapshot->site[index];
    const struct cw_growth_row *row = cw_snapshot_growth_row(snapshot, index);
    char name[NAME_MAX_BYTES];

    if (!row)
        return;
    name_site(trace->request, index, name, sizeof(name));
    for (uint32_t i = 0; i < row->count; i++) {
        begin_event(trace, "C", THREAD_OF_DEVICE + site->device);
        fputs(",\"ts\":", trace->out);
        put_time(trace, snapshot->growth.t_ns[i]);
        fputs(",\"name\":", trace->out);
        put_string(trace->out, name);
        fprintf(trace->out, ",\"args\":{\"bytes\":%" PRIu64 "}}",
                snapshot->growth.bytes[row->first + i]);
    }
}

/* ---- marks ---- */

static void begin_mark(struct trace *trace, uint32_t thread, uint64_t t_ns, const char *name)
{
    begin_event(trace, "i", thread);
    fputs(",\"s\":\"t\",\"ts\":", trace->out);
    put_time(trace, t_ns);
    fputs(",\"name\":", trace->out);
    put_string(trace->out, name);
    fputs(",\"args\":{", trace->out);
}

static void put_text_argument(struct trace *trace, const char *key, const char *value)
{
    if (!value[0])
        return;
    fprintf(trace->out, ",\"%s\":", key);
    put_string(trace->out, value);
}

static void put_event(struct trace *trace, const struct cw_event_words *event)
{
    const struct cw_snapshot_site *site = cw_report_site(trace->request->model, event->site);

    begin_mark(trace, THREAD_OF_DEVICE + event->device, event->t_ns, event->type);
    fprintf(trace->out, "\"bytes\":%" PRIu64 ",\"count\":%" PRIu32, event->bytes, event->count);
    put_text_argument(trace, "level", event->level);
    put_text_argument(trace, "level_before", event->level_before);
    put_text_argument(trace, "cause", event->cause);
    if (site) {
        fprintf(trace->out, ",\"site\":\"%08" PRIx32 "\"", site->id);
        put_text_argument(trace, "api", site->api);
    }
    fputs("}}", trace->out);
}

/* Only a name's first and last steps are recorded, with the bytes held then. */
static void put_step(struct trace *trace, const struct cw_report_tag *step, const char *which,
                     uint64_t t_ns, uint64_t bytes)
{
    begin_mark(trace, THREAD_OF_MARKS, t_ns, step->label);
    fprintf(trace->out, "\"step\":\"%s\",\"steps\":%" PRIu64 ",\"live_bytes\":%" PRIu64 "}}", which,
            step->steps, bytes);
}

/* ---- the trace ---- */

static void put_head(struct trace *trace)
{
    const struct cw_process_facts *process = &trace->request->model->process;

    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"tool\":\"cuwarden\",\"version\":",
          trace->out);
    put_string(trace->out, trace->request->model->version);
    fputs(",\"command\":", trace->out);
    put_string(trace->out, process->command);
    fprintf(trace->out, ",\"start_ns\":\"%" PRIu64 "\"},\n\"traceEvents\":[\n",
            process->start_realtime_ns);
}

static void put_trace(struct trace *trace)
{
    const struct cw_form_request *request = trace->request;
    const struct cw_report_model *model = request->model;

    put_head(trace);
    put_names(trace);
    for (uint32_t i = 0; i < CW_DEVICES; i++)
        if (is_wanted(trace, i))
            put_points(trace, i);
    for (uint32_t i = 0; trace->is_shown && i < request->sites; i++)
        put_series(trace, request->site[i]);
    for (uint32_t i = 0; i < model->events; i++) {
        const struct cw_event_words event = cw_event_words(&model->event[i]);

        if (is_event_wanted(trace, &event))
            put_event(trace, &event);
    }
    for (uint32_t i = 0; i < model->tags; i++) {
        const struct cw_report_tag *step = &model->tag[i];

        if (!is_step_wanted(trace, step))
            continue;
        put_step(trace, step, "first", step->first_ns, step->first_bytes);
        put_step(trace, step, "last", step->last_ns, step->last_bytes);
    }
    fputs("\n]}\n", trace->out);
}

/* Which sites are selected, by index; the caller frees it. NULL after an out-of-memory message. */
static uint8_t *mark_shown(const struct cw_form_request *request)
{
    uint8_t *is_shown = calloc(request->model->snapshot.sites + 1u, 1);

    if (!is_shown)
        cw_cli_error("'%s': out of memory", request->model->source);
    for (uint32_t i = 0; is_shown && i < request->sites; i++)
        is_shown[request->site[i]] = 1;
    return is_shown;
}

int cw_form_perfetto(const struct cw_form_request *request)
{
    struct trace trace = {
        .request = request, .out = request->out, .pid = request->model->process.pid};
    uint8_t *is_shown = NULL;

    if (selects_sites(request->selection)) {
        is_shown = mark_shown(request);
        if (!is_shown)
            return CW_FORM_TOLD;
        trace.is_shown = is_shown;
    }
    put_trace(&trace);
    free(is_shown);
    return ferror(trace.out) ? -1 : 0;
}
