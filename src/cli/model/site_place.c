/* SPDX-License-Identifier: MIT */
/* Places of call sites. See site_place.h. */
#include "cli/model/site_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/model/site_text.h"
#include "report/symbols/qualified.h"
#include "report/symbols/stack.h"

#define NAME_MAX_BYTES 512
#define DEPTH_MAX      1024 /* calls that are looked at; deeper ones tell nobody where it is */

/* A shown frame, or a function that was inlined into it. */
struct call {
    const struct cw_report_frame *frame;
    const struct cw_report_place *inlined; /* NULL: the frame itself */
};

struct calls {
    const struct cw_report_model *model;
    struct call call[DEPTH_MAX];
    unsigned count;
};

static void add_frame(struct calls *calls, const struct cw_report_frame *frame)
{
    for (uint32_t i = 0; i < frame->inlines && calls->count < DEPTH_MAX; i++)
        calls->call[calls->count++] =
            (struct call){frame, &calls->model->place[frame->inlined + i]};
    if (calls->count < DEPTH_MAX)
        calls->call[calls->count++] = (struct call){frame, NULL};
}

static void read_calls(struct calls *calls, const struct cw_report_model *model, uint32_t number)
{
    const struct cw_report_stack *stack = cw_report_stack(model, number);

    calls->model = model;
    calls->count = 0;
    for (uint32_t i = 0; stack && i < stack->shown; i++)
        add_frame(calls, cw_report_shown_frame(model, stack, i));
}

static int is_script(const struct calls *calls, const struct call *call)
{
    (void)calls;
    return call->frame->is_python && call->frame->file && !cw_file_is_installed(call->frame->file);
}

/* python -c, or code that a library has made: its own only if nothing else is. */
static int is_string(const struct calls *calls, const struct call *call)
{
    (void)calls;
    return call->frame->is_python && call->frame->file &&
           strcmp(call->frame->file, "<string>") == 0;
}

static int is_program(const struct calls *calls, const struct call *call)
{
    return !call->frame->is_python &&
           strcmp(cw_report_module_path(calls->model, call->frame->module),
                  calls->model->process.exe) == 0;
}

/* The interpreter of a script is a program too, but none that the user wrote. */
static int has_python(const struct calls *calls)
{
    for (unsigned i = 0; i < calls->count; i++)
        if (calls->call[i].frame->is_python)
            return 1;
    return 0;
}

static unsigned find(const struct calls *calls,
                     int (*is_own)(const struct calls *calls, const struct call *call))
{
    unsigned at = 0;

    while (at < calls->count && !is_own(calls, &calls->call[at]))
        at++;
    return at;
}

static unsigned find_own(const struct calls *calls)
{
    unsigned at = find(calls, is_script);

    if (at == calls->count)
        at = find(calls, is_string);
    if (at == calls->count && !has_python(calls))
        at = find(calls, is_program);
    return at < calls->count ? at : 0;
}

static void format_call(const struct calls *calls, const struct call *call, char *text)
{
    const struct cw_report_frame *frame = call->frame;
    const char *file = call->inlined ? call->inlined->file : frame->file;
    uint32_t line = call->inlined ? call->inlined->line : frame->line;
    char name[NAME_MAX_BYTES], shorter[NAME_MAX_BYTES];
    const char *function;

    if (call->inlined)
        function = call->inlined->function ? call->inlined->function : "?";
    else
        function = cw_report_frame_name(calls->model, frame, name, sizeof(name));
    function = cw_short_name(function, CW_NAME_WHOLE, shorter, sizeof(shorter));
    if (file && line != 0)
        snprintf(text, CW_SITE_PLACE_MAX, "%.100s %.40s:%" PRIu32, function,
                 cw_last_component(file), line);
    else if (frame->function && frame->module != 0)
        snprintf(text, CW_SITE_PLACE_MAX, "%.100s %.50s", function,
                 cw_report_module_name(calls->model, frame->module));
    else
        snprintf(text, CW_SITE_PLACE_MAX, "%.150s", function);
}

void cw_site_place_find(const struct cw_report_model *model, const struct cw_snapshot_site *site,
                        struct cw_site_place *place)
{
    struct calls calls;

    read_calls(&calls, model, site->stack);
    place->calls = 0;
    for (unsigned at = find_own(&calls); at < calls.count && place->calls < CW_SITE_PLACES; at++)
        format_call(&calls, &calls.call[at], place->call[place->calls++]);
}

/* The first caller by which it differs from one with the same call; 0: none does. */
static unsigned find_difference(const struct cw_site_place *place,
                                const struct cw_site_place *other)
{
    unsigned at = 0;

    while (at < place->calls && at < other->calls && strcmp(place->call[at], other->call[at]) == 0)
        at++;
    return at > 0 && at < place->calls ? at : 0;
}

char *cw_site_place_format(const struct cw_site_place *place,
                           const struct cw_site_place *const *others, unsigned count, char *text,
                           size_t cap)
{
    unsigned differs = 0;

    for (unsigned i = 0; i < count; i++)
        if (others[i] != place && find_difference(place, others[i]) > differs)
            differs = find_difference(place, others[i]);
    if (place->calls == 0)
        snprintf(text, cap, "unknown place");
    else if (differs != 0)
        snprintf(text, cap, "%s < %s", place->call[0], place->call[differs]);
    else
        snprintf(text, cap, "%s", place->call[0]);
    return text;
}
