/* SPDX-License-Identifier: MIT */
/*
 * Source lines and inlined functions for a model that was read from JSON without them, from the
 * files of this machine that have the modules' build-ids. The model is then as if it had been read
 * from the live file on this machine.
 */
#ifndef CW_CLI_JSON_LINES_H
#define CW_CLI_JSON_LINES_H

#include "cli/input/lines.h"
#include "report/model/report_model.h"

struct cw_json_lines;

/* For all frames, or only those of the stacks that the text shows. NULL if there is nothing to add,
 * or out of memory. `lines` must stay open as long as the model. */
struct cw_json_lines *cw_json_lines_add(struct cw_report_model *model, const struct cw_lines *lines,
                                        int is_for_text);
/* With the model. */
void cw_json_lines_free(struct cw_json_lines *lines);

#endif
