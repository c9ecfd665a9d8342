/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, "main;load;cudaMalloc 4096", one line for each stack, outermost first: the
 * input of flamegraph.pl and inferno, which speedscope reads too. The leaf is what was called.
 * https://github.com/brendangregg/FlameGraph (stackcollapse)
 */
#include "cli/export/form.h"
#include "base/printable.h"
#include "cli/export/form_collapsed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/message.h"
#include "cli/ui/strings.h"

#define NAME_MAX_BYTES 512

/* A semicolon ends a frame, and a line break the stack: names must contain neither. Spaces are
 * harmless, because the number follows the last one. */
static void put_name(FILE *out, const char *name)
{
    for (size_t len = strlen(name), size; len > 0; name += size, len -= size) {
        int is_printable;

        size = cw_printable_scan(name, len, &is_printable);
        if (*name == ';' || !is_printable)
            fputc(*name == ';' ? ',' : ' ', out);
        else
            fwrite(name, 1, size, out);
    }
}

/* A function is one frame, wherever it calls; by_call: which call it is, too. */
static void put_frame(FILE *out, const struct cw_report_model *model,
                      const struct cw_report_frame *frame, int by_call)
{
    char buf[NAME_MAX_BYTES];

    put_name(out, cw_report_frame_name(model, frame, buf, sizeof(buf)));
    if (frame->is_python && frame->file) {
        fputs(" (", out);
        put_name(out, frame->file);
        if (by_call)
            fprintf(out, ":%" PRIu32, frame->line);
        fputc(')', out);
    } else if (by_call && frame->function) {
        fputs(" (", out);
        put_name(out, cw_report_module_name(model, frame->module));
        fprintf(out, "+0x%" PRIx64 ")", frame->offset);
    }
    fputc(';', out);
}

/* A call without a name is shown by its address, as its frame is. */
static void put_inlined(FILE *out, const struct cw_report_model *model,
                        const struct cw_report_frame *frame, uint32_t at)
{
    struct cw_report_frame inlined = {.module = frame->module, .offset = frame->offset};
    char buf[NAME_MAX_BYTES];

    inlined.function = model->place[frame->inlined + at].function;
    put_name(out, cw_report_frame_name(model, &inlined, buf, sizeof(buf)));
    fputs(" (inlined);", out);
}

void cw_form_collapsed_stack(FILE *out, const struct cw_report_model *model,
                             const struct cw_snapshot_site *site, int by_call)
{
    const struct cw_report_stack *stack = cw_report_stack(model, site->stack);

    for (uint32_t i = stack ? stack->shown : 0; i-- > 0;) {
        const struct cw_report_frame *frame = cw_report_shown_frame(model, stack, i);

        put_frame(out, model, frame, by_call);
        for (uint32_t k = frame->inlines; k-- > 0;)
            put_inlined(out, model, frame, k);
    }
    put_name(out, site->api);
}

/* Adds the value to that of the stack's line; 0, or CW_FORM_TOLD. */
static int add_line(const struct cw_form_request *request, const struct cw_snapshot_site *site,
                    struct cw_strings *lines, uint64_t *value)
{
    char *text = NULL;
    size_t len;
    FILE *line = open_memstream(&text, &len);

    if (line) {
        cw_form_collapsed_stack(line, request->model, site, request->by_call);
        if (fclose(line) == 0)
            value[cw_strings_add(lines, text)] += cw_metric_of(site, request->selection->metric);
    }
    if (!text)
        cw_cli_error("out of memory for the stacks");
    free(text);
    return text && !lines->failed ? 0 : CW_FORM_TOLD;
}

/* Sites with equal frames are one line, in the place of the first. */
int cw_form_collapsed(const struct cw_form_request *request)
{
    uint64_t *value = calloc((size_t)request->sites + 1, sizeof(*value));
    struct cw_strings lines = {.count = 0};
    int rc = value ? 0 : CW_FORM_TOLD;

    if (!value)
        cw_cli_error("out of memory for the stacks");
    for (uint32_t i = 0; i < request->sites && rc == 0; i++) {
        const struct cw_snapshot_site *site = &request->model->snapshot.site[request->site[i]];

        if (cw_metric_of(site, request->selection->metric) != 0)
            rc = add_line(request, site, &lines, value);
    }
    for (uint32_t i = 0; i < lines.count && rc == 0; i++)
        fprintf(request->out, "%s %" PRIu64 "\n", lines.text[i], value[i]);
    cw_strings_free(&lines);
    free(value);
    return rc == 0 && ferror(request->out) ? -1 : rc;
}
