/* SPDX-License-Identifier: MIT */
/* The filler of live layouts, for model_live.h and for the files of its parts. */
#ifndef CW_REPORT_LIVE_PARTS_H
#define CW_REPORT_LIVE_PARTS_H

#include "base/pages.h"
#include "live/view.h"
#include "report/model/report_model.h"

struct cw_rules;
struct cw_symbols;

/* The state of a process whose layout has no end. */
enum cw_report_process {
    CW_REPORT_PROCESS_UNKNOWN,
    CW_REPORT_PROCESS_ALIVE,
    CW_REPORT_PROCESS_DEAD,   /* most likely killed by a signal: it never reached an exit */
    CW_REPORT_PROCESS_EXITED, /* by a system call of its own, as Go's programs do */
    CW_REPORT_PROCESS_KILLED, /* so, and those who ran it went on: it was meant to be */
};

struct cw_live_model {
    struct cw_report_model model; /* the caller makes its snapshot before init */
    const struct cw_view *view;
    struct cw_symbols *symbols;
    const struct cw_rules *rules; /* NULL: none are known */
    enum cw_report_process process;
    const char *version;
    const struct cw_report_tensors *tensors; /* sites of the layout; NULL: none are known */
    struct cw_pages pages;                   /* the model's storage */
    uint32_t *wanted;                        /* numbers of stacks */
    uint32_t wants;
    uint32_t *frame_of; /* by frame of the layout: index in the model + 1 */
};

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
