/* SPDX-License-Identifier: MIT */
/* The reader of reports in JSON: fills the model by the rows of report/json/fields.def. */
#ifndef CW_CLI_JSON_READ_H
#define CW_CLI_JSON_READ_H

#include "report/model/report_model.h"

struct cw_json_storage; /* the model's storage */

/* Reads the whole descriptor; `name` is for messages. NULL after a message with name and reason. */
struct cw_json_storage *cw_json_read(int fd, const char *name);
struct cw_report_model *cw_json_model(struct cw_json_storage *storage);
void cw_json_storage_free(struct cw_json_storage *storage);

#endif
