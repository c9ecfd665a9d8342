/* SPDX-License-Identifier: MIT */
/* Frames and inlined functions as one list. See calls.h. */
#include "cli/model/calls.h"

#include <stdlib.h>

#include "cli/ui/message.h"

static void add_call(struct cw_calls *calls, const struct cw_report_frame *frame,
                     const struct cw_report_place *place, int is_inlined)
{
    calls->call[calls->count++] =
        (struct cw_call){.function = place->function ? place->function : "",
                         .file = place->file ? place->file : "",
                         .line = place->line,
                         .module = frame->module - 1,
                         .offset = frame->offset,
                         .is_python = frame->is_python && !is_inlined,
                         .is_inlined = (uint8_t)is_inlined};
}

/* own: the call of each frame. */
static void add_frames(struct cw_calls *calls, uint32_t *own)
{
    const struct cw_report_model *model = calls->model;

    for (uint32_t i = 0; i < model->frames; i++) {
        const struct cw_report_frame *frame = &model->frame[i];
        const struct cw_report_place place = {frame->function, frame->file, frame->line};

        for (uint32_t k = 0; k < frame->inlines; k++)
            add_call(calls, frame, &model->place[frame->inlined + k], 1);
        own[i] = calls->count;
        add_call(calls, frame, &place, 0);
    }
}

static uint64_t count_shown(const struct cw_report_model *model)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < model->stacks; i++)
        for (uint32_t k = 0; k < model->stack[i].shown; k++)
            count += cw_report_shown_frame(model, &model->stack[i], k)->inlines + UINT64_C(1);
    return count;
}

static void add_stacks(struct cw_calls *calls, const uint32_t *own)
{
    const struct cw_report_model *model = calls->model;
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->stacks; i++) {
        calls->stack[i + 1].first = count;
        for (uint32_t k = 0; k < model->stack[i].shown; k++) {
            const struct cw_report_frame *frame = cw_report_shown_frame(model, &model->stack[i], k);
            uint32_t last = own[frame - model->frame];

            for (uint32_t at = last - frame->inlines; at <= last; at++)
                calls->stack_call[count++] = at;
        }
        calls->stack[i + 1].count = count - calls->stack[i + 1].first;
    }
}

int cw_calls_init(struct cw_calls *calls, const struct cw_report_model *model)
{
    uint64_t shown = count_shown(model);
    uint32_t *own = calloc((size_t)model->frames + 1, sizeof(*own));

    *calls = (struct cw_calls){.model = model};
    calls->call = calloc((size_t)model->frames + model->places + 1, sizeof(*calls->call));
    calls->stack = calloc((size_t)model->stacks + 1, sizeof(*calls->stack));
    if (shown < UINT32_MAX)
        calls->stack_call = calloc(shown + 1, sizeof(*calls->stack_call));
    if (own && calls->call && calls->stack && calls->stack_call) {
        add_frames(calls, own);
        add_stacks(calls, own);
        free(own);
        return 0;
    }
    cw_cli_error("'%s': out of memory", model->source);
    free(own);
    cw_calls_free(calls);
    return -1;
}

void cw_calls_free(struct cw_calls *calls)
{
    free(calls->call);
    free(calls->stack);
    free(calls->stack_call);
    *calls = (struct cw_calls){.model = calls->model};
}

const struct cw_call_stack *cw_calls_stack(const struct cw_calls *calls, uint32_t stack)
{
    return &calls->stack[stack <= calls->model->stacks ? stack : 0];
}

uint32_t cw_calls_first_inlined(const struct cw_calls *calls, uint32_t call)
{
    while (call > 0 && calls->call[call - 1].is_inlined)
        call--;
    return call;
}

const char *cw_call_name(const struct cw_calls *calls, uint32_t call, char *buf, size_t cap)
{
    const struct cw_call *from = &calls->call[call];
    const struct cw_report_frame frame = {.function = from->function[0] ? from->function : NULL,
                                          .module = from->module + 1,
                                          .offset = from->offset};

    return cw_report_frame_name(calls->model, &frame, buf, cap);
}
