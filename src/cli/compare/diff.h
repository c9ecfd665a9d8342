/* SPDX-License-Identifier: MIT */
/* The differences between two processes, and the output forms of `cuwarden diff`. */
#ifndef CW_CLI_DIFF_H
#define CW_CLI_DIFF_H

#include <stdio.h>

#include "cli/compare/match.h"
#include "cli/model/model.h"
#include "cli/model/select.h"

enum cw_diff_state { CW_DIFF_SAME, CW_DIFF_GREW, CW_DIFF_SHRANK, CW_DIFF_NEW, CW_DIFF_GONE };
#define CW_DIFF_STATES 5

struct cw_diff {
    struct cw_model model[2]; /* before, after */
    struct cw_selection selection;
    int by_device;
    struct cw_match match;
    struct cw_ranked *row; /* sites of the match that changed, the largest change first */
    uint32_t rows;
    uint32_t count[CW_DIFF_STATES]; /* of selected sites */
    uint64_t sum[2];                /* of selected sites that count */
};

/* Matches the models and orders what changed. 0, or -1 after a message. Free it in any case. */
int cw_diff_make(struct cw_diff *diff, enum cw_match_how how);
void cw_diff_free(struct cw_diff *diff);

enum cw_diff_state cw_diff_state(const struct cw_diff *diff, uint32_t site);
const char *cw_diff_state_name(enum cw_diff_state state);

/* The device to show with a site: CW_SITE_NONE unless the comparison is by device. */
static inline uint32_t cw_diff_device(const struct cw_diff *diff, uint32_t site)
{
    return diff->by_device ? cw_match_record(&diff->match, site)->device : CW_SITE_NONE;
}

/* A total of both processes. */
struct cw_diff_total {
    const char *name; /* JSON: "live"; text: "live bytes" */
    const char *label;
    enum cw_metric unit; /* CW_METRIC_COUNT: not bytes */
    uint64_t value[2];
};

#define CW_DIFF_DEVICE_TOTALS  4
#define CW_DIFF_SUMMARY_TOTALS 9

/* The device's totals; 0 if neither process used it. */
int cw_diff_device_totals(const struct cw_diff *diff, uint32_t device,
                          struct cw_diff_total total[CW_DIFF_DEVICE_TOTALS]);
void cw_diff_summary_totals(const struct cw_diff *diff,
                            struct cw_diff_total total[CW_DIFF_SUMMARY_TOTALS]);

/* ---- forms ---- */

void cw_diff_text(const struct cw_diff *diff, FILE *out, int has_color);
int cw_diff_json(const struct cw_diff *diff, FILE *out); /* 0, or -1 with errno on a write error */
void cw_diff_collapsed(const struct cw_diff *diff, FILE *out);

#endif
