/* SPDX-License-Identifier: MIT */
/*
 * What the text of a report is written from (report/model/report_model.h), of a model that was read
 * from JSON, and of those of its sites that a reader wants to see.
 */
#ifndef CW_CLI_MODEL_REPORT_H
#define CW_CLI_MODEL_REPORT_H

#include "base/out.h"
#include "cli/model/model.h"
#include "cli/model/select.h"
#include "report/model/report_model.h"

/* Writes the text. The sites are those to show, most first. 0; -1: it could not be written, see
 * errno; CW_MODEL_REPORT_NO_MEMORY. */
#define CW_MODEL_REPORT_NO_MEMORY (-2)
int cw_model_report_write(const struct cw_model *model, const struct cw_selection *selection,
                          const uint32_t *site, uint32_t sites, struct cw_out *out);

void cw_model_report_oom(const struct cw_model *model, const struct cw_model_oom *oom,
                         struct cw_report_oom *out);

#endif
