/* SPDX-License-Identifier: MIT */
/* Call sites and amounts. See site_text.h. */
#include "cli/model/site_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/out.h"
#include "report/json/json_put.h"
#include "report/symbols/stack.h"

#define NAME_MAX_BYTES 512
#define AROUND         3 /* a script's line: what it calls, itself, who calls it */

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
    if (device == CW_MODEL_HOST)
        snprintf(buf, CW_AMOUNT_MAX, "host");
    else
        snprintf(buf, CW_AMOUNT_MAX, "device %" PRIu32, device);
    return buf;
}

/* ---- text ---- */

void cw_text_put(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void cw_process_put(FILE *out, const struct cw_model *model)
{
    const struct cw_model_process *process = &model->process;
    char buf[CW_AMOUNT_MAX];

    cw_text_put(out, process->exe[0] ? last_component(process->exe) : "?");
    fputs(" (", out);
    if (process->rank[0]) {
        fputs("rank ", out);
        cw_text_put(out, process->rank);
        fputs(", ", out);
    }
    fprintf(out, "pid %" PRIu32 "), %s, ", process->pid,
            cw_format_duration(buf, sizeof(buf), process->duration_ns));
    cw_text_put(out, process->end);
    if (process->has_exit_code)
        fprintf(out, " %d", process->exit_code);
}

void cw_site_put(FILE *out, const struct cw_model_site *site, uint32_t device)
{
    char buf[CW_AMOUNT_MAX];

    fprintf(out, "site %08" PRIx32 "  ", site->id);
    cw_text_put(out, site->api);
    fprintf(out, ", %s", site->kind);
    if (device != CW_MODEL_NONE && device != CW_MODEL_HOST)
        fprintf(out, ", %s", cw_device_format(buf, device));
    if (site->tag[0]) {
        fputs(", tag: ", out);
        cw_text_put(out, site->tag);
    }
    if (!site->is_counted)
        fputs(", not in the sums", out);
}

static void put_frame(FILE *out, const struct cw_model *model, const struct cw_model_frame *frame)
{
    const char *module = cw_model_module_name(model, frame->module);
    char buf[NAME_MAX_BYTES];

    cw_text_put(out, cw_model_frame_name(model, frame, buf, sizeof(buf)));
    if (frame->file[0]) {
        fputs("  ", out);
        cw_text_put(out, last_component(frame->file));
        if (frame->line != 0)
            fprintf(out, ":%" PRIu32, frame->line);
    }
    if (module[0] && frame->function[0] && !frame->is_inlined) {
        fputs("  ", out);
        cw_text_put(out, module);
    } else if (frame->is_inlined)
        fputs("  (inlined)", out);
}

static const struct cw_model_frame *frame_of(const struct cw_model *model, uint32_t stack,
                                             uint32_t number)
{
    return &model->frame[model->stack_frame[model->stack[stack].first + number]];
}

static void put_frames(FILE *out, const struct cw_model *model, uint32_t stack, uint32_t from,
                       uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        fprintf(out, "      #%" PRIu32 " ", i);
        put_frame(out, model, frame_of(model, stack, i));
        fputc('\n', out);
    }
}

/* The place of the innermost line of a script that is the program's own; `count` where there is
 * none. */
static uint32_t find_script(const struct cw_model *model, uint32_t stack, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_model_frame *frame = frame_of(model, stack, i);

        if (frame->is_python && !cw_file_is_installed(frame->file))
            return i;
    }
    return count;
}

/* The innermost ones, and where a script's line is not among them, it and who calls and is called.
 */
void cw_stack_put(FILE *out, const struct cw_model *model, const struct cw_model_site *site,
                  unsigned limit)
{
    uint32_t count = site->stack != CW_MODEL_NONE ? model->stack[site->stack].count : 0;
    uint32_t script = find_script(model, site->stack, count);
    uint32_t end = count < limit ? count : limit;

    if (limit > AROUND && script < count && script >= limit) {
        uint32_t begin = script - 1;

        put_frames(out, model, site->stack, 0, limit - AROUND);
        if (begin > limit - AROUND)
            fprintf(out, "      ... %" PRIu32 " more\n", begin - (limit - AROUND));
        end = begin + AROUND < count ? begin + AROUND : count;
        put_frames(out, model, site->stack, begin, end);
    } else {
        put_frames(out, model, site->stack, 0, end);
    }
    if (count > end)
        fprintf(out, "      ... %" PRIu32 " more\n", count - end);
}

const char *cw_site_name(const struct cw_model *model, const struct cw_model_site *site, char *buf,
                         size_t cap)
{
    if (site->stack == CW_MODEL_NONE || model->stack[site->stack].count == 0)
        return "";
    return cw_model_frame_name(model, frame_of(model, site->stack, 0), buf, cap);
}

/* ---- JSON ---- */

void cw_device_json(struct cw_json *json, uint32_t device)
{
    if (device == CW_MODEL_HOST)
        cw_json_string(json, "device", "host");
    else
        cw_json_number(json, "device", device);
}

static void put_json_frame(struct cw_json *json, const struct cw_model *model,
                           const struct cw_model_frame *frame)
{
    cw_json_open(json, NULL, '{');
    if (frame->function[0])
        cw_json_string(json, "func", frame->function);
    if (frame->file[0])
        cw_json_string(json, "file", frame->file);
    if (frame->line != 0)
        cw_json_number(json, "line", frame->line);
    if (frame->module < model->modules) {
        cw_json_string(json, "module", cw_model_module_name(model, frame->module));
        cw_json_number(json, "offset", frame->offset);
    }
    if (frame->is_inlined)
        cw_json_truth(json, "inlined", 1);
    cw_json_close(json, '}');
}

void cw_site_json(struct cw_json *json, const struct cw_model *model,
                  const struct cw_model_site *site, uint32_t device)
{
    char id[16];

    snprintf(id, sizeof(id), "%08" PRIx32, site->id);
    cw_json_string(json, "site", id);
    cw_json_string(json, "api", site->api);
    cw_json_string(json, "kind", site->kind);
    if (device != CW_MODEL_NONE)
        cw_device_json(json, device);
    if (site->tag[0])
        cw_json_string(json, "tag", site->tag);
    cw_json_truth(json, "counted", site->is_counted);
    cw_json_open(json, "stack", '[');
    for (uint32_t i = 0; site->stack != CW_MODEL_NONE && i < model->stack[site->stack].count; i++)
        put_json_frame(json, model, frame_of(model, site->stack, i));
    cw_json_close(json, ']');
}

void cw_process_json(struct cw_json *json, const struct cw_model *model)
{
    cw_json_string(json, "file", model->source);
    cw_json_number(json, "pid", model->process.pid);
    cw_json_string(json, "exe", model->process.exe);
    cw_json_string(json, "host", model->process.host);
    if (model->process.rank[0])
        cw_json_string(json, "rank", model->process.rank);
    cw_json_number(json, "duration_ns", model->process.duration_ns);
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
