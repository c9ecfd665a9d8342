/* SPDX-License-Identifier: MIT */
/* Words, lines and frames of the text report. See text_put.h. */
#include "report/text_put.h"

#include <string.h>

#include "base/options.h"
#include "report/stack.h"
#include "report/tag.h"

/* ---- words ---- */

void cw_text_begin_line(const struct cw_text *text)
{
    cw_out_printf(text->out, "==%u== ", cw_view_header(text->view)->pid);
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

/* At most max bytes, the last three of them dots when it was cut; no control characters. */
void cw_text_clean(const struct cw_text *text, const char *s, size_t max)
{
    size_t len = cw_text_clean_len(s, max);
    int cut = s[len] != '\0';
    size_t kept = cut ? len - 3 : len;

    while (cut && kept > 0 && ((unsigned char)s[kept] & 0xc0) == 0x80) /* no half characters */
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

void cw_text_tag(const struct cw_text *text, const char *before,
                 const struct cw_snapshot_site *site)
{
    char label[CW_TAG_LABEL_MAX];

    if (cw_tag_label(text->view, site->tag, label, sizeof(label))[0] == '\0')
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

#define SAME_MIN   3   /* fewer are printed as they are */
#define PATH_SHOWN 240 /* a longer path is cut */

static const char *function_of(const struct cw_text *text, uint32_t frame)
{
    return cw_stack_function(text->source->symbols, text->view, frame);
}

static void put_line(const struct cw_text *text, const struct cw_live_code *code)
{
    cw_text_clean(text, cw_code_file(text->view, code), CW_TEXT_NAME_MAX);
    if (code->line != 0)
        cw_out_printf(text->out, ":%u", code->line);
}

/* "src/cache.cu:88", of a function that the debug information knows of */
static void put_place(const struct cw_text *text, const struct cw_symbol_place *place)
{
    cw_text_clean(text, place->file, PATH_SHOWN);
    if (place->line != 0)
        cw_out_printf(text->out, ":%u", place->line);
}

/* The last of what the debug information knows of a frame is the frame's own function. */
static struct cw_symbol_place own_place(const struct cw_text *text, uint32_t frame)
{
    unsigned count = cw_symbols_places(text->source->symbols, frame);

    return cw_symbols_place(text->source->symbols, frame, count > 0 ? count - 1 : 0);
}

static void put_address(const struct cw_text *text, uint32_t frame)
{
    const struct cw_live_frame *record = cw_view_frame(text->view, frame);
    const struct cw_live_module *module = cw_stack_module(text->view, frame);
    const struct cw_live_code *code = cw_stack_code(text->view, frame);

    if (code)
        put_line(text, code);
    else if (!record || record->module == CW_MODULE_PYTHON)
        cw_out_string(text->out, "?");
    else if (!module)
        cw_out_printf(text->out, "0x%jx", (uintmax_t)(record->pc - 1));
    else {
        cw_text_clean(text, cw_module_name(text->view, module), CW_TEXT_NAME_MAX);
        cw_out_printf(text->out, "+0x%jx", (uintmax_t)cw_frame_offset(record, module));
    }
}

static void widen(const char *name, size_t *width)
{
    size_t len = name ? cw_text_clean_len(name, CW_TEXT_NAME_MAX) : 0;

    if (len > *width && len <= CW_TEXT_NAME_WIDTH)
        *width = len;
}

static size_t function_width(const struct cw_text *text, const struct cw_stack *stack,
                             unsigned count)
{
    const struct cw_symbols *symbols = text->source->symbols;
    size_t width = 0;

    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k + 1 < cw_symbols_places(symbols, stack->frame[i]); k++)
            widen(cw_symbols_place(symbols, stack->frame[i], k).function, &width);
        widen(function_of(text, stack->frame[i]), &width);
    }
    return width;
}

/* The number and the function; the place follows. */
static void begin_frame(const struct cw_text *text, unsigned number, const char *name, size_t width)
{
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

/* The functions that were inlined into the frame's, as frames; how many there are. */
static unsigned put_inlined(const struct cw_text *text, unsigned number, uint32_t frame,
                            size_t width)
{
    unsigned count = cw_symbols_places(text->source->symbols, frame);
    unsigned i;

    for (i = 0; i + 1 < count; i++) {
        struct cw_symbol_place place = cw_symbols_place(text->source->symbols, frame, i);

        begin_frame(text, number + i, place.function ? place.function : "?", width);
        if (place.file) {
            put_place(text, &place);
            cw_out_char(text->out, ' ');
        }
        cw_out_string(text->out, "(inlined)");
        cw_text_end_line(text);
    }
    return i;
}

static void put_frame(const struct cw_text *text, unsigned number, uint32_t frame, size_t width)
{
    struct cw_symbol_place place = own_place(text, frame);

    begin_frame(text, number, function_of(text, frame), width);
    if (place.file) {
        put_place(text, &place);
        cw_out_char(text->out, ' ');
        cw_text_clean(text, cw_module_name(text->view, cw_stack_module(text->view, frame)),
                      CW_TEXT_NAME_MAX);
    } else {
        put_address(text, frame);
    }
    cw_text_end_line(text);
}

/* Frames that follow and show the same: a recursion. */
static unsigned count_same(const struct cw_view *view, const struct cw_stack *stack, unsigned at,
                           unsigned end)
{
    const struct cw_live_code *code = cw_stack_code(view, stack->frame[at]);
    unsigned same = 0;

    while (code && at + same + 1 < end && cw_stack_code(view, stack->frame[at + same + 1]) == code)
        same++;
    return same;
}

static void put_no_stack(const struct cw_text *text)
{
    if (cw_view_header(text->view)->stacks_mode == CW_STACKS_OFF)
        cw_out_string(text->out, "(no stack: CUWARDEN_STACKS=off)");
    else
        cw_out_string(text->out, "(no stack)");
}

void cw_text_stack(const struct cw_text *text, uint32_t innermost, unsigned limit)
{
    struct cw_stack stack;
    unsigned number = 0;
    unsigned count;
    size_t width;

    cw_stack_visible(text->source->symbols, text->view, innermost, &stack);
    count = stack.count < limit ? stack.count : limit;
    width = function_width(text, &stack, count);
    for (unsigned i = 0; i < count; i++) {
        unsigned same = count_same(text->view, &stack, i, count);

        number += put_inlined(text, number, stack.frame[i], width);
        put_frame(text, number++, stack.frame[i], width);
        if (same < SAME_MIN)
            continue;
        cw_text_line(text, "    ... %u more frames like it", same);
        i += same;
        number += same;
    }
    if (stack.count > count)
        cw_text_line(text, "    ... %u more frame%s", stack.count - count,
                     stack.count - count == 1 ? "" : "s");
    if (stack.count == 0) {
        cw_text_begin_line(text);
        cw_out_string(text->out, "    ");
        put_no_stack(text);
        cw_text_end_line(text);
    }
}

/* The function and module of one frame, or its line, in one phrase. */
static void put_where(const struct cw_text *text, uint32_t frame)
{
    const char *name = function_of(text, frame);
    const struct cw_live_module *module = cw_stack_module(text->view, frame);
    const struct cw_live_code *code = cw_stack_code(text->view, frame);

    if (!name) {
        put_address(text, frame);
        return;
    }
    cw_text_clean(text, name, CW_TEXT_NAME_MAX);
    if (code) {
        cw_out_string(text->out, " (");
        put_line(text, code);
        cw_out_char(text->out, ')');
    } else if (module) {
        cw_out_string(text->out, " (");
        cw_text_clean(text, cw_module_name(text->view, module), CW_TEXT_NAME_MAX);
        cw_out_char(text->out, ')');
    }
}

void cw_text_innermost(const struct cw_text *text, uint32_t innermost)
{
    struct cw_stack stack;

    struct cw_symbol_place place;

    cw_stack_visible(text->source->symbols, text->view, innermost, &stack);
    if (stack.count == 0) {
        put_no_stack(text);
        return;
    }
    place = cw_symbols_place(text->source->symbols, stack.frame[0], 0);
    if (!place.function || !place.file) {
        put_where(text, stack.frame[0]);
        return;
    }
    cw_text_clean(text, place.function, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, " (");
    put_place(text, &place);
    cw_out_char(text->out, ')');
}

/* One frame of a trail, as a string; its module is named where it changes. */
static void format_step(const struct cw_text *text, const struct cw_stack *stack, unsigned at,
                        char *buf, size_t cap)
{
    const char *name = function_of(text, stack->frame[at]);
    struct cw_text onto = *text;
    struct cw_out step;

    cw_out_init(&step, -1, buf, cap - 1);
    onto.out = &step;
    if (name && at > 0 && !cw_stack_code(text->view, stack->frame[at]) &&
        cw_stack_module(text->view, stack->frame[at]) ==
            cw_stack_module(text->view, stack->frame[at - 1]))
        cw_text_clean(&onto, name, CW_TEXT_NAME_MAX);
    else
        put_where(&onto, stack->frame[at]);
    buf[step.len] = '\0';
}

void cw_text_trail(const struct cw_text *text, uint32_t innermost, size_t width)
{
    static const char arrow[] = " <- ", more[] = " <- ...";
    char step[2 * CW_TEXT_NAME_MAX + 8];
    struct cw_stack stack;
    size_t used;

    cw_stack_visible(text->source->symbols, text->view, innermost, &stack);
    if (stack.count == 0) {
        put_no_stack(text);
        return;
    }
    format_step(text, &stack, 0, step, sizeof(step));
    used = cw_text_clean_len(step, width - strlen(more));
    cw_text_clean(text, step, used);
    for (unsigned i = 1; i < stack.count; i++) {
        size_t last = i + 1 == stack.count ? 0 : strlen(more);

        format_step(text, &stack, i, step, sizeof(step));
        used += strlen(arrow) + strlen(step);
        if (used + last > width) {
            cw_out_string(text->out, more);
            return;
        }
        cw_out_printf(text->out, "%s%s", arrow, step);
    }
}

/* The function through which the program entered the library that owns the memory. */
void cw_text_entry(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    struct cw_stack stack;
    unsigned at = 0;

    cw_stack_visible(text->source->symbols, text->view, site->stack, &stack);
    while (at + 1 < stack.count) {
        const struct cw_live_frame *caller = cw_view_frame(text->view, stack.frame[at + 1]);

        if (!caller || caller->module != site->owner)
            break;
        at++;
    }
    if (stack.count > 0)
        put_where(text, stack.frame[at]);
    else
        put_no_stack(text);
}
