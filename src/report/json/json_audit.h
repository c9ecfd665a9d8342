/* SPDX-License-Identifier: MIT */
/* "audit": where our account and that of CUPTI differ, in the JSON report. */
#ifndef CW_REPORT_JSON_AUDIT_H
#define CW_REPORT_JSON_AUDIT_H

#include "report/json/json_put.h"

/* Nothing where no audit was asked for. */
void cw_json_audit(struct cw_json *json);

#endif
