/* SPDX-License-Identifier: MIT */
/* Call sites and amounts as `diff` and `merge` show them: in text, and in JSON. */
#ifndef CW_CLI_SITE_TEXT_H
#define CW_CLI_SITE_TEXT_H

#include <stdio.h>

#include "cli/model/model.h"
#include "cli/model/select.h"

struct cw_json;

#define CW_AMOUNT_MAX 32

/* Formats an amount of the metric, "1.5 MiB" or "1200", in CW_AMOUNT_MAX bytes; returns buf. */
char *cw_amount_format(char *buf, enum cw_metric metric, uint64_t amount);
/* With the sign of the change: "+1.5 MiB". */
char *cw_change_format(char *buf, enum cw_metric metric, uint64_t before, uint64_t after);
/* "+12.5%"; "" if the old value is 0. */
char *cw_share_format(char *buf, uint64_t before, uint64_t after);
/* "device 0" or "host" */
char *cw_device_format(char *buf, uint32_t device);

/* The last component of a path. */
const char *cw_last_component(const char *path);
/* Removes control characters, so that no program text can control a terminal. */
void cw_text_put(FILE *out, const char *text);
/* "train (rank 3, pid 4711), 12.3s, exit 0" */
void cw_process_put(FILE *out, const struct cw_report_model *model);

/* "site 9f3c21aa  cuMemAlloc_v2, device 0, tag: forward"; no device if it is CW_SITE_NONE. */
void cw_site_put(FILE *out, const struct cw_report_model *model,
                 const struct cw_snapshot_site *site, uint32_t device);
/* The site's frames, at most `limit`, one line each. */
void cw_stack_put(FILE *out, const struct cw_report_model *model,
                  const struct cw_snapshot_site *site, unsigned limit);
/* The name of the site's innermost frame, for one line; "" without a stack. */
const char *cw_site_name(const struct cw_report_model *model, const struct cw_snapshot_site *site,
                         char *buf, size_t cap);

/* The members "site", "api", "kind", "device" unless CW_SITE_NONE, "tag", "counted", and "stack",
 * an array of frames. */
void cw_site_json(struct cw_json *json, const struct cw_report_model *model,
                  const struct cw_snapshot_site *site, uint32_t device);
/* The members "file", "pid", "exe", "host", "rank" and "duration_ns" of the process. */
void cw_process_json(struct cw_json *json, const struct cw_report_model *model);
/* An object: "before", "after", "delta". */
void cw_change_json(struct cw_json *json, const char *key, uint64_t before, uint64_t after);

#endif
