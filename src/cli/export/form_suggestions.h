/* SPDX-License-Identifier: MIT */
/* Suggests suppressions for what leaked, for the user to choose from. The stacks of the model must
 * have their frames. */
#ifndef CW_CLI_FORM_SUGGESTIONS_H
#define CW_CLI_FORM_SUGGESTIONS_H

#include "base/out.h"
#include "report/model/report_model.h"

/*
 * Writes a file for CUWARDEN_SUPPRESSIONS: for each leaked site, most bytes first, a comment and a
 * rule. The rule names the innermost function, native or Python, if the library would know its name
 * too, else the library, else the site's id. Rules are not repeated.
 */
void cw_suppressions_suggest(const struct cw_report_model *model, struct cw_out *out);

#endif
