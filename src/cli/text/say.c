/* SPDX-License-Identifier: MIT */
/* Words, lines and frames of form_text.c. See say.h. */
#include "cli/text/say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"

#define WIDTH_MAX  48  /* a longer name pushes its column to the right */
#define PATH_SHOWN 240 /* a longer path is cut */
#define SAME_MIN   3   /* fewer are printed as they are */

void cw_say_begin(const struct cw_say *to)
{
    fprintf(to->out, "==%" PRIu32 "== ", to->model->process.pid);
}

void cw_say_heading(const struct cw_say *to, const char *heading)
{
    cw_say_begin(to);
    fputc('\n', to->out);
    cw_say_begin(to);
    fputs(heading, to->out);
}

void cw_say_line(const struct cw_say *to, const char *fmt, ...)
{
    va_list ap;

    cw_say_begin(to);
    va_start(ap, fmt);
    vfprintf(to->out, fmt, ap);
    va_end(ap);
    fputc('\n', to->out);
}

/* At most max bytes, the last three of them dots when it was cut. */
void cw_say_clean(const struct cw_say *to, const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);
    int is_cut = len > max;
    size_t kept = is_cut ? max - 3 : len;

    while (is_cut && kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80) /* no half letters */
        kept--;
    for (size_t i = 0; i < kept; i++) {
        unsigned char byte = (unsigned char)text[i];

        fputc(byte < 0x20 || byte == 0x7f ? '?' : byte, to->out);
    }
    if (is_cut)
        fputs("...", to->out);
}

void cw_say_size(const struct cw_say *to, uint64_t bytes)
{
    char buf[24];

    fputs(cw_format_size(buf, sizeof(buf), bytes), to->out);
}

void cw_say_time(const struct cw_say *to, uint64_t ns)
{
    char buf[32];

    fputs(cw_format_duration(buf, sizeof(buf), ns), to->out);
}

void cw_say_count(const struct cw_say *to, uint64_t count, const char *noun)
{
    fprintf(to->out, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
}

void cw_say_amount(const struct cw_say *to, struct cw_model_amount amount)
{
    cw_say_size(to, amount.bytes);
    fputs(" in ", to->out);
    cw_say_count(to, amount.count, "block");
}

void cw_say_call(const struct cw_say *to, const struct cw_model_site *site, size_t max)
{
    cw_say_clean(to, site->api, max);
    fputs(", ", to->out);
    cw_say_device(to, site->device);
}

void cw_say_tag(const struct cw_say *to, const struct cw_model_site *site)
{
    if (!site->tag[0])
        return;
    fputs("  tag: ", to->out);
    cw_say_clean(to, site->tag, CW_SAY_NAME_MAX);
}

void cw_say_device(const struct cw_say *to, uint32_t device)
{
    if (device == CW_MODEL_HOST)
        fputs("host", to->out);
    else
        fprintf(to->out, "device %" PRIu32, device);
}

/* ---- frames ---- */

static const struct cw_model_frame *frame_at(const struct cw_say *to,
                                             const struct cw_model_stack *stack, uint32_t at)
{
    return &to->model->frame[to->model->stack_frame[stack->first + at]];
}

/* Frames that are shown, without what was inlined: the first `limit` of them. Where they end. */
static uint32_t find_end(const struct cw_say *to, const struct cw_model_stack *stack,
                         uint32_t limit)
{
    uint32_t end = 0;

    for (uint32_t own = 0; end < stack->count && own < limit; end++)
        own += !frame_at(to, stack, end)->is_inlined;
    return end;
}

static size_t function_width(const struct cw_say *to, const struct cw_model_stack *stack,
                             uint32_t end)
{
    size_t width = 0;

    for (uint32_t i = 0; i < end; i++) {
        size_t len = strlen(frame_at(to, stack, i)->function);

        if (len > width && len <= WIDTH_MAX)
            width = len;
    }
    return width;
}

/* The last component of the file's name; two where one says little (pkg/__init__.py). */
static const char *short_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (strncmp(name, "__", 2) != 0 || !slash)
        return name;
    while (slash > path && slash[-1] != '/')
        slash--;
    return slash[0] == '/' ? name : slash;
}

static void put_line(const struct cw_say *to, const char *file, size_t max, uint32_t line)
{
    cw_say_clean(to, file, max);
    if (line != 0)
        fprintf(to->out, ":%" PRIu32, line);
}

