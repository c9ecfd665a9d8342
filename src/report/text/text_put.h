/* SPDX-License-Identifier: MIT */
/*
 * The elements of the text report.
 *
 * External text (command line, paths, function names) goes through cw_text_clean, so that no
 * newline or escape sequence in it can forge a line, drop its prefix, or reach a terminal.
 */
#ifndef CW_REPORT_TEXT_PUT_H
#define CW_REPORT_TEXT_PUT_H

#include "base/compiler.h"
#include "base/out.h"
#include "report/model/contrast.h"
#include "report/model/report_model.h"
#include "report/text/text_form.h"

#define CW_TEXT_WIDTH      80  /* columns, unless a screen has others */
#define CW_TEXT_NAME_MAX   120 /* a longer name is truncated */
#define CW_TEXT_NAME_WIDTH 48  /* a longer name pushes its column to the right */

struct cw_text {
    const struct cw_report_model *model;
    const struct cw_snapshot *snapshot; /* the model's */
    struct cw_out *out;
    enum cw_text_form form;
    unsigned sections;                  /* of the full text: a bit for each (report_text.h) */
    unsigned columns;                   /* that tables and trails fit in */
    int has_all_frames;                 /* of stacks; else some are folded, or left out */
    int has_live_file;                  /* from which 'cuwarden run' can tell more */
    const struct cw_contrast *contrast; /* of the list that is printed; NULL: none */
    cw_report_want_fn want;             /* NULL: print; else only collect the stacks needed */
    void *want_arg;
};

/* The prefix "==PID== ", and the newline. */
void cw_text_begin_line(const struct cw_text *text);
void cw_text_end_line(const struct cw_text *text);
/* A whole line; trusted text only. */
void cw_text_line(const struct cw_text *text, const char *fmt, ...) CW_PRINTF(2, 3);
/* An empty line with its prefix. */
void cw_text_blank(const struct cw_text *text);
/* An empty line, then the beginning of the heading's line. */
void cw_text_heading(const struct cw_text *text, const char *heading);

/* At most max bytes, ending in three dots if truncated; no control characters. */
void cw_text_clean(const struct cw_text *text, const char *s, size_t max);
/* The number of bytes that it prints. */
size_t cw_text_clean_len(const char *s, size_t max);
void cw_text_padding(const struct cw_text *text, size_t have, size_t want);

void cw_text_size(const struct cw_text *text, uint64_t bytes);
void cw_text_time(const struct cw_text *text, uint64_t ns);
/* "1 block", "2 blocks" */
void cw_text_count(const struct cw_text *text, uint64_t count, const char *noun);
void cw_text_bytes_in_blocks(const struct cw_text *text, uint64_t bytes, uint64_t blocks);
/* "97.3%"; "-" if `whole` is 0. buf has at least 16 bytes; returns buf. */
char *cw_text_format_share(char *buf, size_t cap, uint64_t part, uint64_t whole);
/* "device 0", "host" */
void cw_text_device(const struct cw_text *text, unsigned device);

/* "cudaMalloc, device 0", "cuMemAlloc_v2, device 0, context 2" */
void cw_text_site_call(const struct cw_text *text, const struct cw_snapshot_site *site, size_t max);
/* How many of a list are shown: at most `max` unless all are wanted. */
uint32_t cw_text_shown(const struct cw_text *text, uint32_t count, uint32_t max);

/* `before`, then "tag: forward"; nothing for a site without a tag. */
void cw_text_tag(const struct cw_text *text, const char *before,
                 const struct cw_snapshot_site *site);

/*
 * Text about the call sites of one list: frames that tell them apart are shown with each. The first
 * site's index is at `site`, each next one's `stride` bytes later.
 */
struct cw_text_list {
    struct cw_text text;
    struct cw_contrast contrast;
};
void cw_text_begin_list(const struct cw_text *text, const uint32_t *site, size_t stride,
                        uint32_t count, struct cw_text_list *out_list);
void cw_text_end_list(struct cw_text_list *list);

/* The visible frames, one line each, and one for each inlined function, without those that are
 * folded (report/model/fold.h). If there are more than `limit`, shows the most telling ones,
 * including a script's lines. */
void cw_text_stack(const struct cw_text *text, uint32_t stack, unsigned limit);
/* Function and module of the innermost visible frame in one phrase, or function and line if the
 * line is known. For a script, the script's own innermost frame. Then those by which the stack
 * differs from others of the list: "step (train.py:9) <- main (train.py:31)". */
void cw_text_where(const struct cw_text *text, uint32_t stack);
/* The same with as many other callers as fit in `width` columns (at least 16), in one line:
 * "inner (lib.so) <- outer <- main (program)". */
void cw_text_trail(const struct cw_text *text, uint32_t stack, size_t width);
/* Only what follows the first frame there; nothing if no other stack of the list looks the same. */
void cw_text_contrast(const struct cw_text *text, uint32_t stack);
/* The same phrase for the function through which the program entered the library that owns the
 * memory. */
void cw_text_entry(const struct cw_text *text, const struct cw_snapshot_site *site);

#endif
