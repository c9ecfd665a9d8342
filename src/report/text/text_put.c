/* SPDX-License-Identifier: MIT */
/* Words, lines and frames of the text report. See text_put.h. */
#include "report/text/text_put.h"

#include <string.h>

#include "report/symbols/qualified.h"
#include "report/symbols/stack.h"

/* ---- words ---- */

void cw_text_begin_line(const struct cw_text *text)
{
    cw_out_printf(text->out, "==%u== ", text->model->process.pid);
}

void cw_text_end_line(const struct cw_text *text)
{
    cw_out_char(text->out, '\n');
}

void cw_text_line(const struct cw_text *text, const char *fmt, ...)
{
    va_list ap;

    cw_text_begin_line(text);
    va_start(ap, fmt);
    cw_out_vprintf(text->out, fmt, ap);
    va_end(ap);
    cw_text_end_line(text);
}

size_t cw_text_clean_len(const char *s, size_t max)
{
    return strnlen(s, max + 1) > max ? max : strlen(s);
}

/* At most max bytes, ending in three dots if truncated; no control characters. */
void cw_text_clean(const struct cw_text *text, const char *s, size_t max)
{
    size_t len = cw_text_clean_len(s, max);
    int cut = s[len] != '\0';
    size_t kept = cut ? len - 3 : len;

    while (cut && kept > 0 && ((unsigned char)s[kept] & 0xc0) == 0x80) /* no partial characters */
        kept--;
    for (size_t i = 0; i < kept; i++) {
        unsigned char byte = (unsigned char)s[i];

        cw_out_char(text->out, byte < 0x20 || byte == 0x7f ? '?' : (char)byte);
    }
    if (cut)
        cw_out_string(text->out, "...");
}

void cw_text_padding(const struct cw_text *text, size_t have, size_t want)
{
    for (; have < want; have++)
        cw_out_char(text->out, ' ');
}

void cw_text_size(const struct cw_text *text, uint64_t bytes)
{
    char buf[24];

    cw_out_string(text->out, cw_format_size(buf, sizeof(buf), bytes));
}

void cw_text_time(const struct cw_text *text, uint64_t ns)
{
    char buf[32];

    cw_out_string(text->out, cw_format_duration(buf, sizeof(buf), ns));
}

void cw_text_count(const struct cw_text *text, uint64_t count, const char *noun)
{
    cw_out_printf(text->out, "%ju %s%s", (uintmax_t)count, noun, count == 1 ? "" : "s");
}

void cw_text_bytes_in_blocks(const struct cw_text *text, uint64_t bytes, uint64_t blocks)
{
    cw_text_size(text, bytes);
    cw_out_string(text->out, " in ");
    cw_text_count(text, blocks, "block");
}

char *cw_text_format_share(char *buf, size_t cap, uint64_t part, uint64_t whole)
{
    unsigned tenths = 1000;

    if (part < whole)
        tenths = (unsigned)((double)part * 1000.0 / (double)whole + 0.5);
    if (whole == 0)
        cw_format(buf, cap, "-");
    else
        cw_format(buf, cap, "%u.%u%%", tenths / 10, tenths % 10);
    return buf;
}

void cw_text_device(const struct cw_text *text, unsigned device)
{
    if (device == CW_DEVICE_HOST)
        cw_out_string(text->out, "host");
    else
        cw_out_printf(text->out, "device %u", device);
}

void cw_text_site_call(const struct cw_text *text, const struct cw_snapshot_site *site, size_t max)
{
    cw_text_clean(text, site->api, max);
    cw_out_string(text->out, ", ");
    cw_text_device(text, site->device);
}

uint32_t cw_text_shown(const struct cw_text *text, uint32_t count, uint32_t max)
{
    int shows_all = text->model->selection && text->model->selection->shows_all;

    return count > max && !shows_all ? max : count;
}

void cw_text_tag(const struct cw_text *text, const char *before,
                 const struct cw_snapshot_site *site)
{
    const char *label = cw_report_tag_label(text->model, site->tag);

    if (label[0] == '\0')
        return;
    cw_out_printf(text->out, "%stag: ", before);
    cw_text_clean(text, label, CW_TEXT_NAME_MAX);
}

void cw_text_blank(const struct cw_text *text)
{
    cw_text_begin_line(text);
    cw_text_end_line(text);
}

void cw_text_heading(const struct cw_text *text, const char *heading)
{
    cw_text_blank(text);
    cw_text_begin_line(text);
    cw_out_string(text->out, heading);
}

/* ---- frames ---- */

#define SAME_MIN   3   /* fewer are printed unchanged */
#define PATH_SHOWN 240 /* a longer path is truncated */

/* The frames of a stack, innermost first. */
struct frames {
    const struct cw_report_frame *frame; /* the model's */
    const uint32_t *number;
    unsigned count;
};

