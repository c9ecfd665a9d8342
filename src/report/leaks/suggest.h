/* SPDX-License-Identifier: MIT */
/* Suggests suppressions for what leaked, for the user to choose from. */
#ifndef CW_REPORT_SUGGEST_H
#define CW_REPORT_SUGGEST_H

#include "base/out.h"
#include "report/symbols/source.h"

/* Marks the stacks needed; the caller resolves them before cw_suppressions_suggest. */
void cw_suppressions_want(const struct cw_report_source *source);

/*
 * Writes a file for CUWARDEN_SUPPRESSIONS: for each leaked site, most bytes first, a comment and a
 * rule. The rule names the innermost function, native or Python, if the library would know its name
 * too, else the library, else the site's id. Rules are not repeated.
 */
void cw_suppressions_suggest(const struct cw_report_source *source, struct cw_out *out);

#endif
