/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, "main;load;cudaMalloc 4096", one line for each call site, outermost first: the
 * input of flamegraph.pl and inferno, which speedscope reads too. The leaf is what was called.
 * https://github.com/brendangregg/FlameGraph (stackcollapse)
 */
#include "cli/export/form.h"
#include "cli/export/form_collapsed.h"

#include <inttypes.h>

#define NAME_MAX_BYTES 512

/* A semicolon ends a frame, and a line break the stack: names must contain neither. Spaces are
 * harmless, because the number follows the last one. */
static void put_name(FILE *out, const char *name)
{
    for (; *name; name++)
        fputc(*name == ';' ? ',' : (unsigned char)*name < ' ' ? ' ' : *name, out);
}

static void put_frame(FILE *out, const struct cw_report_model *model,
                      const struct cw_report_frame *frame)
{
    char buf[NAME_MAX_BYTES];

    put_name(out, cw_report_frame_name(model, frame, buf, sizeof(buf)));
    if (frame->is_python && frame->file) {
        fputs(" (", out);
        put_name(out, frame->file);
        fprintf(out, ":%" PRIu32 ")", frame->line);
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
                             const struct cw_snapshot_site *site)
{
    const struct cw_report_stack *stack = cw_report_stack(model, site->stack);

    for (uint32_t i = stack ? stack->shown : 0; i-- > 0;) {
        const struct cw_report_frame *frame = cw_report_shown_frame(model, stack, i);

        put_frame(out, model, frame);
        for (uint32_t k = frame->inlines; k-- > 0;)
            put_inlined(out, model, frame, k);
    }
    put_name(out, site->api);
}

int cw_form_collapsed(const struct cw_form_request *request)
{
    for (uint32_t i = 0; i < request->sites; i++) {
        const struct cw_snapshot_site *site = &request->model->snapshot.site[request->site[i]];
        uint64_t value = cw_metric_of(site, request->selection->metric);

        if (value == 0)
            continue;
        cw_form_collapsed_stack(request->out, request->model, site);
        fprintf(request->out, " %" PRIu64 "\n", value);
    }
    return ferror(request->out) ? -1 : 0;
}
