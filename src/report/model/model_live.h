/* SPDX-License-Identifier: MIT */
/*
 * The model of a live layout. In three steps, so that names are looked up for those stacks alone
 * that are shown: init, want for each of these, resolve.
 *
 * The view, the snapshot, the symbols and the rules of the source must stay. Without memory for a
 * part, that part stays empty.
 */
#ifndef CW_REPORT_MODEL_LIVE_H
#define CW_REPORT_MODEL_LIVE_H

#include "report/model/report_model.h"
#include "report/symbols/source.h"

#define CW_LIVE_MODEL_ARRAYS 8

struct cw_live_model {
    struct cw_report_model model;
    const struct cw_report_source *source;
    uint32_t *wanted; /* numbers of stacks */
    uint32_t wants;
    uint32_t frames_limit, places_limit;
    struct {
        void *items;
        size_t size;
    } array[CW_LIVE_MODEL_ARRAYS]; /* what it owns */
    unsigned arrays;
};

void cw_live_model_init(struct cw_live_model *live, const struct cw_report_source *source);
/* In place of init: only the process, and room for stacks. */
void cw_live_model_begin(struct cw_live_model *live, const struct cw_report_source *source);
void cw_live_model_fini(struct cw_live_model *live);

/* A cw_report_want_fn (report/text/report_text.h), of a struct cw_live_model. */
void cw_live_model_want(void *live, uint32_t stack);
void cw_live_model_resolve(struct cw_live_model *live);

/* An account of out of memory; its sites are those of the snapshot. */
void cw_live_model_read_oom(const struct cw_live_oom *oom, const struct cw_snapshot *snapshot,
                            struct cw_report_oom *out);

#endif
