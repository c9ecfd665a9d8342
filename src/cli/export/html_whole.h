/* SPDX-License-Identifier: MIT */
/* The page's data on pressure, old blocks and out-of-memory events. */
#ifndef CW_CLI_HTML_WHOLE_H
#define CW_CLI_HTML_WHOLE_H

#include "cli/export/html_columns.h"
#include "report/model/report_model.h"

/* A JSON object that is safe inside <script>. Sites are rows of the writer; -1: not shown. */
void cw_html_put_whole(const struct cw_html_writer *writer, const struct cw_report_model *model);

#endif
