/* SPDX-License-Identifier: MIT */
/* Documentation of the JSON report, generated from fields.def. */
#ifndef CW_CLI_JSON_DOCS_H
#define CW_CLI_JSON_DOCS_H

#include <stdio.h>

/* docs/report-json.md, and docs/report-1.schema.json. -1 after a message if a row lacks its
 * description. */
int cw_json_docs_print_fields(FILE *to);
int cw_json_docs_print_schema(FILE *to);

#endif
