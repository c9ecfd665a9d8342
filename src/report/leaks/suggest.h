/* SPDX-License-Identifier: MIT */
/* Suppressions that would keep what leaked out of the leaks, for the user to choose from. */
#ifndef CW_REPORT_SUGGEST_H
#define CW_REPORT_SUGGEST_H

#include "base/out.h"
#include "report/symbols/source.h"

/* Marks the stacks that are needed; the caller resolves them before cw_suppressions_suggest. */
void cw_suppressions_want(const struct cw_report_source *source);

/*
 * A file in the form that CUWARDEN_SUPPRESSIONS takes: for each leaked site, most bytes first, a
 * comment and a rule. The rule names the innermost function, also of Python, if the library would
 * know it by name too, else the library, else the site's id. A rule that is there already is not
 * repeated.
 */
void cw_suppressions_suggest(const struct cw_report_source *source, struct cw_out *out);

#endif
