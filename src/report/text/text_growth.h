/* SPDX-License-Identifier: MIT */
/* The section GROWTH: which places, steps, peaks and idle memory grew, and what was regrown. */
#ifndef CW_REPORT_TEXT_GROWTH_H
#define CW_REPORT_TEXT_GROWTH_H

#include "report/text/text_put.h"

/* Nothing where nothing was watched for long enough and there is nothing to tell. */
void cw_text_growth(const struct cw_text *text);

/* " +37.4 MiB/min", of a site that has a row. */
void cw_text_site_slope(const struct cw_text *text, const struct cw_snapshot_site *site);

#endif
