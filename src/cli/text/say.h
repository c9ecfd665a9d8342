/* SPDX-License-Identifier: MIT */
/*
 * The words of the text forms: lines with the prefix "==PID== ", amounts, frames. What comes from
 * outside is cut and has no control characters, so that nothing forges a line.
 */
#ifndef CW_CLI_SAY_H
#define CW_CLI_SAY_H

#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/model/model.h"

#define CW_SAY_NAME_MAX 120 /* a longer name is cut */

struct cw_say {
    const struct cw_model *model;
    FILE *out;
};

void cw_say_begin(const struct cw_say *to);
/* An empty line, then the beginning of the heading's line. */
void cw_say_heading(const struct cw_say *to, const char *heading);
/* A whole line; only our own words. */
void cw_say_line(const struct cw_say *to, const char *fmt, ...) CW_PRINTF(2, 3);

void cw_say_clean(const struct cw_say *to, const char *text, size_t max);
void cw_say_size(const struct cw_say *to, uint64_t bytes);
void cw_say_time(const struct cw_say *to, uint64_t ns);
void cw_say_count(const struct cw_say *to, uint64_t count, const char *noun);
void cw_say_amount(const struct cw_say *to, struct cw_model_amount amount);
/* "device 0", "host" */
void cw_say_device(const struct cw_say *to, uint32_t device);

/* "cudaMalloc, device 0" */
void cw_say_call(const struct cw_say *to, const struct cw_model_site *site, size_t max);
/* "  tag: forward"; nothing for a site without one. */
void cw_say_tag(const struct cw_say *to, const struct cw_model_site *site);

/* All frames, one line each; or at most `limit` of them. */
void cw_say_stack(const struct cw_say *to, const struct cw_model_site *site);
void cw_say_frames(const struct cw_say *to, const struct cw_model_site *site, uint32_t limit);
/* The innermost frame and as many of its callers as `width` columns have room for, in one line:
 * "inner (lib.so) <- outer <- main (program)". */
void cw_say_trail(const struct cw_say *to, const struct cw_model_site *site, size_t width);
/* The innermost frame, in one phrase. */
void cw_say_innermost(const struct cw_say *to, const struct cw_model_site *site);
/* The same of the function through which the program entered the library that owns the memory. */
void cw_say_entry(const struct cw_say *to, const struct cw_model_site *site);

#endif
