/* SPDX-License-Identifier: MIT */
/*
 * Fills a model from a live layout in three steps, so that names are looked up only for the stacks
 * that are shown: init, want for each of these, resolve.
 *
 * The view, the symbols and the rules must outlive it. A part that runs out of memory stays empty.
 */
#ifndef CW_REPORT_MODEL_LIVE_H
#define CW_REPORT_MODEL_LIVE_H

#include "report/model/live_parts.h"

void cw_live_model_init(struct cw_live_model *live);
/* Replaces init: fills only the process and modules, and reserves room for stacks. */
void cw_live_model_begin(struct cw_live_model *live);
void cw_live_model_fini(struct cw_live_model *live);

/* A cw_report_want_fn (report/text/report_text.h) for a struct cw_live_model. */
void cw_live_model_want(void *live, uint32_t stack);
void cw_live_model_want_all(struct cw_live_model *live);
void cw_live_model_resolve(struct cw_live_model *live);

/* Adds an out-of-memory account; its sites are the snapshot's. */
void cw_live_model_read_oom(const struct cw_live_oom *oom, const struct cw_snapshot *snapshot,
                            struct cw_report_oom *out);

#endif
