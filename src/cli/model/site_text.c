/* SPDX-License-Identifier: MIT */
/* Call sites and amounts. See site_text.h. */
#include "cli/model/site_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/printable.h"
#include "base/out.h"
#include "live/view.h"
#include "report/json/json_put.h"
#include "report/model/fold.h"
#include "report/symbols/qualified.h"
#include "report/symbols/stack.h"

#define NAME_MAX_BYTES 512
#define AROUND         3 /* a script's line, its callee and its caller */

/* ---- amounts ---- */

char *cw_amount_format(char *buf, enum cw_metric metric, uint64_t amount)
{
    if (metric != CW_METRIC_COUNT)
        return cw_format_size(buf, CW_AMOUNT_MAX, amount);
    snprintf(buf, CW_AMOUNT_MAX, "%" PRIu64, amount);
    return buf;
}

char *cw_change_format(char *buf, enum cw_metric metric, uint64_t before, uint64_t after)
{
    uint64_t change = after > before ? after - before : before - after;

    buf[0] = after < before ? '-' : '+';
    if (metric == CW_METRIC_COUNT)
        snprintf(buf + 1, CW_AMOUNT_MAX - 1, "%" PRIu64, change);
    else
        cw_format_size(buf + 1, CW_AMOUNT_MAX - 1, change);
    if (change == 0)
        memmove(buf, buf + 1, strlen(buf));
    return buf;
}

char *cw_share_format(char *buf, uint64_t before, uint64_t after)
{
    double change = before ? ((double)after - (double)before) * 100 / (double)before : 0;

    buf[0] = '\0';
    if (before != 0 && before != after)
        snprintf(buf, CW_AMOUNT_MAX, "%+.1f%%", change);
    return buf;
}

char *cw_device_format(char *buf, uint32_t device)
{
    if (device == CW_DEVICE_HOST)
        snprintf(buf, CW_AMOUNT_MAX, "host");
    else
        snprintf(buf, CW_AMOUNT_MAX, "device %" PRIu32, device);
    return buf;
}

/* ---- text ---- */

void cw_text_put(FILE *out, const char *text)
{
    for (size_t len = strlen(text), size; len > 0; text += size, len -= size) {
        int is_printable;

        size = cw_printable_scan(text, len, &is_printable);
        fwrite(is_printable ? text : "?", 1, is_printable ? size : 1, out);
    }
}

const char *cw_last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void cw_process_put(FILE *out, const struct cw_report_model *model)
{
    const struct cw_process_facts *process = &model->process;
    char buf[CW_AMOUNT_MAX];

    cw_text_put(out, process->exe[0] ? cw_last_component(process->exe) : "?");
    fputs(" (", out);
    if (process->rank[0]) {
        fputs("rank ", out);
        cw_text_put(out, process->rank);
        fputs(", ", out);
    }
    fprintf(out, "pid %" PRIu32 "), %s, ", process->pid,
            cw_format_duration(buf, sizeof(buf), model->snapshot.duration_ns));
    cw_text_put(out, process->end);
    if (process->has_exit_code)
        fprintf(out, " %d", process->exit_code);
}

void cw_site_put(FILE *out, const struct cw_report_model *model,
                 const struct cw_snapshot_site *site, uint32_t device)
{
    const char *tag = cw_report_tag_label(model, site->tag);
    char buf[CW_AMOUNT_MAX];

    fprintf(out, "site %08" PRIx32 "  ", site->id);
    cw_text_put(out, site->api);
    fprintf(out, ", %s", cw_kind_name(site->kind));
    if (device != CW_SITE_NONE && device != CW_DEVICE_HOST)
        fprintf(out, ", %s", cw_device_format(buf, device));
    if (tag[0]) {
        fputs(", tag: ", out);
        cw_text_put(out, tag);
    }
    if (cw_report_site_home(site) == CW_SITE_NONE)
        fputs(", not in the sums", out);
}

/* The calls of a stack, innermost first: functions inlined into a frame are separate calls at its
 * address. */
struct calls {
    const struct cw_report_model *model;
    const struct cw_report_stack *stack; /* NULL: none */
    uint32_t frame, inlined;             /* the next one */
    struct cw_report_frame call;         /* this one */
    int is_inlined;
    uint32_t at; /* its frame */
};