static const struct cw_report_frame *frame_at(const struct frames *frames, unsigned place)
{
    return &frames->frame[frames->number[place]];
}

/* Stacks have no frames while the text only collects which ones it needs. */
static struct frames frames_of(const struct cw_text *text, uint32_t stack)
{
    const struct cw_report_model *model = text->model;
    const struct cw_report_stack *found = cw_report_stack(model, stack);
    struct frames frames = {.frame = model->frame};

    if (text->want) {
        text->want(text->want_arg, stack);
        return frames;
    }
    if (!found)
        return frames;
    frames.number = &model->stack_frame[found->first + found->shown_first];
    frames.count = found->shown;
    return frames;
}

/* Whether the frame has a line of a script. */
static int is_code(const struct cw_report_frame *frame)
{
    return frame->is_python && frame->file;
}

/* Whether it is the program's own: not of an installed package or Python's library. */
static int is_own(const struct cw_report_frame *frame)
{
    return is_code(frame) && !cw_file_is_installed(frame->file);
}

/* The position of the program's own innermost frame, else of the innermost interpreted frame, else
 * the number of frames. */
static unsigned find_script(const struct frames *frames)
{
    unsigned python = frames->count;

    for (unsigned i = 0; i < frames->count; i++) {
        if (is_own(frame_at(frames, i)))
            return i;
        if (python == frames->count && is_code(frame_at(frames, i)))
            python = i;
    }
    return python;
}

/* A name that is still mangled, without its arguments. */
static const char *readable(const char *name, char *buf, size_t cap)
{
    if (!name || strncmp(name, "_Z", 2) != 0)
        return name;
    cw_qualified_name(name, buf, cap);
    return strncmp(buf, "::", 2) == 0 ? buf + 2 : buf;
}

/* "src/cache.cu:88", "train.py:218" */
static void put_line(const struct cw_text *text, const char *file, size_t max, uint32_t line)
{
    cw_text_clean(text, file, max);
    if (line != 0)
        cw_out_printf(text->out, ":%u", line);
}

static void put_address(const struct cw_text *text, const struct cw_report_frame *frame)
{
    if (is_code(frame)) {
        put_line(text, cw_short_file(frame->file), CW_TEXT_NAME_MAX, frame->line);
    } else if (frame->module != 0) {
        cw_text_clean(text, cw_report_module_name(text->model, frame->module), CW_TEXT_NAME_MAX);
        cw_out_printf(text->out, "+0x%jx", (uintmax_t)frame->offset);
    } else if (frame->address != 0) {
        cw_out_printf(text->out, "0x%jx", (uintmax_t)(frame->address - 1));
    } else {
        cw_out_char(text->out, '?');
    }
}

static void widen(const char *symbol, size_t *width)
{
    char buf[CW_TEXT_NAME_MAX];
    const char *name = readable(symbol, buf, sizeof(buf));
    size_t len = name ? cw_text_clean_len(name, CW_TEXT_NAME_MAX) : 0;

    if (len > *width && len <= CW_TEXT_NAME_WIDTH)
        *width = len;
}

/* ---- selecting the frames of a long stack ---- */

struct choice {
    unsigned count; /* of the frames shown */
    unsigned char shown[CW_DEPTH_MAX];
};

/* The lines that they take: one for each frame, and one for each gap. */
static unsigned count_lines(const struct choice *choice, const struct frames *frames)
{
    unsigned lines = 0;

    for (unsigned i = 0; i < frames->count; i++)
        lines += choice->shown[i] || i == 0 || choice->shown[i - 1];
    return lines;
}

/* At most `limit` frames, in at most limit + 1 lines. */
static void choose(struct choice *choice, const struct frames *frames, unsigned at, unsigned limit)
{
    if (at >= frames->count || choice->count == limit || choice->shown[at])
        return;
    choice->shown[at] = 1;
    if (choice->count > 0 && count_lines(choice, frames) > limit + 1)
        choice->shown[at] = 0;
    else
        choice->count++;
}

/* The next frame of a trail; a script's trail has only the script's own frames. */
static unsigned next_step(const struct frames *frames, unsigned at, int only_own)
{
    do
        at++;
    while (at < frames->count && only_own && !is_own(frame_at(frames, at)));
    return at;
}

/*
 * The innermost frames. If they do not include the script's own lines, those matter more than the
 * inside of a framework: the script's innermost line comes first; then the call itself, and the
 * frame where Python enters machine code; then the callers of the script's line; then innermost
 * frames as far as there is room.
 */
