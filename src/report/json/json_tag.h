/* SPDX-License-Identifier: MIT */
/* Ranges and marks in the JSON report. */
#ifndef CW_REPORT_JSON_TAG_H
#define CW_REPORT_JSON_TAG_H

#include "report/json/json_put.h"

/* "tag", where the site has one. */
void cw_json_site_tag(struct cw_json *json, const struct cw_snapshot_site *site);

/* "tags": each name that was used, and its steps. */
void cw_json_tags(struct cw_json *json);

#endif