static int next_call(struct calls *calls)
{
    const struct cw_report_frame *frame;

    if (!calls->stack || calls->frame >= calls->stack->shown)
        return 0;
    calls->at = calls->frame;
    frame = cw_report_shown_frame(calls->model, calls->stack, calls->frame);
    calls->call = *frame;
    calls->is_inlined = calls->inlined < frame->inlines;
    if (calls->is_inlined) {
        const struct cw_report_place *place =
            &calls->model->place[frame->inlined + calls->inlined++];

        calls->call.function = place->function;
        calls->call.file = place->file;
        calls->call.line = place->line;
        calls->call.is_python = 0;
    } else {
        calls->frame++;
        calls->inlined = 0;
    }
    return 1;
}

static struct calls calls_of(const struct cw_report_model *model,
                             const struct cw_snapshot_site *site)
{
    return (struct calls){.model = model, .stack = cw_report_stack(model, site->stack)};
}

static void put_call(FILE *out, const struct calls *calls)
{
    const struct cw_report_frame *call = &calls->call;
    const char *module = cw_report_module_name(calls->model, call->module);
    char buf[NAME_MAX_BYTES], shorter[NAME_MAX_BYTES];

    cw_text_put(out, cw_short_name(cw_report_frame_name(calls->model, call, buf, sizeof(buf)),
                                   CW_NAME_WHOLE, shorter, sizeof(shorter)));
    if (call->file) {
        fputs("  ", out);
        cw_text_put(out, cw_last_component(call->file));
        if (call->line != 0)
            fprintf(out, ":%" PRIu32, call->line);
    }
    if (calls->is_inlined) {
        fputs("  (inlined)", out);
    } else if (module[0] && call->function) {
        fputs("  ", out);
        cw_text_put(out, module);
    }
}

/* A stack as lines: a call each, or a run of frames that are folded. */
struct lines {
    struct calls calls;
    struct cw_fold_frames frames;
    struct cw_folds folds;
    uint32_t first, count; /* the calls of this line */
    uint32_t frame;        /* the first frame of it */
};

static struct lines lines_of(const struct cw_report_model *model,
                             const struct cw_snapshot_site *site)
{
    struct lines lines = {.calls = calls_of(model, site),
                          .frames = {.model = model, .frame = model->frame}};
    const struct cw_report_stack *stack = lines.calls.stack;

    if (stack) {
        lines.frames.number = &model->stack_frame[stack->first + stack->shown_first];
        lines.frames.count = stack->shown;
        cw_folds_find(&lines.frames, &lines.folds);
    }
    return lines;
}

static int next_line(struct lines *lines)
{
    struct calls *calls = &lines->calls;

    lines->first += lines->count;
    lines->count = 0;
    if (!next_call(calls))
        return 0;
    lines->count = 1;
    lines->frame = calls->at;
    if (lines->folds.frame[calls->at])
        while (calls->frame < lines->frames.count && lines->folds.frame[calls->frame] &&
               next_call(calls))
            lines->count++;
    return 1;
}

static void put_line(FILE *out, const struct lines *lines)
{
    char names[CW_FOLD_NAMES_MAX];

    if (!lines->folds.frame[lines->frame]) {
        fprintf(out, "      #%" PRIu32 " ", lines->first);
        put_call(out, &lines->calls);
    } else {
        unsigned frames = lines->calls.at - lines->frame + 1;

        fprintf(out, "      ... %" PRIu32 " frames of ", lines->count);
        cw_text_put(out, cw_fold_names(&lines->frames, lines->frame, frames, names));
    }
    fputc('\n', out);
}

/* Lines from..to-1; before them, how many calls the lines after..from-1 stand for. */
static void put_lines(FILE *out, struct lines lines, uint32_t after, uint32_t from, uint32_t to)
{
    uint32_t skipped = 0;

    for (uint32_t i = 0; i < to && next_line(&lines); i++) {
        if (i < from) {
            skipped += i >= after ? lines.count : 0;
            continue;
        }
        if (i == from && skipped > 0)
            fprintf(out, "      ... %" PRIu32 " more\n", skipped);
        put_line(out, &lines);
    }
}

struct extent {
    uint32_t lines, calls;
    uint32_t script; /* the line of the innermost call of the program's own script; `lines`: none */
};

static struct extent measure(struct lines lines)
{
    struct extent all = {.script = UINT32_MAX};

