/* SPDX-License-Identifier: MIT */
/* The section SUPPRESSED: which rules kept what out of the leaks, and which matched nothing. */
#ifndef CW_REPORT_TEXT_SUPPRESSED_H
#define CW_REPORT_TEXT_SUPPRESSED_H

#include "report/text/text_put.h"

/* Nothing where no rule matched and there is no file. */
void cw_text_suppressed(const struct cw_text *text);
/* A line, "past max=8M of leak:grow (line 3)", for a site that is more than its rule allows. */
void cw_text_past_cap(const struct cw_text *text, const struct cw_snapshot_site *site);

#endif
