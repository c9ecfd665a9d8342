/* SPDX-License-Identifier: MIT */
/*
 * Stacks in one line. See text_put.h.
 *
 * The frame that names the stack comes first, then callers behind "<-", then, behind "->", what
 * that frame called. The frames by which the stack differs from its neighbours (contrast.h) are
 * always there, whatever the width.
 */
#include "report/text/text_frames.h"

#include <string.h>

#include "base/utf8.h"
#include "report/symbols/stack.h"

#define STEP_MAX 1024

static const char arrow[] = " <- ", gap[] = " <- ... <- ", more[] = " <- ...", inward[] = " -> ";

/* ---- one frame ---- */

static void put_at(const struct cw_text *text, const struct cw_report_frame *frame)
{
    cw_out_string(text->out, " (");
    cw_text_address(text, frame);
    cw_out_char(text->out, ')');
}

/* The function with its line, or else with its module; with_address: which call it is, too. */
static void put_call(const struct cw_text *text, const struct cw_report_frame *frame,
                     int with_address)
{
    char buf[CW_TEXT_NAME_MAX];
    const char *name = cw_text_readable(frame->function, buf, sizeof(buf));

    if (!name) {
        cw_text_address(text, frame);
        return;
    }
    cw_text_clean(text, name, CW_TEXT_NAME_MAX);
    if (frame->file) {
        cw_out_string(text->out, " (");
        cw_text_file_line(text, cw_short_file(frame->file), CW_TEXT_NAME_MAX, frame->line);
        cw_out_char(text->out, ')');
    } else if (frame->module != 0 && !with_address) {
        cw_out_string(text->out, " (");
        cw_text_clean(text, cw_report_module_name(text->model, frame->module), CW_TEXT_NAME_MAX);
        cw_out_char(text->out, ')');
    }
    if (with_address)
        put_at(text, frame);
}

static void put_where(const struct cw_text *text, const struct cw_report_frame *frame)
{
    put_call(text, frame, 0);
}

/* The functions inlined into a frame, from one on, each with an arrow behind it. */
static void put_inlined(const struct cw_text *text, const struct cw_report_frame *frame,
                        uint32_t from)
{
    for (uint32_t i = from; i < frame->inlines; i++) {
        const struct cw_report_place *place = &text->model->place[frame->inlined + i];

        put_where(text,
                  &(struct cw_report_frame){.function = place->function ? place->function : "?",
                                            .file = place->file,
                                            .line = place->line});
        cw_out_string(text->out, arrow);
    }
}

static int has_marked_address(const struct cw_text_frames *frames, unsigned at)
{
    return cw_contrast_has(frames->mark.address, at);
}

static int is_marked(const struct cw_text_frames *frames, unsigned at)
{
    return cw_contrast_has(frames->mark.frame, at) || cw_contrast_has(frames->mark.address, at);
}

/* A step as a string, with its module if it differs from the frame before it. */
static void format_step(const struct cw_text *text, const struct cw_text_frames *frames,
                        unsigned at, char *buf, size_t cap)
{
    const struct cw_report_frame *frame = cw_text_frame(frames, at);
    char demangled[CW_TEXT_NAME_MAX];
    const char *name = cw_text_readable(frame->function, demangled, sizeof(demangled));
    struct cw_text onto = *text;
    struct cw_out step;

    cw_out_init(&step, -1, buf, cap - 1);
    onto.out = &step;
    if (name && at > 0 && !frame->file && !has_marked_address(frames, at) &&
        frame->module == cw_text_frame(frames, at - 1)->module)
        cw_text_clean(&onto, name, CW_TEXT_NAME_MAX);
    else {
        if (is_marked(frames, at))
            put_inlined(&onto, frame, 0);
        put_call(&onto, frame, has_marked_address(frames, at));
    }
    buf[step.len] = '\0';
    if (step.truncated)
        buf[cw_utf8_cut(buf, step.len)] = '\0';
}

