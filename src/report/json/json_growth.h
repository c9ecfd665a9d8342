/* SPDX-License-Identifier: MIT */
/* What grew (snapshot_growth.h), in the JSON report. */
#ifndef CW_REPORT_JSON_GROWTH_H
#define CW_REPORT_JSON_GROWTH_H

#include "report/json/json_put.h"

/* A site's "growth", once it was sampled. */
void cw_json_site_growth(struct cw_json *json, uint32_t site);
/* "growth", "timeline" and "regrowth". */
void cw_json_growth(struct cw_json *json);

#endif
