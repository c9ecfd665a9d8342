/* SPDX-License-Identifier: MIT */
/* Words, lines and frames of form_text.c. See say.h. */
#include "cli/say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"

#define WIDTH_MAX  48  /* a longer name pushes its column to the right */
#define PATH_SHOWN 240 /* a longer path is cut */

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

static size_t function_width(const struct cw_say *to, const struct cw_model_stack *stack)
{
    size_t width = 0;

    for (uint32_t i = 0; i < stack->count; i++) {
        size_t len = strlen(frame_at(to, stack, i)->function);

        if (len > width && len <= WIDTH_MAX)
            width = len;
    }
    return width;
}

/* "src/cache.c:88", "libfoo.so+0x1a2b" */
static void put_place(const struct cw_say *to, const struct cw_model_frame *frame)
{
    const char *module = cw_model_module_name(to->model, frame->module);

    if (frame->file[0]) {
        cw_say_clean(to, frame->file, PATH_SHOWN);
        if (frame->line != 0)
            fprintf(to->out, ":%" PRIu32, frame->line);
        return;
    }
    cw_say_clean(to, module[0] ? module : "?", CW_SAY_NAME_MAX);
    if (module[0])
        fprintf(to->out, "+0x%" PRIx64, frame->offset);
}

static void put_frame(const struct cw_say *to, uint32_t number, const struct cw_model_frame *frame,
                      size_t width)
{
    size_t len = strnlen(frame->function, CW_SAY_NAME_MAX);
    char label[16];

    snprintf(label, sizeof(label), "#%" PRIu32, number);
    cw_say_begin(to);
    fprintf(to->out, "%6s ", label);
    if (frame->function[0]) {
        cw_say_clean(to, frame->function, CW_SAY_NAME_MAX);
        fprintf(to->out, "%*s", (int)(len < width ? width - len : 0) + 2, "");
    }
    put_place(to, frame);
    if (frame->is_inlined) {
        fputs(" (inlined)", to->out);
    } else if (frame->file[0] && !frame->is_python) {
        fputc(' ', to->out);
        cw_say_clean(to, cw_model_module_name(to->model, frame->module), CW_SAY_NAME_MAX);
    }
    fputc('\n', to->out);
}

static const struct cw_model_stack *stack_of(const struct cw_say *to,
                                             const struct cw_model_site *site)
{
    const struct cw_model_stack *stack =
        site->stack != CW_MODEL_NONE ? &to->model->stack[site->stack] : NULL;

    return stack && stack->count > 0 ? stack : NULL;
}

void cw_say_frames(const struct cw_say *to, const struct cw_model_site *site, uint32_t limit)
{
    const struct cw_model_stack *stack = stack_of(to, site);
    size_t width;

    if (!stack) {
        cw_say_line(to, "    (no stack)");
        return;
    }
    width = function_width(to, stack);
    for (uint32_t i = 0; i < stack->count && i < limit; i++)
        put_frame(to, i, frame_at(to, stack, i), width);
    if (stack->count > limit)
        cw_say_line(to, "    ... %" PRIu32 " more frame%s", stack->count - limit,
                    stack->count - limit == 1 ? "" : "s");
}

void cw_say_stack(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_frames(to, site, UINT32_MAX);
}

/* ---- in one line ---- */

/* "inner (lib.so)", "libfoo.so+0x1a2b", "step (train.py:7)"; what is native has its line only where
 * there is room. */
static void put_where(const struct cw_say *to, const struct cw_model_frame *frame, int with_line)
{
    const char *module = cw_model_module_name(to->model, frame->module);

    if (!frame->function[0]) {
        put_place(to, frame);
        return;
    }
    cw_say_clean(to, frame->function, CW_SAY_NAME_MAX);
    fputs(" (", to->out);
    if (frame->file[0] && (with_line || frame->is_python || !module[0]))
        put_place(to, frame);
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
        put_where(to, frame, 0);
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

void cw_say_trail(const struct cw_say *to, const struct cw_model_site *site, size_t width)
{
    static const char arrow[] = " <- ", more[] = " <- ...";
    const struct cw_model_stack *stack = stack_of(to, site);
    size_t used = 0, before;

    if (!stack) {
        fputs("(no stack)", to->out);
        return;
    }
    for (uint32_t i = 0; i < stack->count; i++) {
        size_t last = i + 1 == stack->count ? 0 : strlen(more);
        char *step;

        if (frame_at(to, stack, i)->is_inlined)
            continue;
        step = make_step(to, stack, i);

        before = used;
        used += (step ? strlen(step) : 0) + (before > 0 ? strlen(arrow) : 0);
        if (!step || (before > 0 && used + last > width)) {
            fputs(more, to->out);
            free(step);
            return;
        }
        if (before > 0)
            fputs(arrow, to->out);
        cw_say_clean(to, step, before > 0 ? used : width - strlen(more));
        free(step);
    }
}

void cw_say_innermost(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_stack *stack = stack_of(to, site);

    if (stack)
        put_where(to, frame_at(to, stack, 0), 1);
    else
        fputs("(no stack)", to->out);
}