/* ---- what differs ---- */

/* The next marked frame after `at`, or the number of frames. */
static unsigned next_marked(const struct cw_text_frames *frames, unsigned at)
{
    do
        at++;
    while (at < frames->count && !is_marked(frames, at));
    return at;
}

/* The columns that the marked callers will take, at most. */
static size_t marked_width(const struct cw_text *text, const struct cw_text_frames *frames,
                           unsigned at)
{
    char step[STEP_MAX];
    size_t width = 0;

    while ((at = next_marked(frames, at)) < frames->count) {
        format_step(text, frames, at, step, sizeof(step));
        width += strlen(gap) + strlen(step);
    }
    return width;
}

/* What the naming frame called, where only that differs. */
static void put_marked_callees(const struct cw_text *text, const struct cw_text_frames *frames,
                               unsigned name)
{
    char step[STEP_MAX];

    for (unsigned at = name; at-- > 0;) {
        if (!is_marked(frames, at))
            continue;
        format_step(text, frames, at, step, sizeof(step));
        cw_out_printf(text->out, "%s%s", inward, step);
    }
}

static void put_marked_callers(const struct cw_text *text, const struct cw_text_frames *frames,
                               unsigned name)
{
    char step[STEP_MAX];

    for (unsigned at = name, next; (next = next_marked(frames, at)) < frames->count; at = next) {
        format_step(text, frames, next, step, sizeof(step));
        cw_out_printf(text->out, "%s%s", next == at + 1 ? arrow : gap, step);
    }
}

void cw_text_begin_list(const struct cw_text *text, const uint32_t *site, size_t stride,
                        uint32_t count, struct cw_text_list *out_list)
{
    out_list->text = *text;
    out_list->text.contrast = &out_list->contrast;
    cw_contrast_init(&out_list->contrast, text->model, site, stride, count);
}

void cw_text_end_list(struct cw_text_list *list)
{
    cw_contrast_free(&list->contrast);
}

/* ---- lines ---- */

/* The position of the frame that names the stack. */
static unsigned find_name(const struct cw_text_frames *frames)
{
    unsigned script = cw_report_script_frame(frames->frame, frames->number, frames->count);

    return script < frames->count ? script : 0;
}

/* The innermost of the functions that were inlined into a frame, else the frame's own. */
static struct cw_report_place innermost(const struct cw_text *text,
                                        const struct cw_report_frame *frame)
{
    return frame->inlines > 0 ? text->model->place[frame->inlined]
                              : (struct cw_report_place){frame->function, frame->file, frame->line};
}

static int is_named_by_line(const struct cw_text *text, const struct cw_report_frame *frame)
{
    struct cw_report_place place = innermost(text, frame);

    return !frame->is_python && place.function && place.file;
}

/* What of a naming frame differs and its name does not say. */
static void put_name_contrast(const struct cw_text *text, const struct cw_text_frames *frames,
                              unsigned at)
{
    const struct cw_report_frame *frame = cw_text_frame(frames, at);

    if (frame->inlines > 0 && is_marked(frames, at)) {
        cw_out_string(text->out, arrow);
        put_inlined(text, frame, 1);
        put_where(text, frame);
    }
    if (has_marked_address(frames, at))
        put_at(text, frame);
}

static void put_name(const struct cw_text *text, const struct cw_text_frames *frames, unsigned at)
{
    const struct cw_report_frame *frame = cw_text_frame(frames, at);
    struct cw_report_place place = innermost(text, frame);
    char buf[CW_TEXT_NAME_MAX];

    if (!is_named_by_line(text, frame)) {
        put_call(text, frame, has_marked_address(frames, at));
        return;
    }
    cw_text_clean(text, cw_text_readable(place.function, buf, sizeof(buf)), CW_TEXT_NAME_MAX);
    cw_out_string(text->out, " (");
    cw_text_file_line(text, place.file[0] == '/' ? cw_short_file(place.file) : place.file,
                      CW_TEXT_PATH_MAX, place.line);
    cw_out_char(text->out, ')');
    put_name_contrast(text, frames, at);
}

