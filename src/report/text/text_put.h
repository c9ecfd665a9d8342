/* SPDX-License-Identifier: MIT */
/*
 * The words of which the text report is made.
 *
 * Whatever comes from outside (command line, paths, names of functions) goes through cw_text_clean:
 * no newline or escape sequence in it can forge a line, lose its prefix, or reach a terminal.
 */
#ifndef CW_REPORT_TEXT_PUT_H
#define CW_REPORT_TEXT_PUT_H

#include "base/compiler.h"
#include "base/out.h"
#include "report/model/report_model.h"
#include "report/text/text_form.h"

#define CW_TEXT_NAME_MAX   120 /* a longer name is cut */
#define CW_TEXT_NAME_WIDTH 48  /* a longer name pushes its column to the right */

struct cw_text {
    const struct cw_report_model *model;
    const struct cw_snapshot *snapshot; /* the model's */
    struct cw_out *out;
    enum cw_text_form form;
    cw_report_want_fn want; /* NULL: the text is printed; else it is only asked what it needs */
    void *want_arg;
};

/* The prefix "==PID== ", and the newline. */
void cw_text_begin_line(const struct cw_text *text);
void cw_text_end_line(const struct cw_text *text);
/* A whole line; only our own words. */
void cw_text_line(const struct cw_text *text, const char *fmt, ...) CW_PRINTF(2, 3);
/* An empty line, but for its prefix. */
void cw_text_blank(const struct cw_text *text);
/* An empty line, then the beginning of the heading's line. */
void cw_text_heading(const struct cw_text *text, const char *heading);

/* At most max bytes, the last three of them dots when it was cut; no control characters. */
void cw_text_clean(const struct cw_text *text, const char *s, size_t max);
/* The number of bytes that it prints. */
size_t cw_text_clean_len(const char *s, size_t max);
void cw_text_padding(const struct cw_text *text, size_t have, size_t want);

void cw_text_size(const struct cw_text *text, uint64_t bytes);
void cw_text_time(const struct cw_text *text, uint64_t ns);
/* "1 block", "2 blocks" */
void cw_text_count(const struct cw_text *text, uint64_t count, const char *noun);
void cw_text_bytes_in_blocks(const struct cw_text *text, uint64_t bytes, uint64_t blocks);
/* "97.3%"; "-" without a whole. buf of at least 16 bytes; returns buf. */
char *cw_text_format_share(char *buf, size_t cap, uint64_t part, uint64_t whole);
/* "device 0", "host" */
void cw_text_device(const struct cw_text *text, unsigned device);

/* "cudaMalloc, device 0" */
void cw_text_site_call(const struct cw_text *text, const struct cw_snapshot_site *site, size_t max);
/* How many of a list are shown: `max` at most, unless the reader wants them all. */
uint32_t cw_text_shown(const struct cw_text *text, uint32_t count, uint32_t max);

/* `before`, then "tag: forward"; nothing for a site without one. */
void cw_text_tag(const struct cw_text *text, const char *before,
                 const struct cw_snapshot_site *site);

/* The visible frames, at most `limit`, one line each; what was inlined is a line of its own. Of
 * more than that, those that say most, the lines of a script among them. */
void cw_text_stack(const struct cw_text *text, uint32_t stack, unsigned limit);
/* Function and module of the innermost visible frame, in one phrase; where its line is known, that
 * in place of the module. The innermost frame of a script, where there is one, is the script's own.
 */
void cw_text_where(const struct cw_text *text, uint32_t stack);
/* That frame and as many of its callers as `width` columns (at least 16) have room for, in one
 * line: "inner (lib.so) <- outer <- main (program)". */
void cw_text_trail(const struct cw_text *text, uint32_t stack, size_t width);
/* The innermost frame's phrase, of the function through which the program entered the library that
 * owns the memory. */
void cw_text_entry(const struct cw_text *text, const struct cw_snapshot_site *site);

#endif
