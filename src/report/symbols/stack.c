/* SPDX-License-Identifier: MIT */
/* Walking stacks and choosing visible frames. See stack.h. */
#include "report/symbols/stack.h"

#include <string.h>

#include "base/compiler.h"
#include "report/symbols/symbol.h"
#include "report/symbols/toolkit.h"

void cw_stack_walk(const struct cw_view *view, uint32_t innermost, struct cw_stack *out_stack)
{
    uint32_t at = innermost;

    out_stack->count = 0;
    while (at != 0 && out_stack->count < CW_DEPTH_MAX) {
        const struct cw_live_frame *frame = cw_view_frame(view, at);
        uint32_t parent;

        if (frame == NULL)
            return;
        out_stack->frame[out_stack->count++] = at;
        parent = frame->parent;
        if (parent >= at)
            return;
        at = parent;
    }
}

const struct cw_live_module *cw_stack_module(const struct cw_view *view, uint32_t frame)
{
    const struct cw_live_frame *record = cw_view_frame(view, frame);

    return record ? cw_view_module(view, record->module) : NULL;
}

const struct cw_live_code *cw_stack_code(const struct cw_view *view, uint32_t frame)
{
    const struct cw_live_frame *record = cw_view_frame(view, frame);

    if (!record || record->module != CW_MODULE_PYTHON || record->pc > UINT32_MAX)
        return NULL;
    return cw_view_code(view, (uint32_t)record->pc);
}

/* DIR/ab/cabLETTERS.py: in any directory, as TORCHINDUCTOR_CACHE_DIR is free. The name is a hash,
 * and its second and third characters name the directory. */
static int is_named_by_inductor(const char *path)
{
    enum { HASH_LEN = 52 };
    const char *name = cw_short_file(path);

    return name >= path + 4 && name[0] == 'c' && name[-4] == '/' && name[-3] == name[1] &&
           name[-2] == name[2] && strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == HASH_LEN &&
           name[HASH_LEN] == '.';
}

int cw_file_is_generated(const char *path)
{
    return is_named_by_inductor(path) || strstr(path, "/torchinductor_") ||
           strstr(path, "/.triton/cache/");
}

int cw_file_is_installed(const char *path)
{
    static const char *const places[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};
    static const char *const typed[] = {"<stdin>", "<python-input-"};

    if (path[0] == '<') {
        for (size_t i = 0; i < CW_ARRAY_LEN(typed); i++)
            if (strncmp(path, typed[i], strlen(typed[i])) == 0)
                return 0;
        return 1;
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(places); i++)
        if (strstr(path, places[i]))
            return 1;
    return cw_file_is_generated(path);
}

const char *cw_stack_function(const struct cw_symbols *symbols, const struct cw_view *view,
                              uint32_t frame)
{
    const struct cw_live_code *code = cw_stack_code(view, frame);
    const char *name = code ? cw_view_text(view, code->function) : "";

    return name[0] ? name : cw_symbols_name(symbols, frame);
}

const char *cw_short_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (strncmp(name, "__", 2) != 0 || slash == NULL)
        return name;
    while (slash > path && slash[-1] != '/')
        slash--;
    return slash[0] == '/' ? name : slash;
}

const char *cw_source_line_file(const struct cw_view *view, const struct cw_live_code *code)
{
    return cw_short_file(cw_view_text(view, code->file));
}

