/* SPDX-License-Identifier: MIT */
/* Runs of frames that the program did not write, of which reports make one line. */
#ifndef CW_REPORT_FOLD_H
#define CW_REPORT_FOLD_H

#include "report/model/contrast.h"

/* The visible frames of a stack, innermost first. */
struct cw_fold_frames {
    const struct cw_report_model *model;
    const struct cw_report_frame *frame; /* the model's */
    const uint32_t *number;
    unsigned count;
    const struct cw_contrast_mark *mark; /* of frames that stay; NULL: of none */
};

/* For each frame, whether it is one of such a run. */
struct cw_folds {
    unsigned char frame[CW_DEPTH_MAX];
};

/*
 * Folds what belongs to frameworks, packages and libraries in a stack of the program's own frames
 * and theirs. Never: the innermost frame, those that are marked, a frame that takes one line alone,
 * and frames of a stack without a framework or Python. Where no frame is the program's own, the
 * lines of packages other than frameworks count as such.
 */
void cw_folds_find(const struct cw_fold_frames *frames, struct cw_folds *out_folds);

#define CW_FOLD_NAMES_MAX 256

/* Whose they are: "libtorch_cuda.so, torch"; returns buf, of CW_FOLD_NAMES_MAX bytes. */
char *cw_fold_names(const struct cw_fold_frames *frames, unsigned first, unsigned count, char *buf);

#endif
