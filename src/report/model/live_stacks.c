/* SPDX-License-Identifier: MIT */
/* The wanted stacks of a live layout, each frame once. See model_live.h. */
#include "report/model/live_parts.h"

#include "report/symbols/stack.h"
#include "report/symbols/symbol.h"
#include "report/symbols/toolkit.h"

#define IS_WANTED UINT32_MAX /* in place of a count */

void cw_live_model_begin_stacks(struct cw_live_model *live)
{
    uint32_t frames = cw_view_count(live->view, CW_TABLE_FRAME);

    live->model.stack = cw_live_model_take(live, frames, sizeof(*live->model.stack));
    live->wanted = cw_live_model_take(live, frames, sizeof(*live->wanted));
    live->frame_of = cw_live_model_take(live, frames, sizeof(*live->frame_of));
    if (live->model.stack && live->wanted && live->frame_of && frames > 0)
        live->model.stacks = frames - 1;
}

void cw_live_model_want(void *arg, uint32_t stack)
{
    struct cw_live_model *live = arg;
    struct cw_report_model *model = &live->model;

    if (stack == 0 || stack > model->stacks || model->stack[stack - 1].count == IS_WANTED)
        return;
    model->stack[stack - 1].count = IS_WANTED;
    live->wanted[live->wants++] = stack;
    cw_symbols_want(live->symbols, stack);
}

void cw_live_model_want_all(struct cw_live_model *live)
{
    const struct cw_snapshot *snapshot = &live->model.snapshot;

    for (uint32_t i = 0; i < snapshot->sites; i++)
        cw_live_model_want(live, snapshot->site[i].stack);
}

/* ---- frames ---- */

static int is_of_cuda(struct cw_symbol_place place)
{
    return cw_toolkit_has_function(place.function, place.file);
}

static void read_places(struct cw_live_model *live, uint32_t index, struct cw_report_frame *out)
{
    const struct cw_symbols *symbols = live->symbols;
    struct cw_report_model *model = &live->model;
    unsigned count = cw_symbols_places(symbols, index);
    unsigned first = 0; /* that is not of a header of CUDA's: nobody looks for the place there */
    struct cw_symbol_place own;

    if (count == 0)
        return;
    own = cw_symbols_place(symbols, index, count - 1);
    if (!out->is_python) {
        out->file = cw_live_model_text(live, own.file);
        out->line = own.line;
    }
    while (first + 1 < count && is_of_cuda(cw_symbols_place(symbols, index, first)))
        first++;
    out->inlined = model->places;
    out->inlines = count - 1 - first;
    for (unsigned i = first; i + 1 < count; i++) {
        struct cw_symbol_place place = cw_symbols_place(symbols, index, i);

        model->place[model->places++] =
            (struct cw_report_place){cw_live_model_text(live, place.function),
                                     cw_live_model_text(live, place.file), place.line};
    }
}

static void read_frame(struct cw_live_model *live, uint32_t index, struct cw_report_frame *out)
{
    const struct cw_live_frame *frame = cw_view_frame(live->view, index);
    const struct cw_live_module *module = cw_stack_module(live->view, index);
    const struct cw_live_code *code = cw_stack_code(live->view, index);
    const char *file = code ? cw_live_model_text_at(live, code->file) : "";

    out->function = cw_live_model_text(live, cw_stack_function(live->symbols, live->view, index));
    out->is_debug_name = out->function && !code && !cw_symbols_table_name(live->symbols, index);
    out->is_python = frame && frame->module == CW_MODULE_PYTHON;
    if (file[0] != '\0') {
        out->file = file;
        out->line = code->line;
    }
    if (frame && !out->is_python)
        out->address = frame->pc;
    if (frame && module) {
        out->module = frame->module;
        out->offset = cw_frame_offset(frame, module);
    }
    read_places(live, index, out);
}

/* ---- stacks ---- */

/* Numbers the frames, and counts the room that they take. */
static void number_frames(struct cw_live_model *live, uint32_t *out_places)
{
    struct cw_stack all;

    for (uint32_t i = 0; i < live->wants; i++) {
        cw_stack_walk(live->view, live->wanted[i], &all);
        live->model.stack_frames += all.count;
        for (unsigned k = 0; k < all.count; k++) {
            uint32_t *number = &live->frame_of[all.frame[k]];

            if (*number != 0)
                continue;
            *number = ++live->model.frames;
            *out_places += cw_symbols_places(live->symbols, all.frame[k]);
        }
    }
}

static void read_stack(struct cw_live_model *live, uint32_t number, uint32_t id, uint32_t *frames)
{
    struct cw_report_model *model = &live->model;
    struct cw_report_stack *stack = &model->stack[number - 1];
    struct cw_stack all, shown;

    cw_stack_walk(live->view, number, &all);
    cw_stack_visible(live->symbols, live->view, number, &shown);
    stack->id = id;
    stack->first = model->stack_frames;
    stack->count = all.count;
    stack->shown = shown.count;
    while (shown.count > 0 && all.frame[stack->shown_first] != shown.frame[0])
        stack->shown_first++;
    for (unsigned i = 0; i < all.count; i++) {
        uint32_t index = live->frame_of[all.frame[i]] - 1;

        model->stack_frame[model->stack_frames++] = index;
        if (index < *frames) /* already known */
            continue;
        read_frame(live, all.frame[i], &model->frame[index]);
        *frames = index + 1;
    }
}

void cw_live_model_resolve(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    uint32_t places = 0, frames = 0;

    cw_symbols_resolve(live->symbols);
    for (uint32_t i = 0; i < live->wants; i++)
        model->stack[live->wanted[i] - 1].count = 0;
    number_frames(live, &places);
    model->frame = cw_live_model_take(live, model->frames, sizeof(*model->frame));
    model->place = cw_live_model_take(live, places, sizeof(*model->place));
    model->stack_frame = cw_live_model_take(live, model->stack_frames, sizeof(uint32_t));
    model->stack_frames = 0;
    if (!model->frame || !model->place || !model->stack_frame)
        model->frames = live->wants = 0;
    for (uint32_t i = 0; i < live->wants; i++)
        read_stack(live, live->wanted[i], i + 1, &frames);
}
