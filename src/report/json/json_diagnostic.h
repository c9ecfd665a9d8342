/* SPDX-License-Identifier: MIT */
/* What the JSON report says of itself: how far its account is complete. */
#ifndef CW_REPORT_JSON_DIAGNOSTIC_H
#define CW_REPORT_JSON_DIAGNOSTIC_H

#include "report/json/json_put.h"

/* "invalid_frees", of which the events are the last ones, and "diagnostics". */
void cw_json_diagnostics(struct cw_json *json);

#endif
