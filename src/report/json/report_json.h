/* SPDX-License-Identifier: MIT */
/*
 * The report for programs: one object, "schema": "cuwarden-report/1". Bytes are bytes and times are
 * nanoseconds since the start of the process's account; start_ns and end_ns are since 1970. A field
 * is there only when its value is known, and fields are only ever added.
 */
#ifndef CW_REPORT_REPORT_JSON_H
#define CW_REPORT_REPORT_JSON_H

#include "base/out.h"
#include "report/symbols/source.h"

/* The symbols of all frames must be resolved. */
void cw_report_json_write(const struct cw_report_source *source, struct cw_out *out);

#endif