void cw_text_where(const struct cw_text *text, uint32_t stack)
{
    struct cw_text_frames frames = cw_text_frames_of(text, stack);
    unsigned name = find_name(&frames);

    if (frames.count == 0) {
        cw_text_no_stack(text);
        return;
    }
    put_name(text, &frames, name);
    put_marked_callers(text, &frames, name);
    put_marked_callees(text, &frames, name);
}

void cw_text_contrast(const struct cw_text *text, uint32_t stack)
{
    struct cw_text_frames frames = cw_text_frames_of(text, stack);
    unsigned name = find_name(&frames);

    if (frames.count == 0)
        return;
    put_name_contrast(text, &frames, name);
    put_marked_callers(text, &frames, name);
    put_marked_callees(text, &frames, name);
}

/* A trail as it is printed. */
struct trail {
    const struct cw_text *text;
    const struct cw_text_frames *frames;
    int only_own;       /* of a script, with what is marked */
    unsigned last;      /* printed */
    size_t limit, used; /* columns */
    size_t reserved;    /* for marked frames that are not printed yet */
};

static unsigned next_of_trail(const struct trail *trail, unsigned at)
{
    unsigned step = cw_text_next_step(trail->frames, at, trail->only_own);
    unsigned marked = next_marked(trail->frames, at);

    return step < marked ? step : marked;
}

/* Whether the frame has been printed: it is marked, or there is room for it. */
static int put_step(struct trail *trail, unsigned at)
{
    const char *between = at == trail->last + 1 ? arrow : gap;
    size_t end = next_of_trail(trail, at) == trail->frames->count ? 0 : strlen(more);
    char step[STEP_MAX];
    size_t len;

    format_step(trail->text, trail->frames, at, step, sizeof(step));
    len = strlen(between) + strlen(step);
    if (is_marked(trail->frames, at))
        trail->reserved -= strlen(gap) + strlen(step);
    else if (trail->used + trail->reserved + len + end > trail->limit)
        return 0;
    cw_out_printf(trail->text->out, "%s%s", between, step);
    trail->used += len;
    trail->last = at;
    return 1;
}

void cw_text_trail(const struct cw_text *text, uint32_t stack, size_t width)
{
    struct cw_text_frames frames = cw_text_frames_of(text, stack);
    unsigned name = find_name(&frames);
    struct trail trail = {.text = text, .frames = &frames, .last = name, .limit = width};
    char step[STEP_MAX];
    unsigned at;
    int is_full = 0;

    if (frames.count == 0) {
        cw_text_no_stack(text);
        return;
    }
    format_step(text, &frames, name, step, sizeof(step));
    trail.used = cw_text_clean_len(step, width - strlen(more));
    cw_text_clean(text, step, trail.used);
    trail.reserved = marked_width(text, &frames, name);
    trail.only_own = cw_report_is_own(cw_text_frame(&frames, name));
    for (at = next_of_trail(&trail, name); at < frames.count; at = next_of_trail(&trail, at))
        if (!is_full || is_marked(&frames, at))
            is_full = !put_step(&trail, at) || is_full;
    if (next_of_trail(&trail, trail.last) < frames.count)
        cw_out_string(text->out, more);
    put_marked_callees(text, &frames, name);
}

/* The function through which the program entered the library that owns the memory. */
void cw_text_entry(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    struct cw_text_frames frames = cw_text_frames_of(text, site->stack);
    unsigned at = 0;

    while (at + 1 < frames.count && site->owner != 0 &&
           cw_text_frame(&frames, at + 1)->module == site->owner)
        at++;
    if (frames.count > 0)
        put_where(text, cw_text_frame(&frames, at));
    else
        cw_text_no_stack(text);
}
