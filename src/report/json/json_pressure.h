/* SPDX-License-Identifier: MIT */
/*
 * What the JSON report says of limits and pressure: "pressure", the fields that events of these
 * kinds have, and "oom_accounts". A limit that is not set, or a size that is not known, is left
 * out.
 */
#ifndef CW_REPORT_JSON_PRESSURE_H
#define CW_REPORT_JSON_PRESSURE_H

#include "report/json/json_put.h"

void cw_json_pressure(struct cw_json *json);
/* Fields of an event that is open. */
void cw_json_event_pressure(struct cw_json *json, const struct cw_live_event *event);
void cw_json_oom_accounts(struct cw_json *json);

#endif
