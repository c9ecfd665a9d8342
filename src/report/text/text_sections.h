/* SPDX-License-Identifier: MIT */
/* The sections of the text report, one file text_NAME.c each: nothing where there is nothing to
 * tell. */
#ifndef CW_REPORT_TEXT_SECTIONS_H
#define CW_REPORT_TEXT_SECTIONS_H

#include "report/text/text_put.h"

/* Where our account and that of CUPTI differ; if an audit was asked for. */
void cw_text_audit(const struct cw_text *text);
void cw_text_devices(const struct cw_text *text);
/* Which places, steps, peaks and idle memory grew, and what was regrown. */
void cw_text_growth(const struct cw_text *text);
/* Blocks that have been live for a long time, by the place that allocated them. */
void cw_text_old(const struct cw_text *text);
/* Out of memory. */
void cw_text_ooms(const struct cw_text *text);
void cw_text_pool(const struct cw_text *text);
/* Limits, levels, and what was done when memory was short. */
void cw_text_pressure(const struct cw_text *text);
/* Which rules kept what out of the leaks, and which matched nothing. */
void cw_text_suppressed(const struct cw_text *text);

/* " +37.4 MiB/min", of a site that has a row (text_growth.c). */
void cw_text_site_slope(const struct cw_text *text, const struct cw_snapshot_site *site);
/* A line, "past max=8M of leak:grow (line 3)", for a site that is more than its rule allows
 * (text_suppressed.c). */
void cw_text_past_cap(const struct cw_text *text, const struct cw_snapshot_site *site);

#endif
