/* SPDX-License-Identifier: MIT */
/* Words, lines and frames of the text report. See text_put.h. */
#include "report/text/text_put.h"

#include <string.h>

#include "base/options/options.h"
#include "report/symbols/qualified.h"
#include "report/symbols/stack.h"
#include "report/snapshot/tag.h"

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

/* A name that nothing has demangled, without its arguments. */
static const char *readable(const char *name, char *buf, size_t cap)
{
    if (!name || strncmp(name, "_Z", 2) != 0)
        return name;
    cw_qualified_name(name, buf, cap);
    return strncmp(buf, "::", 2) == 0 ? buf + 2 : buf;
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

static void widen(const char *symbol, size_t *width)
{
    char buf[CW_TEXT_NAME_MAX];
    const char *name = readable(symbol, buf, sizeof(buf));
    size_t len = name ? cw_text_clean_len(name, CW_TEXT_NAME_MAX) : 0;

    if (len > *width && len <= CW_TEXT_NAME_WIDTH)
        *width = len;
}

/* ---- which frames of a long stack are shown ---- */

struct choice {
    unsigned count; /* of those that are */
    unsigned char shown[CW_DEPTH_MAX];
};

/* What they take: themselves, and a line for each row of others. */
static unsigned count_lines(const struct choice *choice, const struct cw_stack *stack)
{
    unsigned lines = 0;

    for (unsigned i = 0; i < stack->count; i++)
        lines += choice->shown[i] || i == 0 || choice->shown[i - 1];
    return lines;
}

/* At most `limit`, in at most a line more. */
static void choose(struct choice *choice, const struct cw_stack *stack, unsigned at, unsigned limit)
{
    if (at >= stack->count || choice->count == limit || choice->shown[at])
        return;
    choice->shown[at] = 1;
    if (choice->count > 0 && count_lines(choice, stack) > limit + 1)
        choice->shown[at] = 0;
    else
        choice->count++;
}

/* The frame that follows in a trail; in that of a script only its own ones are worth the room. */
static unsigned next_step(const struct cw_text *text, const struct cw_stack *stack, unsigned at,
                          int only_own)
{
    do
        at++;
    while (at < stack->count && only_own && !cw_stack_is_own(text->view, stack->frame[at]));
    return at;
}

/*
 * The innermost ones. Where the script's own lines are not among them, these are worth more than
 * the inside of a framework: its innermost line; then the call that was made, and where Python left
 * off for machine code; then who called the script's line; then the innermost frames as far as they
 * go.
 */
static void choose_frames(const struct cw_text *text, const struct cw_stack *stack, unsigned limit,
                          struct choice *out_choice)
{
    unsigned script = cw_stack_script(text->view, stack);
    unsigned python = 0;

    *out_choice = (struct choice){0};
    while (python < stack->count && !cw_stack_code(text->view, stack->frame[python]))
        python++;
    if (script >= limit && script < stack->count) {
        choose(out_choice, stack, script, limit);
        choose(out_choice, stack, 0, limit);
        choose(out_choice, stack, python, limit);
        if (python > 0)
            choose(out_choice, stack, python - 1, limit);
        choose(out_choice, stack, next_step(text, stack, script, 1), limit);
    }
    for (unsigned i = 0; i < stack->count; i++)
        choose(out_choice, stack, i, limit);
}

static size_t function_width(const struct cw_text *text, const struct cw_stack *stack,
                             const struct choice *choice)
{
    const struct cw_symbols *symbols = text->source->symbols;
    size_t width = 0;

    for (unsigned i = 0; i < stack->count; i++) {
        if (!choice->shown[i])
            continue;
        for (unsigned k = 0; k + 1 < cw_symbols_places(symbols, stack->frame[i]); k++)
            widen(cw_symbols_place(symbols, stack->frame[i], k).function, &width);
        widen(function_of(text, stack->frame[i]), &width);
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

static void put_more(const struct cw_text *text, unsigned count)
{
    if (count > 0)
        cw_text_line(text, "    ... %u more frame%s", count, count == 1 ? "" : "s");
}

/* The frames that are shown, and lines in place of the others. */
static void put_frames(const struct cw_text *text, const struct cw_stack *stack,
                       const struct choice *choice)
{
    size_t width = function_width(text, stack, choice);
    unsigned number = 0;
    unsigned skipped = 0;

    for (unsigned i = 0; i < stack->count; i++) {
        unsigned end = i;
        unsigned same;

        if (!choice->shown[i]) {
            skipped++;
            continue;
        }
        put_more(text, skipped);
        number += skipped;
        skipped = 0;
        while (end < stack->count && choice->shown[end])
            end++;
        same = count_same(text->view, stack, i, end);
        number += put_inlined(text, number, stack->frame[i], width);
        put_frame(text, number++, stack->frame[i], width);
        if (same < SAME_MIN)
            continue;
        cw_text_line(text, "    ... %u more frames like it", same);
        i += same;
        number += same;
    }
    put_more(text, skipped);
}

void cw_text_stack(const struct cw_text *text, uint32_t innermost, unsigned limit)
{
    struct cw_stack stack;
    struct choice choice;

    cw_stack_visible(text->source->symbols, text->view, innermost, &stack);
    choose_frames(text, &stack, limit, &choice);
    put_frames(text, &stack, &choice);
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
    char buf[CW_TEXT_NAME_MAX];
    const char *name = readable(function_of(text, frame), buf, sizeof(buf));
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

/* The visible frames from that on by which one phrase names a stack: of a script, its own. */
static void find_telling(const struct cw_text *text, uint32_t innermost, struct cw_stack *out_stack)
{
    unsigned script;

    cw_stack_visible(text->source->symbols, text->view, innermost, out_stack);
    script = cw_stack_script(text->view, out_stack);
    if (script == out_stack->count)
        return;
    out_stack->count -= script;
    memmove(out_stack->frame, out_stack->frame + script, out_stack->count * sizeof(uint32_t));
}

void cw_text_where(const struct cw_text *text, uint32_t innermost)
{
    struct cw_symbol_place place;
    struct cw_stack stack;

    find_telling(text, innermost, &stack);
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
    char demangled[CW_TEXT_NAME_MAX];
    const char *name = readable(function_of(text, stack->frame[at]), demangled, sizeof(demangled));
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
    static const char arrow[] = " <- ", gap[] = " <- ... <- ", more[] = " <- ...";
    char step[2 * CW_TEXT_NAME_MAX + 8];
    struct cw_stack stack;
    size_t used;
    int is_own;

    find_telling(text, innermost, &stack);
    if (stack.count == 0) {
        put_no_stack(text);
        return;
    }
    format_step(text, &stack, 0, step, sizeof(step));
    used = cw_text_clean_len(step, width - strlen(more));
    cw_text_clean(text, step, used);
    is_own = cw_stack_is_own(text->view, stack.frame[0]);
    for (unsigned at = 0, next;; at = next) {
        const char *between;
        size_t last;

        next = next_step(text, &stack, at, is_own);
        if (next == stack.count)
            return;
        between = next == at + 1 ? arrow : gap;
        last = next_step(text, &stack, next, is_own) == stack.count ? 0 : strlen(more);
        format_step(text, &stack, next, step, sizeof(step));
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
