/* SPDX-License-Identifier: MIT */
/* Runs of frames that the program did not write. See text_fold.h. */
#include "report/text/text_fold.h"

#include <string.h>

#include "report/model/code_kind.h"

#define NAMES_MAX 3  /* of what a line stands for */
#define NAME_CAP  64 /* of a package */

/* ---- which ---- */

/* Whose frames the stack has. */
struct owners {
    unsigned char kind[CW_DEPTH_MAX]; /* enum cw_code_kind, by position */
    int has_own, has_package, has_others;
};

static void find_owners(const struct cw_text *text, const struct cw_text_frames *frames,
                        struct owners *out_owners)
{
    out_owners->has_own = out_owners->has_package = out_owners->has_others = 0;
    for (unsigned i = 0; i < frames->count; i++) {
        const struct cw_report_frame *frame = cw_text_frame(frames, i);
        enum cw_code_kind kind = cw_code_kind(text->model, frame);

        out_owners->kind[i] = (unsigned char)kind;
        out_owners->has_own |= kind == CW_CODE_OWN;
        out_owners->has_package |= kind == CW_CODE_PYTHON && frame->is_python;
        out_owners->has_others |= kind == CW_CODE_FRAMEWORK || kind == CW_CODE_PYTHON;
    }
}

static int is_kept(const struct owners *owners, const struct cw_text_frames *frames, unsigned at)
{
    if (at == 0 || cw_contrast_has(frames->mark.frame, at) ||
        cw_contrast_has(frames->mark.address, at))
        return 1;
    if (owners->has_own)
        return owners->kind[at] == CW_CODE_OWN;
    return owners->kind[at] == CW_CODE_PYTHON && cw_text_frame(frames, at)->is_python;
}

/* The position after the run of frames from `at` that are not kept, and the lines they take. */
static unsigned end_of_run(const struct owners *owners, const struct cw_text_frames *frames,
                           unsigned at, unsigned *out_lines)
{
    *out_lines = 0;
    for (; at < frames->count && !is_kept(owners, frames, at); at++)
        *out_lines += 1 + cw_text_frame(frames, at)->inlines;
    return at;
}

void cw_text_fold(const struct cw_text *text, const struct cw_text_frames *frames,
                  struct cw_text_folds *out_folds)
{
    struct owners owners;
    unsigned lines;

    memset(out_folds, 0, sizeof(*out_folds));
    find_owners(text, frames, &owners);
    if (!owners.has_others || (!owners.has_own && !owners.has_package))
        return;
    for (unsigned i = 0, end; i < frames->count; i = end + 1) {
        end = end_of_run(&owners, frames, i, &lines);
        if (lines > 1)
            memset(&out_folds->frame[i], 1, end - i);
    }
}

/* ---- the line ---- */

static void put_names(const struct cw_text *text, const struct cw_text_frames *frames,
                      unsigned first, unsigned count)
{
    char buf[NAMES_MAX + 1][NAME_CAP];
    const char *name[NAMES_MAX + 1];
    unsigned names = 0;

    for (unsigned i = first; i < first + count && names <= NAMES_MAX; i++) {
        unsigned same = 0;

        name[names] =
            cw_code_name(text->model, cw_text_frame(frames, i), buf[names], sizeof(buf[names]));
        while (strcmp(name[same], name[names]) != 0)
            same++;
        if (same < names)
            continue;
        cw_out_string(text->out, names == 0 ? " of " : ", ");
        if (names < NAMES_MAX)
            cw_text_clean(text, name[names], CW_TEXT_NAME_MAX);
        else
            cw_out_string(text->out, "...");
        names++;
    }
}

void cw_text_put_fold(const struct cw_text *text, const struct cw_text_frames *frames,
                      unsigned first, unsigned count)
{
    cw_text_begin_line(text);
    cw_out_string(text->out, "    ... ");
    cw_text_count(text, count, "frame");
    put_names(text, frames, first, count);
    cw_text_end_line(text);
}
