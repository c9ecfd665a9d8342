/* SPDX-License-Identifier: MIT */
/* The reader of reports in JSON: fills the model by the rows of report/json/fields.def. */
#ifndef CW_CLI_JSON_READ_H
#define CW_CLI_JSON_READ_H

#include "report/model/report_model.h"

struct cw_json_storage; /* what such a model consists of */

/* Reads the whole of the descriptor; `name` is for messages. NULL after a message that names it and
 * the reason. */
struct cw_json_storage *cw_json_read(int fd, const char *name);
struct cw_report_model *cw_json_model(struct cw_json_storage *storage);
void cw_json_storage_free(struct cw_json_storage *storage);

#endif
