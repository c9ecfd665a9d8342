/* SPDX-License-Identifier: MIT */
/* The process and its sums in the page's data. */
#ifndef CW_CLI_HTML_PROCESS_H
#define CW_CLI_HTML_PROCESS_H

#include <stdio.h>

#include "report/model/report_model.h"

/* The members "process", "left" and "summary" of an object that is open and not empty. */
void cw_html_put_process(FILE *out, const struct cw_report_model *model);

#endif
