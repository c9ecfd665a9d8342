/* SPDX-License-Identifier: MIT */
/*
 * What verdict.c finds and verdict_text.c tells: findings of a kind in one place are one, with the
 * sum of their amounts. A report may have any number of sites, of which the text shows few places.
 */
#ifndef CW_CLI_FINDING_H
#define CW_CLI_FINDING_H

#include <stddef.h>
#include <stdint.h>

#include "cli/model/site_place.h"

#define CW_FINDINGS_SHOWN 3 /* of one kind */

enum cw_finding_kind {
    CW_FOUND_FATAL,
    CW_FOUND_INVALID_FREE,
    CW_FOUND_OOM,
    CW_FOUND_LEAK,
    CW_FOUND_GROWTH,
    CW_FOUND_HOLDER, /* of a GPU's peak */
    CW_FOUND_HOST_HOLDER,
    CW_FOUND_TENSORS, /* in a framework's cache at its peak */
    CW_FOUND_HELD,    /* until the program ended */
    CW_FOUND_KINDS
};

struct cw_run_finding {
    uint64_t key;  /* of the place: equal for what a person takes for one */
    uint32_t site; /* in the model that is being added, else CW_SITE_NONE */
    uint8_t kind, cause;
    int32_t code;      /* the driver's; of CW_FOUND_INVALID_FREE enum cw_misuse */
    const char *cache; /* the framework that keeps it, or NULL */
    uint64_t bytes, blocks, count;
    double weight;   /* the heaviest come first */
    double slope;    /* bytes a second */
    uint64_t end_ns; /* of its process */
    char api[48];
    struct cw_site_place *place; /* owned; NULL: not known, or never among those that are shown */
};

/* Zero-initialized: none. */
struct cw_run_findings {
    struct cw_run_finding *finding;
    size_t count, room; /* room: 0 or a power of two */
    uint32_t *slot;     /* 2 * room: the number of a finding, from 1, near its hash; 0: free */
};

uint64_t cw_finding_key(const struct cw_site_place *place);

/* Adds it to an equal one, else appends it. The one that has it, until the next call; NULL: out of
 * memory. */
struct cw_run_finding *cw_findings_merge(struct cw_run_findings *findings,
                                         const struct cw_run_finding *from);
/* The findings of a kind, the heaviest first, else the latest. Returns their number. */
unsigned cw_findings_rank(const struct cw_run_findings *findings, enum cw_finding_kind kind,
                          struct cw_run_finding *most[CW_FINDINGS_SHOWN]);
/* Looks up the places of those that are shown: call when all of a model's are merged, while it is
 * valid. 0, or -1 if out of memory. */
int cw_findings_name(struct cw_run_findings *findings, const struct cw_report_model *model);
void cw_findings_drop(struct cw_run_findings *findings, enum cw_finding_kind kind);
void cw_findings_free(struct cw_run_findings *findings);

#endif