static void choose_frames(const struct frames *frames, unsigned limit, struct choice *out_choice)
{
    unsigned script = find_script(frames);
    unsigned python = 0;

    *out_choice = (struct choice){0};
    while (python < frames->count && !is_code(frame_at(frames, python)))
        python++;
    if (script >= limit && script < frames->count) {
        choose(out_choice, frames, script, limit);
        choose(out_choice, frames, 0, limit);
        choose(out_choice, frames, python, limit);
        if (python > 0)
            choose(out_choice, frames, python - 1, limit);
        choose(out_choice, frames, next_step(frames, script, 1), limit);
    }
    for (unsigned i = 0; i < frames->count; i++)
        choose(out_choice, frames, i, limit);
}

static size_t function_width(const struct cw_text *text, const struct frames *frames,
                             const struct choice *choice)
{
    size_t width = 0;

    for (unsigned i = 0; i < frames->count; i++) {
        const struct cw_report_frame *frame = frame_at(frames, i);

        if (!choice->shown[i])
            continue;
        for (unsigned k = 0; k < frame->inlines; k++)
            widen(text->model->place[frame->inlined + k].function, &width);
        widen(frame->function, &width);
    }
    return width;
}

/* The number and the function; the place follows. */
static void begin_frame(const struct cw_text *text, unsigned number, const char *symbol,
                        size_t width)
{
    char buf[CW_TEXT_NAME_MAX];
    const char *name = readable(symbol, buf, sizeof(buf));
    char label[16];

    cw_format(label, sizeof(label), "#%u", number);
    cw_text_begin_line(text);
    cw_out_printf(text->out, "%6s ", label);
    if (!name)
        return;
    cw_text_clean(text, name, CW_TEXT_NAME_MAX);
    cw_text_padding(text, cw_text_clean_len(name, CW_TEXT_NAME_MAX), width);
    cw_out_string(text->out, "  ");
}

/* An inlined function, as a frame. */
static void put_inlined(const struct cw_text *text, unsigned number,
                        const struct cw_report_place *place, size_t width)
{
    begin_frame(text, number, place->function ? place->function : "?", width);
    if (place->file) {
        put_line(text, place->file, PATH_SHOWN, place->line);
        cw_out_char(text->out, ' ');
    }
    cw_out_string(text->out, "(inlined)");
    cw_text_end_line(text);
}

static void put_frame(const struct cw_text *text, unsigned number,
                      const struct cw_report_frame *frame, size_t width)
{
    for (unsigned i = 0; i < frame->inlines; i++)
        put_inlined(text, number++, &text->model->place[frame->inlined + i], width);
    begin_frame(text, number, frame->function, width);
    if (frame->file && !frame->is_python) {
        put_line(text, frame->file, PATH_SHOWN, frame->line);
        cw_out_char(text->out, ' ');
        cw_text_clean(text, cw_report_module_name(text->model, frame->module), CW_TEXT_NAME_MAX);
    } else {
        put_address(text, frame);
    }
    cw_text_end_line(text);
}

static int is_same(const struct cw_report_frame *a, const struct cw_report_frame *b)
{
    return is_code(a) && is_code(b) && a->line == b->line && strcmp(a->file, b->file) == 0 &&
           strcmp(a->function ? a->function : "", b->function ? b->function : "") == 0;
}

/* The number of following frames that look the same: recursion. */
static unsigned count_same(const struct frames *frames, unsigned at, unsigned end)
{
    unsigned same = 0;

    while (at + same + 1 < end && is_same(frame_at(frames, at), frame_at(frames, at + same + 1)))
        same++;
    return same;
}

static void put_no_stack(const struct cw_text *text)
{
    cw_out_string(text->out, text->model->process.has_no_stacks ? "(no stack: CUWARDEN_STACKS=off)"
                                                                : "(no stack)");
}

static void put_more(const struct cw_text *text, unsigned count)
{
    if (count > 0)
        cw_text_line(text, "    ... %u more frame%s", count, count == 1 ? "" : "s");
}

/* The frames shown, and lines in place of the others. */
static void put_frames(const struct cw_text *text, const struct frames *frames,
                       const struct choice *choice)
{
    size_t width = function_width(text, frames, choice);
    unsigned number = 0;
    unsigned skipped = 0;

    for (unsigned i = 0; i < frames->count; i++) {
        unsigned end = i;
        unsigned same;

        if (!choice->shown[i]) {
            skipped++;
            continue;
        }
        put_more(text, skipped);
        number += skipped;
        skipped = 0;
        while (end < frames->count && choice->shown[end])
            end++;
        same = count_same(frames, i, end);
        put_frame(text, number, frame_at(frames, i), width);
        number += frame_at(frames, i)->inlines + 1;
        if (same < SAME_MIN)
            continue;
        cw_text_line(text, "    ... %u more frames like it", same);
        i += same;
        number += same;
    }
    put_more(text, skipped);
}