const char *cw_module_name(const struct cw_view *view, const struct cw_live_module *module)
{
    const char *path = module ? cw_view_text(view, module->path) : "";
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int has_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The available information about the frame at one position of a stack. */
struct place {
    const char *function;                /* NULL: no name */
    const struct cw_live_module *module; /* NULL: in none */
};

static struct place look(const struct cw_symbols *symbols, const struct cw_view *view,
                         const struct cw_stack *stack, unsigned at)
{
    return (struct place){.function = cw_symbols_name(symbols, stack->frame[at]),
                          .module = cw_stack_module(view, stack->frame[at])};
}

/* The file of a frame's own function, or NULL. */
static const char *own_file(const struct cw_symbols *symbols, uint32_t frame)
{
    unsigned count = cw_symbols_places(symbols, frame);

    return count > 0 ? cw_symbols_place(symbols, frame, count - 1).file : NULL;
}

static int is_in_cuda_module(const struct cw_view *view, uint32_t frame)
{
    const struct cw_live_module *module = cw_stack_module(view, frame);

    return module && cw_module_is_cuda(module);
}

static int is_cuda(const struct cw_symbols *symbols, const struct cw_view *view, uint32_t frame)
{
    return is_in_cuda_module(view, frame) ||
           cw_toolkit_has_function(cw_symbols_name(symbols, frame), own_file(symbols, frame));
}

/* The glue through which Python calls libraries that are independent of Python. */
static int is_glue(const struct cw_view *view, const struct place *place)
{
    static const char *const names[] = {"libffi.so", "_ctypes.", "_cffi_backend."};
    const char *name = cw_module_name(view, place->module);

    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        if (has_prefix(name, names[i]))
            return 1;
    return 0;
}

static int is_start_function(const struct place *place)
{
    static const char *const names[] = {
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "start_thread",
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "thread_start",
    };

    for (size_t i = 0; place->function && i < CW_ARRAY_LEN(names); i++)
        if (strcmp(place->function, names[i]) == 0)
            return 1;
    return 0;
}

/* A stripped libc names neither start_thread nor clone3. */
static int is_unnamed_libc(const struct cw_view *view, const struct place *place)
{
    const char *name = cw_module_name(view, place->module);

    return !place->function && (has_prefix(name, "libc.so") || has_prefix(name, "libc-2") ||
                                has_prefix(name, "libpthread"));
}

/* The number of frames left after removing those outside main, or outside a thread's function. */
static unsigned trim_outer(const struct cw_symbols *symbols, const struct cw_view *view,
                           const struct cw_stack *stack)
{
    unsigned end = stack->count;
    struct place place;

    for (unsigned i = end; i-- > 0;) {
        place = look(symbols, view, stack, i);
        if (place.function && strcmp(place.function, "main") == 0)
            return i + 1;
    }
    if (end >= 2) { /* the _start of a stripped program */
        struct place caller = look(symbols, view, stack, end - 1);

        place = look(symbols, view, stack, end - 2);
        if (!caller.function && is_start_function(&place))
            end--;
    }
    for (; end > 0; end--) {
        place = look(symbols, view, stack, end - 1);
        if (!is_start_function(&place) && !is_unnamed_libc(view, &place))
            break;
    }
    return end;
}

/*
 * The position after CUDA's own frames. In a program that was stripped down to what it exports, the
 * inside of a static runtime has no names: nameless frames are CUDA's if such a function of the
 * same module called them.
 */
static unsigned skip_cuda(const struct cw_symbols *symbols, const struct cw_view *view,
                          const struct cw_stack *stack, unsigned end)
{
    const struct cw_live_module *nameless = NULL;
    unsigned begin = 0;

    for (unsigned at = 0; at < end; at++) {
        struct place place = look(symbols, view, stack, at);

        if (nameless && place.module != nameless)
            break;
        if (is_cuda(symbols, view, stack->frame[at])) {
            begin = at + 1;
            nameless = NULL;
        } else if (place.function || !place.module) {
            break;
        } else {
            nameless = place.module;
        }
    }
    return begin;
}

/* The position of Python after the glue, or `begin` if there is none. */
static unsigned skip_glue(const struct cw_symbols *symbols, const struct cw_view *view,
                          const struct cw_stack *stack, unsigned begin, unsigned end)
{
    for (unsigned at = begin; at < end; at++) {
        struct place place = look(symbols, view, stack, at);

        if (cw_stack_code(view, stack->frame[at]))
            return at;
        if (!is_glue(view, &place))
            break;
    }
    return begin;
}

void cw_stack_visible(const struct cw_symbols *symbols, const struct cw_view *view,
                      uint32_t innermost, struct cw_stack *out_stack)
{
    unsigned begin, end;

    cw_stack_walk(view, innermost, out_stack);
    end = trim_outer(symbols, view, out_stack);
    begin = skip_cuda(symbols, view, out_stack, end);
    if (begin >= end && end > 0 && !is_in_cuda_module(view, out_stack->frame[end - 1]))
        begin = end - 1; /* the function that was called, where its caller is not known */
    if (begin >= end)
        return;
    begin = skip_glue(symbols, view, out_stack, begin, end);
    out_stack->count = end - begin;
    memmove(out_stack->frame, out_stack->frame + begin, out_stack->count * sizeof(uint32_t));
}
