/* SPDX-License-Identifier: MIT */
/* A model that is filled from a live layout, and what it is filled from (model_live.h). */
#ifndef CW_REPORT_LIVE_MODEL_H
#define CW_REPORT_LIVE_MODEL_H

#include "base/pages.h"
#include "live/view.h"
#include "report/model/report_model.h"

struct cw_rules;
struct cw_symbols;

/* What is known of a process whose layout says that it has not ended. */
enum cw_report_process {
    CW_REPORT_PROCESS_UNKNOWN,
    CW_REPORT_PROCESS_ALIVE,
    CW_REPORT_PROCESS_DEAD, /* by a signal, most likely: it never reached an exit */
};

struct cw_live_model {
    struct cw_report_model model; /* its snapshot is the caller's to make, before init */
    const struct cw_view *view;
    struct cw_symbols *symbols;
    const struct cw_rules *rules; /* NULL: none are known */
    enum cw_report_process process;
    const char *version;
    struct cw_pages pages; /* what the model consists of */
    uint32_t *wanted;      /* numbers of stacks */
    uint32_t wants;
    uint32_t *frame_of; /* by frame of the layout: its index in the model + 1 */
};

#endif
