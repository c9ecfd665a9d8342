/* SPDX-License-Identifier: MIT */
/* Words, lines and frames of form_text.c. See say.h. */
#include "cli/say.h"

#include <inttypes.h>
#include <stdarg.h>
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

void cw_say_stack(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_stack *stack = stack_of(to, site);
    size_t width;

    if (!stack) {
        cw_say_line(to, "    (no stack)");
        return;
    }
    width = function_width(to, stack);
    for (uint32_t i = 0; i < stack->count; i++)
        put_frame(to, i, frame_at(to, stack, i), width);
}

void cw_say_innermost(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_stack *stack = stack_of(to, site);
    const struct cw_model_frame *frame;

    if (!stack) {
        fputs("(no stack)", to->out);
        return;
    }
    frame = frame_at(to, stack, 0);
    if (!frame->function[0]) {
        put_place(to, frame);
        return;
    }
    cw_say_clean(to, frame->function, CW_SAY_NAME_MAX);
    fputs(" (", to->out);
    if (frame->file[0])
        put_place(to, frame);
    else
        cw_say_clean(to, cw_model_module_name(to->model, frame->module), CW_SAY_NAME_MAX);
    fputc(')', to->out);
}
