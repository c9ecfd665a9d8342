/* SPDX-License-Identifier: MIT */
/* Lines for a model from JSON. See json_lines.h. */
#include "cli/model/json_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input/source_file.h"
#include "report/symbols/symbol.h"
#include "report/symbols/toolkit.h"
#include "report/text/report_text.h"

#define BUILD_ID_MAX 32

struct cw_json_lines {
    struct cw_report_model *model;
    struct cw_report_request how; /* the reader of debug information, the demangler */
    struct cw_report_place *place;
    size_t places, room;
    char **name; /* demangled */
    size_t names, names_room;
    uint8_t *is_wanted; /* by frame; NULL: all are */
    struct cw_symbol_place found[CW_SYMBOL_PLACES_MAX];
};

static void want_stack(void *arg, uint32_t number)
{
    struct cw_json_lines *self = arg;
    const struct cw_report_stack *stack = cw_report_stack(self->model, number);

    for (uint32_t i = 0; stack && i < stack->shown; i++)
        self->is_wanted[cw_report_shown_frame(self->model, stack, i) - self->model->frame] = 1;
}

/* ---- storage ---- */

static int grow(void *array, size_t *room, size_t count, size_t size)
{
    size_t more = *room != 0 ? 2 * *room : 256;
    void **at = array, *grown;

    if (count <= *room)
        return 0;
    while (more < count)
        more *= 2;
    grown = reallocarray(*at, more, size);
    if (!grown)
        return -1;
    *at = grown;
    *room = more;
    return 0;
}

/* As the library's reader of symbols does. */
static const char *readable(struct cw_json_lines *self, const char *function)
{
    const char *text = NULL;

    if (function && self->how.demangle)
        text = self->how.demangle(function, self->how.demangle_arg);
    if (!text || grow(&self->name, &self->names_room, self->names + 1, sizeof(*self->name)) != 0)
        return function;
    self->name[self->names] = strdup(text);
    return self->name[self->names] ? self->name[self->names++] : function;
}

/* ---- frames ---- */

static size_t read_build_id(const char *hex, uint8_t *build_id)
{
    size_t len = strlen(hex) / 2;

    if (len > BUILD_ID_MAX)
        return 0;
    for (size_t i = 0; i < len; i++)
        if (sscanf(hex + 2 * i, "%2hhx", &build_id[i]) != 1)
            return 0;
    return len;
}

/* Without a build-id nothing tells whether a file is still the one that ran. */
static void *open_module(const struct cw_json_lines *self, const struct cw_report_module *module)
{
    const struct cw_symbol_ops *ops = self->how.lines;
    uint8_t build_id[BUILD_ID_MAX];
    size_t len = read_build_id(module->build_id, build_id);
    char path[CW_PATH_MAX];

    if (len == 0 || module->path[0] != '/')
        return NULL;
    snprintf(path, sizeof(path), "%s%s", self->how.sysroot ? self->how.sysroot : "", module->path);
    return ops->open(ops->arg, path, build_id, len);
}

/* As in a report of the command's own. */
static int is_of_cuda(const struct cw_symbol_place *place)
{
    return cw_toolkit_has_function(place->function, place->file);
}

static void add_places(struct cw_json_lines *self, struct cw_report_frame *frame, size_t count)
{
    const struct cw_symbol_place *own = &self->found[count - 1];
    size_t first = 0;

    if (grow(&self->place, &self->room, self->places + count, sizeof(*self->place)) != 0 ||
        self->places + count > UINT32_MAX)
        return;
    frame->file = own->file;
    frame->line = own->line;
    if (!frame->function) {
        frame->function = readable(self, own->function);
        frame->is_debug_name = 1;
    }
    while (first + 1 < count && is_of_cuda(&self->found[first]))
        first++;
    frame->inlined = (uint32_t)self->places;
    frame->inlines = (uint32_t)(count - 1 - first);
    for (size_t i = first; i + 1 < count; i++)
        self->place[self->places++] =
            (struct cw_report_place){.function = readable(self, self->found[i].function),
                                     .file = self->found[i].file,
                                     .line = self->found[i].line};
}

static void read_frames(struct cw_json_lines *self)
{
    const struct cw_symbol_ops *ops = self->how.lines;

    for (uint32_t i = 0; i < self->model->frames; i++) {
        struct cw_report_frame *frame = &self->model->frame[i];
        void *file;
        size_t count;

        if ((self->is_wanted && !self->is_wanted[i]) || frame->is_python || frame->module == 0 ||
            frame->module > self->model->modules)
            continue;
        file = open_module(self, &self->model->module[frame->module - 1]);
        count = file ? ops->find(file, frame->offset, self->found, CW_SYMBOL_PLACES_MAX) : 0;
        if (count > 0)
            add_places(self, frame, count);
    }
}

/* Whoever wrote the report with lines knew more of the files than we do. */
static int has_lines(const struct cw_report_model *model)
{
    for (uint32_t i = 0; i < model->frames; i++)
        if (!model->frame[i].is_python && model->frame[i].file)
            return 1;
    return model->places > 0;
}

struct cw_json_lines *cw_json_lines_add(struct cw_report_model *model, const struct cw_lines *lines,
                                        int is_for_text)
{
    struct cw_json_lines *self;

    if (!lines->info || has_lines(model))
        return NULL;
    self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    self->model = model;
    cw_report_prepare(lines, &self->how);
    if (is_for_text)
        self->is_wanted = calloc((size_t)model->frames + 1, 1);
    if (self->is_wanted)
        cw_report_text_want(model, &CW_TEXT_WHOLE, want_stack, self);
    read_frames(self);
    model->place = self->place;
    model->places = (uint32_t)self->places;
    return self;
}

void cw_json_lines_free(struct cw_json_lines *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->names; i++)
        free(self->name[i]);
    free(self->name);
    free(self->place);
    free(self->is_wanted);
    free(self);
}
