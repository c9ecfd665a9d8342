/* SPDX-License-Identifier: MIT */
/* Words, lines and frames of the text report. See text_put.h. */
#include "report/text/text_put.h"

#include <string.h>

#include "report/model/fold.h"
#include "report/symbols/qualified.h"
#include "report/symbols/stack.h"
#include "report/text/text_frames.h"

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

/* At most max bytes, ending in three dots if truncated; printable (base/printable.h). */
void cw_text_clean(const struct cw_text *text, const char *s, size_t max)
{
    size_t len = cw_text_clean_len(s, max);
    int cut = s[len] != '\0';
    size_t kept = cut ? len - 3 : len;

    while (cut && kept > 0 && ((unsigned char)s[kept] & 0xc0) == 0x80) /* no partial characters */
        kept--;
    cw_out_printable(text->out, s, kept);
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
    if (site->context != 0)
        cw_out_printf(text->out, ", context %u", site->context);
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

#define SAME_MIN 3 /* fewer are printed unchanged */

struct cw_text_frames cw_text_frames_of(const struct cw_text *text, uint32_t stack)
{
    const struct cw_report_model *model = text->model;
    const struct cw_report_stack *found = cw_report_stack(model, stack);
    struct cw_text_frames frames = {.frame = model->frame};

    if (text->want) {
        text->want(text->want_arg, stack);
        return frames;
    }
    if (!found)
        return frames;
    frames.number = &model->stack_frame[found->first + found->shown_first];
    frames.count = found->shown;
    frames.mark = cw_contrast_marks(text->contrast, stack);
    return frames;
}

const char *cw_text_readable(const char *name, char *buf, size_t cap)
{
    if (!name)
        return name;
    if (strncmp(name, "_Z", 2) != 0)
        return cw_short_name(name, CW_NAME_WHOLE, buf, cap);
    cw_qualified_name(name, buf, cap);
    return strncmp(buf, "::", 2) == 0 ? buf + 2 : buf;
}

void cw_text_file_line(const struct cw_text *text, const char *file, size_t max, uint32_t line)
{
    cw_text_clean(text, file, max);
    if (line != 0)
        cw_out_printf(text->out, ":%u", line);
}

void cw_text_address(const struct cw_text *text, const struct cw_report_frame *frame)
{
    if (cw_report_is_code(frame)) {
        cw_text_file_line(text, cw_short_file(frame->file), CW_TEXT_NAME_MAX, frame->line);
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
    const char *name = cw_text_readable(symbol, buf, sizeof(buf));
    size_t len = name ? cw_text_clean_len(name, CW_TEXT_NAME_MAX) : 0;

    if (len > *width && len <= CW_TEXT_NAME_WIDTH)
        *width = len;
}

/* ---- selecting the frames of a long stack ---- */

struct choice {
    unsigned count; /* of the frames shown */
    unsigned char shown[CW_DEPTH_MAX];
    struct cw_folds folds; /* never shown */
};

/* The lines that they take: one for each frame, and one for each gap. */
static unsigned count_lines(const struct choice *choice, const struct cw_text_frames *frames)
{
    unsigned lines = 0;

    for (unsigned i = 0; i < frames->count; i++)
        lines += choice->shown[i] || i == 0 || choice->shown[i - 1];
    return lines;
}

/* At most `limit` frames, in at most limit + 1 lines. */
static void choose(struct choice *choice, const struct cw_text_frames *frames, unsigned at,
                   unsigned limit)
{
    if (at >= frames->count || choice->count == limit || choice->shown[at] ||
        choice->folds.frame[at])
        return;
    choice->shown[at] = 1;
    if (choice->count > 0 && count_lines(choice, frames) > limit + 1)
        choice->shown[at] = 0;
    else
        choice->count++;
}

unsigned cw_text_next_step(const struct cw_text_frames *frames, unsigned at, int only_own)
{
    do
        at++;
    while (at < frames->count && only_own && !cw_report_is_own(cw_text_frame(frames, at)));
    return at;
}

static struct cw_fold_frames fold_frames_of(const struct cw_text *text,
                                            const struct cw_text_frames *frames)
{
    return (struct cw_fold_frames){.model = text->model,
                                   .frame = frames->frame,
                                   .number = frames->number,
                                   .count = frames->count,
                                   .mark = &frames->mark};
}

/*
 * Of what is not folded, the innermost frames. If they do not include the script's own lines, those
 * matter more than the inside of a framework: the script's innermost line comes first; then the
 * call itself, and the frame where Python enters machine code; then the callers of the script's
 * line; then the frames by which the stack differs from its neighbours; then innermost frames as
 * far as there is room.
 */
static void choose_frames(const struct cw_text *text, const struct cw_text_frames *frames,
                          unsigned limit, struct choice *out_choice)
{
    unsigned script = cw_report_script_frame(frames->frame, frames->number, frames->count);
    struct cw_fold_frames all = fold_frames_of(text, frames);
    unsigned python = 0;

    *out_choice = (struct choice){0};
    if (!text->has_all_frames)
        cw_folds_find(&all, &out_choice->folds);
    while (python < frames->count && !cw_report_is_code(cw_text_frame(frames, python)))
        python++;
    if (script >= limit && script < frames->count) {
        choose(out_choice, frames, script, limit);
        choose(out_choice, frames, 0, limit);
        choose(out_choice, frames, python, limit);
        if (python > 0)
            choose(out_choice, frames, python - 1, limit);
        choose(out_choice, frames, cw_text_next_step(frames, script, 1), limit);
    }
    for (unsigned i = 0; i < frames->count && i < CW_DEPTH_MAX; i++)
        if (cw_contrast_has(frames->mark.frame, i))
            choose(out_choice, frames, i, limit);
    for (unsigned i = 0; i < frames->count; i++)
        choose(out_choice, frames, i, limit);
}

static size_t function_width(const struct cw_text *text, const struct cw_text_frames *frames,
                             const struct choice *choice)
{
    size_t width = 0;

    for (unsigned i = 0; i < frames->count; i++) {
        const struct cw_report_frame *frame = cw_text_frame(frames, i);

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
    const char *name = cw_text_readable(symbol, buf, sizeof(buf));
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
        cw_text_file_line(text, place->file, CW_TEXT_PATH_MAX, place->line);
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
        cw_text_file_line(text, frame->file, CW_TEXT_PATH_MAX, frame->line);
        cw_out_char(text->out, ' ');
        cw_text_clean(text, cw_report_module_name(text->model, frame->module), CW_TEXT_NAME_MAX);
    } else {
        cw_text_address(text, frame);
    }
    cw_text_end_line(text);
}

static int is_same(const struct cw_report_frame *a, const struct cw_report_frame *b)
{
    return cw_report_is_code(a) && cw_report_is_code(b) && a->line == b->line &&
           strcmp(a->file, b->file) == 0 &&
           strcmp(a->function ? a->function : "", b->function ? b->function : "") == 0;
}

/* The number of following frames that look the same: recursion. */
static unsigned count_same(const struct cw_text_frames *frames, unsigned at, unsigned end)
{
    unsigned same = 0;

    while (at + same + 1 < end &&
           is_same(cw_text_frame(frames, at), cw_text_frame(frames, at + same + 1)))
        same++;
    return same;
}

void cw_text_no_stack(const struct cw_text *text)
{
    cw_out_string(text->out, text->model->process.has_no_stacks ? "(no stack: CUWARDEN_STACKS=off)"
                                                                : "(no stack)");
}

/* "    ... 14 frames of libtorch_cuda.so, torch" */
static void put_fold(const struct cw_text *text, const struct cw_text_frames *frames,
                     unsigned first, unsigned count)
{
    struct cw_fold_frames all = fold_frames_of(text, frames);
    char names[CW_FOLD_NAMES_MAX];

    cw_text_begin_line(text);
    cw_out_string(text->out, "    ... ");
    cw_text_count(text, count, "frame");
    cw_out_string(text->out, " of ");
    cw_text_clean(text, cw_fold_names(&all, first, count, names), sizeof(names));
    cw_text_end_line(text);
}

/* A line in place of `count` frames that are not shown; none for 0. */
static void put_gap(const struct cw_text *text, const struct cw_text_frames *frames,
                    const struct choice *choice, unsigned first, unsigned count)
{
    unsigned folded = 0;

    while (folded < count && choice->folds.frame[first + folded])
        folded++;
    if (count > 0 && folded == count)
        put_fold(text, frames, first, count);
    else if (count > 0)
        cw_text_line(text, "    ... %u more frame%s", count, count == 1 ? "" : "s");
}

/* The frames shown, and lines in place of the others. */
static void put_frames(const struct cw_text *text, const struct cw_text_frames *frames,
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
        put_gap(text, frames, choice, i - skipped, skipped);
        number += skipped;
        skipped = 0;
        while (end < frames->count && choice->shown[end])
            end++;
        same = count_same(frames, i, end);
        put_frame(text, number, cw_text_frame(frames, i), width);
        number += cw_text_frame(frames, i)->inlines + 1;
        if (same < SAME_MIN)
            continue;
        cw_text_line(text, "    ... %u more frames like it", same);
        i += same;
        number += same;
    }
    put_gap(text, frames, choice, frames->count - skipped, skipped);
}

void cw_text_stack(const struct cw_text *text, uint32_t stack, unsigned limit)
{
    struct cw_text_frames frames = cw_text_frames_of(text, stack);
    struct choice choice;

    if (frames.count == 0) {
        cw_text_begin_line(text);
        cw_out_string(text->out, "    ");
        cw_text_no_stack(text);
        cw_text_end_line(text);
        return;
    }
    choose_frames(text, &frames, text->has_all_frames ? CW_DEPTH_MAX : limit, &choice);
    put_frames(text, &frames, &choice);
}
