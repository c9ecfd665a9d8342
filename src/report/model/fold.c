/* SPDX-License-Identifier: MIT */
/* Runs of frames that the program did not write. See fold.h. */
#include "report/model/fold.h"

#include <string.h>

#include "base/out.h"
#include "report/model/code_kind.h"

#define NAMES_MAX 3  /* of what a line stands for */
#define NAME_CAP  64 /* of a package */

/* ---- which ---- */

/* Whose frames the stack has. */
struct owners {
    unsigned char kind[CW_DEPTH_MAX]; /* enum cw_code_kind, by position */
    int has_own, has_package, has_others;
};

static const struct cw_report_frame *frame_at(const struct cw_fold_frames *frames, unsigned at)
{
    return &frames->frame[frames->number[at]];
}

static void find_owners(const struct cw_fold_frames *frames, struct owners *out_owners)
{
    out_owners->has_own = out_owners->has_package = out_owners->has_others = 0;
    for (unsigned i = 0; i < frames->count; i++) {
        const struct cw_report_frame *frame = frame_at(frames, i);
        enum cw_code_kind kind = cw_code_kind(frames->model, frame);

        out_owners->kind[i] = (unsigned char)kind;
        out_owners->has_own |= kind == CW_CODE_OWN;
        out_owners->has_package |= kind == CW_CODE_PYTHON && frame->is_python;
        out_owners->has_others |= kind == CW_CODE_FRAMEWORK || kind == CW_CODE_PYTHON;
    }
}

static int is_kept(const struct owners *owners, const struct cw_fold_frames *frames, unsigned at)
{
    if (at == 0 || (frames->mark && (cw_contrast_has(frames->mark->frame, at) ||
                                     cw_contrast_has(frames->mark->address, at))))
        return 1;
    if (owners->has_own)
        return owners->kind[at] == CW_CODE_OWN;
    return owners->kind[at] == CW_CODE_PYTHON && frame_at(frames, at)->is_python;
}

/* The position after the run of frames from `at` that are not kept, and the lines they take. */
static unsigned end_of_run(const struct owners *owners, const struct cw_fold_frames *frames,
                           unsigned at, unsigned *out_lines)
{
    *out_lines = 0;
    for (; at < frames->count && !is_kept(owners, frames, at); at++)
        *out_lines += 1 + frame_at(frames, at)->inlines;
    return at;
}

void cw_folds_find(const struct cw_fold_frames *frames, struct cw_folds *out_folds)
{
    struct owners owners;
    unsigned lines;

    memset(out_folds, 0, sizeof(*out_folds));
    find_owners(frames, &owners);
    if (!owners.has_others || (!owners.has_own && !owners.has_package))
        return;
    for (unsigned i = 0, end; i < frames->count; i = end + 1) {
        end = end_of_run(&owners, frames, i, &lines);
        if (lines > 1)
            memset(&out_folds->frame[i], 1, end - i);
    }
}

/* ---- the line ---- */

char *cw_fold_names(const struct cw_fold_frames *frames, unsigned first, unsigned count, char *buf)
{
    char names_buf[NAMES_MAX + 1][NAME_CAP];
    const char *name[NAMES_MAX + 1];
    unsigned names = 0;
    size_t len = 0;

    buf[0] = '\0';
    for (unsigned i = first; i < first + count && names <= NAMES_MAX; i++) {
        unsigned same = 0;

        name[names] = cw_code_name(frames->model, frame_at(frames, i), names_buf[names], NAME_CAP);
        while (strcmp(name[same], name[names]) != 0)
            same++;
        if (same < names)
            continue;
        len += cw_format(buf + len, CW_FOLD_NAMES_MAX - len, "%s%.*s", names == 0 ? "" : ", ",
                         NAME_CAP, names < NAMES_MAX ? name[names] : "...");
        names++;
    }
    return buf;
}