/* "train.py:88", "libfoo.so+0x1a2b", "0x7f0012" */
static void put_address(const struct cw_say *to, const struct cw_model_frame *frame)
{
    const char *module = cw_model_module_name(to->model, frame->module);

    if (frame->is_python && frame->file[0]) {
        put_line(to, short_file(frame->file), CW_SAY_NAME_MAX, frame->line);
    } else if (module[0]) {
        cw_say_clean(to, module, CW_SAY_NAME_MAX);
        fprintf(to->out, "+0x%" PRIx64, frame->offset);
    } else if (!frame->is_python && frame->address > 0) {
        fprintf(to->out, "0x%" PRIx64, frame->address - 1);
    } else {
        fputc('?', to->out);
    }
}

/* "src/cache.c:88 libfoo.so" where source lines are known. */
static void put_place(const struct cw_say *to, const struct cw_model_frame *frame)
{
    if (frame->is_inlined) {
        if (frame->file[0]) {
            put_line(to, frame->file, PATH_SHOWN, frame->line);
            fputc(' ', to->out);
        }
        fputs("(inlined)", to->out);
    } else if (frame->file[0] && !frame->is_python) {
        put_line(to, frame->file, PATH_SHOWN, frame->line);
        fputc(' ', to->out);
        cw_say_clean(to, cw_model_module_name(to->model, frame->module), CW_SAY_NAME_MAX);
    } else {
        put_address(to, frame);
    }
}

static void put_frame(const struct cw_say *to, uint32_t number, const struct cw_model_frame *frame,
                      size_t width)
{
    const char *function = frame->is_inlined && !frame->function[0] ? "?" : frame->function;
    size_t len = strnlen(function, CW_SAY_NAME_MAX);
    char label[16];

    snprintf(label, sizeof(label), "#%" PRIu32, number);
    cw_say_begin(to);
    fprintf(to->out, "%6s ", label);
    if (function[0]) {
        cw_say_clean(to, function, CW_SAY_NAME_MAX);
        fprintf(to->out, "%*s", (int)(len < width ? width - len : 0) + 2, "");
    }
    put_place(to, frame);
    fputc('\n', to->out);
}

static const struct cw_model_stack *stack_of(const struct cw_say *to,
                                             const struct cw_model_site *site)
{
    const struct cw_model_stack *stack =
        site->stack != CW_MODEL_NONE ? &to->model->stack[site->stack] : NULL;

    return stack && stack->count > 0 ? stack : NULL;
}

static const char *no_stack(const struct cw_say *to)
{
    return to->model->process.has_no_stacks ? "(no stack: CUWARDEN_STACKS=off)" : "(no stack)";
}

static int is_same(const struct cw_model_frame *a, const struct cw_model_frame *b)
{
    return a->is_python && b->is_python && a->line == b->line && strcmp(a->file, b->file) == 0 &&
           strcmp(a->function, b->function) == 0;
}

/* Frames of Python that follow and show the same: a recursion. */
static uint32_t count_same(const struct cw_say *to, const struct cw_model_stack *stack, uint32_t at,
                           uint32_t end)
{
    uint32_t same = 0;

    while (at + same + 1 < end &&
           is_same(frame_at(to, stack, at), frame_at(to, stack, at + same + 1)))
        same++;
    return same;
}

static uint32_t count_own(const struct cw_say *to, const struct cw_model_stack *stack,
                          uint32_t begin)
{
    uint32_t own = 0;

    for (uint32_t i = begin; i < stack->count; i++)
        own += !frame_at(to, stack, i)->is_inlined;
    return own;
}

void cw_say_frames(const struct cw_say *to, const struct cw_model_site *site, uint32_t limit)
{
    const struct cw_model_stack *stack = stack_of(to, site);
    uint32_t end, rest;
    size_t width;

    if (!stack) {
        cw_say_line(to, "    %s", no_stack(to));
        return;
    }
    end = find_end(to, stack, limit);
    width = function_width(to, stack, end);
    for (uint32_t i = 0; i < end; i++) {
        uint32_t same = count_same(to, stack, i, end);

        put_frame(to, i, frame_at(to, stack, i), width);
        if (same < SAME_MIN)
            continue;
        cw_say_line(to, "    ... %" PRIu32 " more frames like it", same);
        i += same;
    }
    rest = count_own(to, stack, end);
    if (rest > 0)
        cw_say_line(to, "    ... %" PRIu32 " more frame%s", rest, rest == 1 ? "" : "s");
}