    for (; next_line(&lines); all.lines++) {
        const struct cw_report_frame *call = &lines.calls.call;

        all.calls += lines.count;
        if (all.script == UINT32_MAX && call->is_python && !lines.folds.frame[lines.frame] &&
            !(call->file && cw_file_is_installed(call->file)))
            all.script = all.lines;
    }
    if (all.script > all.lines)
        all.script = all.lines;
    return all;
}

static uint32_t calls_in(struct lines lines, uint32_t end)
{
    uint32_t calls = 0;

    for (uint32_t i = 0; i < end && next_line(&lines); i++)
        calls += lines.count;
    return calls;
}

/* The innermost lines, plus a script's line with its caller and callee if not among them. */
void cw_stack_put(FILE *out, const struct cw_report_model *model,
                  const struct cw_snapshot_site *site, unsigned limit)
{
    struct lines lines = lines_of(model, site);
    struct extent all = measure(lines);
    uint32_t end = all.lines < limit ? all.lines : limit;

    if (limit > AROUND && all.script < all.lines && all.script >= limit) {
        uint32_t begin = all.script - 1;

        put_lines(out, lines, 0, 0, limit - AROUND);
        end = begin + AROUND < all.lines ? begin + AROUND : all.lines;
        put_lines(out, lines, limit - AROUND, begin, end);
    } else {
        put_lines(out, lines, 0, 0, end);
    }
    if (all.lines > end)
        fprintf(out, "      ... %" PRIu32 " more\n", all.calls - calls_in(lines, end));
}

const char *cw_site_name(const struct cw_report_model *model, const struct cw_snapshot_site *site,
                         char *buf, size_t cap)
{
    struct calls calls = calls_of(model, site);

    return next_call(&calls) ? cw_report_frame_name(model, &calls.call, buf, cap) : "";
}

/* ---- JSON ---- */

static void put_json_call(struct cw_json *json, const struct calls *calls)
{
    const struct cw_report_frame *call = &calls->call;

    cw_json_open(json, NULL, '{');
    if (call->function)
        cw_json_string(json, "func", call->function);
    if (call->file)
        cw_json_string(json, "file", call->file);
    if (call->line != 0)
        cw_json_number(json, "line", call->line);
    if (call->module != 0) {
        cw_json_string(json, "module", cw_report_module_name(calls->model, call->module));
        cw_json_number(json, "offset", call->offset);
    }
    if (calls->is_inlined)
        cw_json_truth(json, "inlined", 1);
    cw_json_close(json, '}');
}

void cw_site_json(struct cw_json *json, const struct cw_report_model *model,
                  const struct cw_snapshot_site *site, uint32_t device)
{
    struct calls calls = calls_of(model, site);
    char id[16];

    snprintf(id, sizeof(id), "%08" PRIx32, site->id);
    cw_json_string(json, "site", id);
    cw_json_string(json, "api", site->api);
    cw_json_string(json, "kind", cw_kind_name(site->kind));
    if (device != CW_SITE_NONE)
        cw_json_device(json, "device", device);
    if (site->tag != 0)
        cw_json_string(json, "tag", cw_report_tag_label(model, site->tag));
    cw_json_truth(json, "counted", cw_report_site_home(site) != CW_SITE_NONE);
    cw_json_open(json, "stack", '[');
    while (next_call(&calls))
        put_json_call(json, &calls);
    cw_json_close(json, ']');
}

void cw_process_json(struct cw_json *json, const struct cw_report_model *model)
{
    cw_json_string(json, "file", model->source);
    cw_json_number(json, "pid", model->process.pid);
    cw_json_string(json, "exe", model->process.exe);
    cw_json_string(json, "host", model->process.host);
    if (model->process.rank[0])
        cw_json_string(json, "rank", model->process.rank);
    cw_json_number(json, "duration_ns", model->snapshot.duration_ns);
}

void cw_change_json(struct cw_json *json, const char *key, uint64_t before, uint64_t after)
{
    cw_json_open(json, key, '{');
    cw_json_number(json, "before", before);
    cw_json_number(json, "after", after);
    cw_json_key(json, "delta");
    cw_out_printf(json->out, "%s%ju", after < before ? "-" : "",
                  (uintmax_t)(after < before ? before - after : after - before));
    cw_json_close(json, '}');
}
