/* SPDX-License-Identifier: MIT */
/* What the JSON report says of suppressions and of old blocks. */
#ifndef CW_REPORT_JSON_LEAK_H
#define CW_REPORT_JSON_LEAK_H

#include "report/json/json_put.h"

/* Members of a site: "class", "rule", "past_cap", "oldest_age_ns"; only what is known. */
void cw_json_leak_facts(struct cw_json *json, const struct cw_snapshot_site *site);
/* "old": the age, and the leaked sites with blocks of that age. */
void cw_json_old(struct cw_json *json);
/* "suppressions": all rules of the user's file, and the built-in ones that matched. */
void cw_json_suppressions(struct cw_json *json);

#endif