void cw_text_stack(const struct cw_text *text, uint32_t stack, unsigned limit)
{
    struct frames frames = frames_of(text, stack);
    struct choice choice;

    if (frames.count == 0) {
        cw_text_begin_line(text);
        cw_out_string(text->out, "    ");
        put_no_stack(text);
        cw_text_end_line(text);
        return;
    }
    choose_frames(&frames, limit, &choice);
    put_frames(text, &frames, &choice);
}

/* The function and module of one frame, or its line, in one phrase. */
static void put_where(const struct cw_text *text, const struct cw_report_frame *frame)
{
    char buf[CW_TEXT_NAME_MAX];
    const char *name = readable(frame->function, buf, sizeof(buf));

    if (!name) {
        put_address(text, frame);
        return;
    }
    cw_text_clean(text, name, CW_TEXT_NAME_MAX);
    if (is_code(frame)) {
        cw_out_string(text->out, " (");
        put_line(text, cw_short_file(frame->file), CW_TEXT_NAME_MAX, frame->line);
        cw_out_char(text->out, ')');
    } else if (frame->module != 0) {
        cw_out_string(text->out, " (");
        cw_text_clean(text, cw_report_module_name(text->model, frame->module), CW_TEXT_NAME_MAX);
        cw_out_char(text->out, ')');
    }
}

/* The visible frames from the one that names the stack; for a script, only the script's own. */
static struct frames find_telling(const struct cw_text *text, uint32_t stack)
{
    struct frames frames = frames_of(text, stack);
    unsigned script = find_script(&frames);

    if (script < frames.count) {
        frames.number += script;
        frames.count -= script;
    }
    return frames;
}

void cw_text_where(const struct cw_text *text, uint32_t stack)
{
    struct frames frames = find_telling(text, stack);
    const struct cw_report_frame *frame = frames.count > 0 ? frame_at(&frames, 0) : NULL;
    struct cw_report_place place;

    if (frames.count == 0) {
        put_no_stack(text);
        return;
    }
    place = frame->inlines > 0
                ? text->model->place[frame->inlined]
                : (struct cw_report_place){frame->function, frame->file, frame->line};
    if (frame->is_python || !place.function || !place.file) {
        put_where(text, frame);
        return;
    }
    cw_text_clean(text, place.function, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, " (");
    put_line(text, place.file, PATH_SHOWN, place.line);
    cw_out_char(text->out, ')');
}

/* One frame of a trail as a string, with its module if it differs from the previous one. */
static void format_step(const struct cw_text *text, const struct frames *frames, unsigned at,
                        char *buf, size_t cap)
{
    const struct cw_report_frame *frame = frame_at(frames, at);
    char demangled[CW_TEXT_NAME_MAX];
    const char *name = readable(frame->function, demangled, sizeof(demangled));
    struct cw_text onto = *text;
    struct cw_out step;

    cw_out_init(&step, -1, buf, cap - 1);
    onto.out = &step;
    if (name && at > 0 && !is_code(frame) && frame->module == frame_at(frames, at - 1)->module)
        cw_text_clean(&onto, name, CW_TEXT_NAME_MAX);
    else
        put_where(&onto, frame);
    buf[step.len] = '\0';
}

void cw_text_trail(const struct cw_text *text, uint32_t stack, size_t width)
{
    static const char arrow[] = " <- ", gap[] = " <- ... <- ", more[] = " <- ...";
    struct frames frames = find_telling(text, stack);
    char step[2 * CW_TEXT_NAME_MAX + 8];
    size_t used;
    int only_own;

    if (frames.count == 0) {
        put_no_stack(text);
        return;
    }
    format_step(text, &frames, 0, step, sizeof(step));
    used = cw_text_clean_len(step, width - strlen(more));
    cw_text_clean(text, step, used);
    only_own = is_own(frame_at(&frames, 0));
    for (unsigned at = 0, next;; at = next) {
        const char *between;
        size_t last;

        next = next_step(&frames, at, only_own);
        if (next == frames.count)
            return;
        between = next == at + 1 ? arrow : gap;
        last = next_step(&frames, next, only_own) == frames.count ? 0 : strlen(more);
        format_step(text, &frames, next, step, sizeof(step));
        used += strlen(between) + strlen(step);
        if (used + last > width) {
            cw_out_string(text->out, more);
            return;
        }
        cw_out_printf(text->out, "%s%s", between, step);
    }
}

/* The function through which the program entered the library that owns the memory. */
void cw_text_entry(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    struct frames frames = frames_of(text, site->stack);
    unsigned at = 0;

    while (at + 1 < frames.count && site->owner != 0 &&
           frame_at(&frames, at + 1)->module == site->owner)
        at++;
    if (frames.count > 0)
        put_where(text, frame_at(&frames, at));
    else
        put_no_stack(text);
}
