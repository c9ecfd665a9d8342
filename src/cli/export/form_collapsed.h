/* SPDX-License-Identifier: MIT */
/* One collapsed stack, without the numbers that follow it. A frame is a function; by_call: a call,
 * with its line or address. */
#ifndef CW_CLI_FORM_COLLAPSED_H
#define CW_CLI_FORM_COLLAPSED_H

#include <stdio.h>

#include "report/model/report_model.h"

void cw_form_collapsed_stack(FILE *out, const struct cw_report_model *model,
                             const struct cw_snapshot_site *site, int by_call);

#endif
