/* SPDX-License-Identifier: MIT */
/* The sections of the text report, one file text_NAME.c each; an empty section is omitted. */
#ifndef CW_REPORT_TEXT_SECTIONS_H
#define CW_REPORT_TEXT_SECTIONS_H

#include "report/text/text_put.h"

/* Differences between the accounts of cuwarden and CUPTI, if an audit was requested. */
void cw_text_audit(const struct cw_text *text);
/* What tags may have, had, and were refused. */
void cw_text_budgets(const struct cw_text *text);
void cw_text_devices(const struct cw_text *text);
/* Growth of places, steps, peaks and idle memory, and regrown blocks. */
void cw_text_growth(const struct cw_text *text);
/* Blocks live for a long time, by allocating place. */
void cw_text_old(const struct cw_text *text);
/* Out of memory. */
void cw_text_ooms(const struct cw_text *text);
void cw_text_pool(const struct cw_text *text);
/* Limits, levels, and actions taken when memory was scarce. */
void cw_text_pressure(const struct cw_text *text);
/* What Python freed only as it ended (text_tensors.c). */
void cw_text_held(const struct cw_text *text);
/* What a framework's cache holds, by line. */
void cw_text_tensors(const struct cw_text *text);
/* The rules that suppressed leaks, and those that matched nothing. */
void cw_text_suppressed(const struct cw_text *text);

/* What the caches with memory in the list keep, and how each block is seen by itself. */
void cw_text_cache_hints(const struct cw_text *text, const struct cw_snapshot_list *list);
/* ", in the cache of PyTorch"; nothing for no cache. */
void cw_text_in_cache(const struct cw_text *text, uint32_t id);
/* " +37.4 MiB/min", for a site with a growth row (text_growth.c). */
void cw_text_site_slope(const struct cw_text *text, const struct cw_snapshot_site *site);
/* "past the cap of leak:grow (line 3)", for a site above its rule's cap (text_suppressed.c). */
void cw_text_past_cap(const struct cw_text *text, const struct cw_snapshot_site *site);

#endif
