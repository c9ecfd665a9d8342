/* SPDX-License-Identifier: MIT */
/* Stacks for the model of the report layer: of those alone that are shown. See model_report.h. */
#include "cli/model/model_report_parts.h"

static const char *known(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

#define IS_WANTED UINT32_MAX /* in place of a count */

void cw_model_report_want(void *arg, uint32_t stack)
{
    struct cw_model_report *self = arg;

    if (stack == 0 || stack >= self->model.stacks || self->model.stack[stack].count == IS_WANTED)
        return;
    self->model.stack[stack].count = IS_WANTED;
    self->wanted[self->wants++] = stack;
}

static void add_frame(struct cw_model_report *self, const struct cw_model_frame *from)
{
    struct cw_report_model *to = &self->model;
    uint32_t first =
        to->frames > 0 ? to->frame[to->frames - 1].inlined + to->frame[to->frames - 1].inlines : 0;

    if (from->is_inlined) {
        to->place[to->places++] =
            (struct cw_report_place){known(from->function), known(from->file), from->line};
        return;
    }
    to->frame[to->frames++] =
        (struct cw_report_frame){.function = known(from->function),
                                 .file = known(from->file),
                                 .line = from->line,
                                 .module = from->module != CW_MODEL_NONE ? from->module + 1 : 0,
                                 .module_name = cw_model_module_name(self->from, from->module),
                                 .offset = from->offset,
                                 .address = from->address,
                                 .inlined = first,
                                 .inlines = to->places - first,
                                 .is_python = from->is_python};
}

static void fill_stack(struct cw_model_report *self, uint32_t number)
{
    const struct cw_model_stack *from = &self->from->stack[number - 1];
    struct cw_report_stack *to = &self->model.stack[number];

    to->first = self->model.frames;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct cw_model_frame *frame =
            &self->from->frame[self->from->stack_frame[from->first + i]];

        if (self->model.frames - to->first < CW_DEPTH_MAX)
            add_frame(self, frame);
    }
    to->count = self->model.frames - to->first;
}

int cw_model_report_begin_stacks(struct cw_model_report *self)
{
    self->model.stacks = self->from->stacks + 1;
    self->model.stack = cw_model_report_take(self, self->model.stacks, sizeof(*self->model.stack));
    self->wanted = cw_model_report_take(self, self->model.stacks, sizeof(*self->wanted));
    return self->failed ? -1 : 0;
}

void cw_model_report_fill_stacks(struct cw_model_report *self)
{
    size_t frames = 0;

    for (uint32_t i = 0; i < self->wants; i++)
        frames += self->from->stack[self->wanted[i] - 1].count;
    self->model.frame = cw_model_report_take(self, frames, sizeof(*self->model.frame));
    self->model.place = cw_model_report_take(self, frames, sizeof(*self->model.place));
    for (uint32_t i = 0; !self->failed && i < self->wants; i++)
        fill_stack(self, self->wanted[i]);
}
