/* SPDX-License-Identifier: MIT */
/* Shared by the sections of the text report that list events. */
#ifndef CW_REPORT_TEXT_EVENT_H
#define CW_REPORT_TEXT_EVENT_H

#include "report/text/text_put.h"

#define CW_NEWEST_MAX   10
#define CW_FRAMES_EVENT 6

struct cw_newest {
    uint32_t event[CW_NEWEST_MAX]; /* oldest first */
    unsigned count;
    uint32_t of; /* events of these types in all */
};

/* types: bit n for events of type n. */
void cw_newest_find(const struct cw_report_model *model, unsigned types, struct cw_newest *newest);

/* ", the last 10 of them" if there are more, and the end of the line. Of `all` that happened some
 * may not be recorded: ", 4096 of them recorded, the last 10 of those". */
void cw_text_newest_note(const struct cw_text *text, uint64_t all, uint64_t recorded,
                         uint64_t listed);
/* "cudaMalloc, device 0" for a site index; "unknown call" for CW_SITE_NONE. */
void cw_text_call(const struct cw_text *text, uint32_t site);
/* The site's innermost frames. */
void cw_text_call_stack(const struct cw_text *text, uint32_t site);
/* ", 3 times" */
void cw_text_times(const struct cw_text *text, uint32_t count);

#endif
