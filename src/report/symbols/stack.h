/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of a live layout, and which of their frames are worth showing.
 *
 * A frame's parent always has a lower index; a record that violates this ends the walk.
 */
#ifndef CW_REPORT_STACK_H
#define CW_REPORT_STACK_H

#include <stdint.h>

#include "live/view.h"

struct cw_symbols;

struct cw_stack {
    unsigned count;
    uint32_t frame[CW_DEPTH_MAX]; /* innermost first */
};

/* All frames; none if `innermost` is 0 or invalid. */
void cw_stack_walk(const struct cw_view *view, uint32_t innermost, struct cw_stack *out_stack);

/*
 * Omits at the inner end the frames of our library, the driver, the runtime (also if linked
 * statically), the functions of the toolkit's headers (toolkit.h) and Python's glue (ctypes,
 * cffi), and at the outer end those that start a program or a thread. Where nothing would be left,
 * the outermost of those that lie in the program; all frames if there is none.
 */
void cw_stack_visible(const struct cw_symbols *symbols, const struct cw_view *view,
                      uint32_t innermost, struct cw_stack *out_stack);

/* The code of an interpreted frame, or NULL for machine code. */
const struct cw_live_code *cw_stack_code(const struct cw_view *view, uint32_t frame);
/* The frame's function, or NULL. */
const char *cw_stack_function(const struct cw_symbols *symbols, const struct cw_view *view,
                              uint32_t frame);
/* Whether a Python file is in a directory of pip, the distribution or Python itself, or generated.
 */
int cw_file_is_installed(const char *path);
/* Whether a file was made by a compiler of a framework: torch.compile, Triton. */
int cw_file_is_generated(const char *path);
/* The last component of a path, or two if one is not specific (pkg/__init__.py). */
const char *cw_short_file(const char *path);
const char *cw_source_line_file(const struct cw_view *view, const struct cw_live_code *code);

/* The frame's module, or NULL. */
const struct cw_live_module *cw_stack_module(const struct cw_view *view, uint32_t frame);

/* The last component of the module's path; "" if none. */
const char *cw_module_name(const struct cw_view *view, const struct cw_live_module *module);

/* Address of the call in the module's file, as for addr2line. */
static inline uint64_t cw_frame_offset(const struct cw_live_frame *frame,
                                       const struct cw_live_module *module)
{
    return frame->pc - 1 - module->bias;
}

/* A frame of the runtime, the driver or our library: it did not decide to allocate. */
static inline int cw_module_is_cuda(const struct cw_live_module *module)
{
    return module->role == CW_MODULE_SELF || module->role == CW_MODULE_DRIVER ||
           module->role == CW_MODULE_RUNTIME;
}

#endif
