/* SPDX-License-Identifier: MIT */
/* Runs of frames that the program did not write, each folded into one line of the text. */
#ifndef CW_REPORT_TEXT_FOLD_H
#define CW_REPORT_TEXT_FOLD_H

#include "report/text/text_frames.h"

/* For each frame, whether it is one of such a run. */
struct cw_text_folds {
    unsigned char frame[CW_DEPTH_MAX];
};

/*
 * Folds what belongs to frameworks, packages and libraries in a stack of the program's own frames
 * and theirs. Never: the innermost frame, those by which the stack differs from its neighbours, a
 * frame that takes one line alone, and frames of a stack without a framework or Python. Where no
 * frame is the program's own, the lines of packages other than frameworks count as such.
 */
void cw_text_fold(const struct cw_text *text, const struct cw_text_frames *frames,
                  struct cw_text_folds *out_folds);

/* "    ... 14 frames of libtorch_cuda.so, torch" */
void cw_text_put_fold(const struct cw_text *text, const struct cw_text_frames *frames,
                      unsigned first, unsigned count);

#endif