void cw_say_stack(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_frames(to, site, UINT32_MAX);
}

/* ---- in one line ---- */

/* "inner (lib.so)", "libfoo.so+0x1a2b", "step (train.py:7)" */
static void put_where(const struct cw_say *to, const struct cw_model_frame *frame)
{
    const char *module = cw_model_module_name(to->model, frame->module);

    if (!frame->function[0]) {
        put_address(to, frame);
        return;
    }
    cw_say_clean(to, frame->function, CW_SAY_NAME_MAX);
    if (frame->is_python ? !frame->file[0] : frame->module == CW_MODEL_NONE)
        return;
    fputs(" (", to->out);
    if (frame->is_python)
        put_line(to, short_file(frame->file), CW_SAY_NAME_MAX, frame->line);
    else
        cw_say_clean(to, module, CW_SAY_NAME_MAX);
    fputc(')', to->out);
}

/* One frame of a trail; its module is named where it changes. */
static void put_step(const struct cw_say *to, const struct cw_model_stack *stack, uint32_t at)
{
    const struct cw_model_frame *frame = frame_at(to, stack, at);

    if (frame->function[0] && at > 0 && !frame->is_python &&
        frame_at(to, stack, at - 1)->module == frame->module)
        cw_say_clean(to, frame->function, CW_SAY_NAME_MAX);
    else
        put_where(to, frame);
}

/* The step's text, for the caller to free; NULL: no memory. */
static char *make_step(const struct cw_say *to, const struct cw_model_stack *stack, uint32_t at)
{
    struct cw_say onto = *to;
    char *step = NULL;
    size_t len;

    onto.out = open_memstream(&step, &len);
    if (!onto.out)
        return NULL;
    put_step(&onto, stack, at);
    fclose(onto.out);
    return step;
}

/* Its own frame, behind those that were inlined into it. */
static uint32_t skip_inlined(const struct cw_say *to, const struct cw_model_stack *stack,
                             uint32_t at)
{
    while (at + 1 < stack->count && frame_at(to, stack, at)->is_inlined)
        at++;
    return at;
}

void cw_say_trail(const struct cw_say *to, const struct cw_model_site *site, size_t width)
{
    static const char arrow[] = " <- ", more[] = " <- ...";
    const struct cw_model_stack *stack = stack_of(to, site);
    size_t used = 0, most = width - strlen(more);

    if (!stack) {
        fputs(no_stack(to), to->out);
        return;
    }
    for (uint32_t i = skip_inlined(to, stack, 0), n = 0; i < stack->count;
         i = skip_inlined(to, stack, i + 1), n++) {
        size_t last = i + 1 == stack->count ? 0 : strlen(more);
        char *step = make_step(to, stack, i);
        size_t len = step ? strlen(step) : 0;

        used += n == 0 ? (len < most ? len : most) : strlen(arrow) + len;
        if (!step || (n > 0 && used + last > width)) {
            fputs(more, to->out);
            free(step);
            return;
        }
        if (n > 0)
            fputs(arrow, to->out);
        cw_say_clean(to, step, n > 0 ? len : most);
        free(step);
    }
}

void cw_say_innermost(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_stack *stack = stack_of(to, site);
    const struct cw_model_frame *frame = stack ? frame_at(to, stack, 0) : NULL;

    if (!frame) {
        fputs(no_stack(to), to->out);
    } else if (!frame->is_python && frame->function[0] && frame->file[0]) {
        cw_say_clean(to, frame->function, CW_SAY_NAME_MAX);
        fputs(" (", to->out);
        put_line(to, frame->file, PATH_SHOWN, frame->line);
        fputc(')', to->out);
    } else {
        put_where(to, frame_at(to, stack, skip_inlined(to, stack, 0)));
    }
}

void cw_say_entry(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_stack *stack = stack_of(to, site);
    uint32_t at, caller;

    if (!stack) {
        fputs(no_stack(to), to->out);
        return;
    }
    at = skip_inlined(to, stack, 0);
    while (at + 1 < stack->count) {
        caller = skip_inlined(to, stack, at + 1);
        if (site->owner == CW_MODEL_NONE || frame_at(to, stack, caller)->module != site->owner)
            break;
        at = caller;
    }
    put_where(to, frame_at(to, stack, at));
}
