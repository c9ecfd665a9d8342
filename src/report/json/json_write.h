/* SPDX-License-Identifier: MIT */
/*
 * The report for programs: one object, "schema": "cuwarden-report/1", by the rows of fields.def.
 * Bytes are bytes and times are nanoseconds since the start of the process's account; start_ns and
 * end_ns are since 1970. A field is there only when its value is known, and fields are only ever
 * added. docs/report-json.md has them all.
 */
#ifndef CW_REPORT_JSON_WRITE_H
#define CW_REPORT_JSON_WRITE_H

#include "base/out.h"
#include "report/json/fields.h"

/* The frames of all stacks must be in the model. */
void cw_report_json_write(const struct cw_report_model *model, struct cw_out *out);
/* A record of the model alone, which is not in any table. */
void cw_report_json_write_record(const struct cw_report_model *model, enum cw_json_record_id id,
                                 const void *record, struct cw_out *out);

#endif
