/* SPDX-License-Identifier: MIT */
/*
 * The model of a live layout. In three steps, so that names are looked up for those stacks alone
 * that are shown: init, want for each of these, resolve.
 *
 * The view, the symbols and the rules must stay. Without memory for a part, that part stays empty.
 */
#ifndef CW_REPORT_MODEL_LIVE_H
#define CW_REPORT_MODEL_LIVE_H

#include "report/model/live_model.h"

void cw_live_model_init(struct cw_live_model *live);
/* In place of init: only the process, modules, and room for stacks. */
void cw_live_model_begin(struct cw_live_model *live);
void cw_live_model_fini(struct cw_live_model *live);

/* A cw_report_want_fn (report/text/report_text.h), of a struct cw_live_model. */
void cw_live_model_want(void *live, uint32_t stack);
void cw_live_model_want_all(struct cw_live_model *live);
void cw_live_model_resolve(struct cw_live_model *live);

/* An account of out of memory; its sites are those of the snapshot. */
void cw_live_model_read_oom(const struct cw_live_oom *oom, const struct cw_snapshot *snapshot,
                            struct cw_report_oom *out);

#endif
