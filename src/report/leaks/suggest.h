/* SPDX-License-Identifier: MIT */
/* Suggests suppressions for what leaked, for the user to choose from. */
#ifndef CW_REPORT_SUGGEST_H
#define CW_REPORT_SUGGEST_H

#include "base/out.h"
#include "report/snapshot/snapshot.h"
#include "report/symbols/symbol.h"

/* Marks the stacks needed; the caller resolves them before cw_suppressions_suggest. */
void cw_suppressions_want(const struct cw_snapshot *snapshot, struct cw_symbols *symbols);

/*
 * Writes a file for CUWARDEN_SUPPRESSIONS: for each leaked site, most bytes first, a comment and a
 * rule. The rule names the innermost function, native or Python, if the library would know its name
 * too, else the library, else the site's id. Rules are not repeated.
 */
void cw_suppressions_suggest(const struct cw_snapshot *snapshot, const struct cw_symbols *symbols,
                             struct cw_out *out);

#endif
