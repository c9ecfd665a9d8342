/* SPDX-License-Identifier: MIT */
/* Parts of the filler of live layouts (model_live.h) in separate files. */
#ifndef CW_REPORT_LIVE_PARTS_H
#define CW_REPORT_LIVE_PARTS_H

#include "report/model/live_model.h"

/* `count` zeroed records; NULL: out of memory. */
static inline void *cw_live_model_take(struct cw_live_model *live, size_t count, size_t size)
{
    return cw_pages_take(&live->pages, (count > 0 ? count : 1) * size);
}

/* A copy; "" without memory. */
const char *cw_live_model_copy(struct cw_live_model *live, const char *text, size_t len);
/* A text of the layout, or any other that stays, as UTF-8: in no form is it anything else. NULL
 * stays NULL. */
const char *cw_live_model_text(struct cw_live_model *live, const char *text);
/* A text of the layout by its index. */
const char *cw_live_model_text_at(struct cw_live_model *live, uint32_t text);

/* The index of a live site's, or CW_SITE_NONE. */
static inline uint32_t cw_live_model_site(const struct cw_snapshot *snapshot, uint32_t live_site)
{
    return live_site < snapshot->merged_count ? snapshot->merged[live_site] : CW_SITE_NONE;
}

void cw_live_model_read_modules(struct cw_live_model *live);
void cw_live_model_read_process(struct cw_live_model *live);
void cw_live_model_read_devices(struct cw_live_model *live);
void cw_live_model_read_diagnostics(struct cw_live_model *live);
void cw_live_model_begin_stacks(struct cw_live_model *live);

#endif
