/* SPDX-License-Identifier: MIT */
/* Reads a report of schema "cuwarden-report/1" into a model. */
#ifndef CW_CLI_MODEL_JSON_H
#define CW_CLI_MODEL_JSON_H

#include "cli/model/model.h"

/* From the beginning of the file `fd`; `name` is for messages. 0, or -1 after a message. */
int cw_model_read_json(struct cw_model *model, int fd, const char *name);

#endif
