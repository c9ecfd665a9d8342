/* SPDX-License-Identifier: MIT */
/*
 * The frames by which the call sites of one list differ. A line that names a site by one frame also
 * needs those that other sites with the same frame do not have.
 */
#ifndef CW_REPORT_CONTRAST_H
#define CW_REPORT_CONTRAST_H

#include <stddef.h>
#include <stdint.h>

#include "report/model/report_model.h"

#define CW_CONTRAST_WORDS (CW_DEPTH_MAX / 64)

/* Sets of visible frames of a stack, by position from the innermost. */
struct cw_contrast_mark {
    uint64_t frame[CW_CONTRAST_WORDS];   /* its function or line differs */
    uint64_t address[CW_CONTRAST_WORDS]; /* only its address does */
};

struct cw_contrast_stack;

struct cw_contrast {
    const struct cw_report_model *model;
    struct cw_contrast_stack *stack; /* by number */
    uint32_t count, cap;
};

/* Of `count` sites: the first one's index is at `site`, each next one's `stride` bytes later. If
 * out of memory, nothing is marked. */
void cw_contrast_init(struct cw_contrast *contrast, const struct cw_report_model *model,
                      const uint32_t *site, size_t stride, uint32_t count);
void cw_contrast_free(struct cw_contrast *contrast);
/* The marks of a stack; none if it is not in the list. */
struct cw_contrast_mark cw_contrast_marks(const struct cw_contrast *contrast, uint32_t stack);

static inline int cw_contrast_has(const uint64_t *set, unsigned position)
{
    return position < CW_DEPTH_MAX && (set[position / 64] >> position % 64 & 1) != 0;
}

/* The position of the frame that names a stack: of a script the program's own innermost frame, else
 * the innermost interpreted one; `count` if no Python is in it. */
unsigned cw_report_script_frame(const struct cw_report_frame *frame, const uint32_t *number,
                                unsigned count);

/* Whether the frame has a line of a script. */
static inline int cw_report_is_code(const struct cw_report_frame *frame)
{
    return frame->is_python && frame->file;
}

/* Whether it is the program's own: not of an installed package or Python's library. */
int cw_report_is_own(const struct cw_report_frame *frame);

#endif
