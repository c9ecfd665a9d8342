/* SPDX-License-Identifier: MIT */
/*
 * The same call sites in several models.
 *
 * Sites are the same if their stable ids, kinds, APIs and tags are, on whatever device unless
 * `by_device`. The id changes with the addresses of the code, so where the modules of a stack were
 * built anew (other build-ids, or none) what is left over is matched by the names of its functions;
 * several places of one function are one then.
 */
#ifndef CW_CLI_MATCH_H
#define CW_CLI_MATCH_H

#include <stdint.h>

#include "cli/model/model.h"
#include "cli/model/select.h"

enum cw_match_how {
    CW_MATCH_AUTO, /* by name in modules that were built anew */
    CW_MATCH_ID,
    CW_MATCH_NAME, /* whatever is left over; a line of Python by its function */
};

/* What one model has of a site. */
struct cw_match_cell {
    uint64_t value; /* by the metric that is shown */
    uint64_t order; /* by the metric of --sort */
    uint32_t sites; /* of the model; 0: it is not there */
};

struct cw_match_site {
    uint32_t model, site; /* the last model that has it: there are its stack and the rest */
    uint8_t is_selected;  /* the user wants to see it, in one of the models at least */
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
    const char *rebuilt[CW_MATCH_REBUILT_MAX]; /* names of modules; "matched by name" is why */
    unsigned rebuilt_count;
};

struct cw_match_request {
    const struct cw_selection *selection;
    int by_device;
    enum cw_match_how how; /* but CW_MATCH_ID only for two models */
};

/* 0, or -1 after a message: no memory. Free it in any case. */
int cw_match_models(struct cw_match *match, const struct cw_model *model, uint32_t models,
                    const struct cw_match_request *request);
void cw_match_free(struct cw_match *match);

static inline const struct cw_match_cell *cw_match_cell(const struct cw_match *match, uint32_t site,
                                                        uint32_t model)
{
    return &match->cell[(size_t)site * match->models + model];
}

/* Of the model that stands for it. */
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
