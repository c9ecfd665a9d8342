/* SPDX-License-Identifier: MIT */
/* What the page tells of pressure, old blocks and accounts of out of memory. */
#ifndef CW_CLI_HTML_WHOLE_H
#define CW_CLI_HTML_WHOLE_H

#include "cli/export/html_columns.h"
#include "report/model/report_model.h"

/* An object of JSON that may stand inside <script>. Sites are rows of the writer, -1 for those that
 * are not shown. */
void cw_html_put_whole(const struct cw_html_writer *writer, const struct cw_report_model *model);

#endif
