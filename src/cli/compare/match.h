/* SPDX-License-Identifier: MIT */
/*
 * The same call sites in several models.
 *
 * Sites are the same if their stable ids, kinds, APIs and tags are equal, on any device unless
 * `by_device` is set. The id depends on code addresses, so sites left over in modules that were
 * rebuilt (different or missing build-ids) are matched by function names; several sites of one
 * function become one.
 */
#ifndef CW_CLI_MATCH_H
#define CW_CLI_MATCH_H

#include <stdint.h>

#include "cli/model/model.h"
#include "cli/model/select.h"

enum cw_match_how {
    CW_MATCH_AUTO, /* by name in rebuilt modules */
    CW_MATCH_ID,
    CW_MATCH_NAME, /* all that are left over; Python lines by function */
};

/* One model's share of a site. */
struct cw_match_cell {
    uint64_t value; /* of the metric shown */
    uint64_t order; /* of the metric of --sort */
    uint32_t sites; /* of the model; 0: absent */
};

struct cw_match_site {
    uint32_t model, site; /* the last model that has it: stack and details */
    uint8_t is_selected;  /* in at least one of the models */
    uint8_t is_by_name;
};

#define CW_MATCH_REBUILT_MAX 4

struct cw_match {
    const struct cw_model *model;
    uint32_t models;
    struct cw_match_site *site;
    uint32_t sites;
    struct cw_match_cell *cell;                /* of site s in model m: [s * models + m] */
    uint32_t by_name;                          /* sites */
    const char *rebuilt[CW_MATCH_REBUILT_MAX]; /* names of rebuilt modules */
    unsigned rebuilt_count;
};

struct cw_match_request {
    const struct cw_selection *selection;
    int by_device;
    enum cw_match_how how; /* CW_MATCH_ID unless there are two models */
};

/* 0, or -1 after an out-of-memory message. Free it in any case. */
int cw_match_models(struct cw_match *match, const struct cw_model *model, uint32_t models,
                    const struct cw_match_request *request);
void cw_match_free(struct cw_match *match);

static inline const struct cw_match_cell *cw_match_cell(const struct cw_match *match, uint32_t site,
                                                        uint32_t model)
{
    return &match->cell[(size_t)site * match->models + model];
}

/* The record in the model that represents the site. */
static inline const struct cw_report_model *cw_match_model(const struct cw_match *match,
                                                           uint32_t site)
{
    return match->model[match->site[site].model].report;
}

static inline const struct cw_snapshot_site *cw_match_record(const struct cw_match *match,
                                                             uint32_t site)
{
    return &cw_match_model(match, site)->snapshot.site[match->site[site].site];
}

#endif
