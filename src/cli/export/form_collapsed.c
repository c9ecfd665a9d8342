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

/* A semicolon ends a frame, a line break the stack, and what stands behind the last space is the
 * number; only the first two can be mistaken. */
static void put_name(FILE *out, const char *name)
{
    for (; *name; name++)
        fputc(*name == ';' ? ',' : (unsigned char)*name < ' ' ? ' ' : *name, out);
}

static void put_line(FILE *out, const struct cw_model_frame *frame)
{
    fputs(" (", out);
    put_name(out, frame->file);
    fprintf(out, ":%" PRIu32 ")", frame->line);
}

static void put_frame(FILE *out, const struct cw_model *model, const struct cw_model_frame *frame)
{
    char buf[NAME_MAX_BYTES];

    put_name(out, cw_model_frame_name(model, frame, buf, sizeof(buf)));
    if (frame->is_python && frame->file[0])
        put_line(out, frame);
    else if (frame->is_inlined)
        fputs(" (inlined)", out);
    fputc(';', out);
}

void cw_form_collapsed_stack(FILE *out, const struct cw_model *model,
                             const struct cw_model_site *site)
{
    if (site->stack != CW_MODEL_NONE) {
        const struct cw_model_stack *stack = &model->stack[site->stack];

        for (uint32_t k = stack->count; k-- > 0;)
            put_frame(out, model, &model->frame[model->stack_frame[stack->first + k]]);
    }
    put_name(out, site->api);
}

int cw_form_collapsed(const struct cw_form_request *request)
{
    for (uint32_t i = 0; i < request->sites; i++) {
        const struct cw_model_site *site = &request->model->site[request->site[i]];
        uint64_t value = cw_metric_of(site, request->selection->metric);

        if (value == 0)
            continue;
        cw_form_collapsed_stack(request->out, request->model, site);
        fprintf(request->out, " %" PRIu64 "\n", value);
    }
    return ferror(request->out) ? -1 : 0;
}
