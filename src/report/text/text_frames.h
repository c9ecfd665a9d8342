/* SPDX-License-Identifier: MIT */
/* The frames of a stack as text: shared by text_put.c, which prints stacks, and text_where.c, which
 * prints lines about them. */
#ifndef CW_REPORT_TEXT_FRAMES_H
#define CW_REPORT_TEXT_FRAMES_H

#include "report/model/contrast.h"
#include "report/text/text_put.h"

#define CW_TEXT_PATH_MAX 240 /* a longer path is truncated */

/* The visible frames of a stack, innermost first. */
struct cw_text_frames {
    const struct cw_report_frame *frame; /* the model's */
    const uint32_t *number;
    unsigned count;
    struct cw_contrast_mark mark; /* those by which the stack differs from its neighbours */
};

static inline const struct cw_report_frame *cw_text_frame(const struct cw_text_frames *frames,
                                                          unsigned position)
{
    return &frames->frame[frames->number[position]];
}

/* None while the text only collects which stacks it needs. */
struct cw_text_frames cw_text_frames_of(const struct cw_text *text, uint32_t stack);
/* The position after `at`; with only_own, that of the next frame of the program's own script. */
unsigned cw_text_next_step(const struct cw_text_frames *frames, unsigned at, int only_own);

/* A name of C++ without its arguments, if it is long or still mangled. */
const char *cw_text_readable(const char *name, char *buf, size_t cap);
/* "src/cache.cu:88", "train.py:218" */
void cw_text_file_line(const struct cw_text *text, const char *file, size_t max, uint32_t line);
/* "train.py:218", "libfoo.so+0x1a2b" */
void cw_text_address(const struct cw_text *text, const struct cw_report_frame *frame);
void cw_text_no_stack(const struct cw_text *text);

#endif
