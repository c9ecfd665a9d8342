/* SPDX-License-Identifier: MIT */
/* A model filled from a live layout, and its sources (model_live.h). */
#ifndef CW_REPORT_LIVE_MODEL_H
#define CW_REPORT_LIVE_MODEL_H

#include "base/pages.h"
#include "live/view.h"
#include "report/model/report_model.h"

struct cw_rules;
struct cw_symbols;

/* The state of a process whose layout has no end. */
enum cw_report_process {
    CW_REPORT_PROCESS_UNKNOWN,
    CW_REPORT_PROCESS_ALIVE,
    CW_REPORT_PROCESS_DEAD, /* most likely killed by a signal: it never reached an exit */
};

struct cw_live_model {
    struct cw_report_model model; /* the caller makes its snapshot before init */
    const struct cw_view *view;
    struct cw_symbols *symbols;
    const struct cw_rules *rules; /* NULL: none are known */
    enum cw_report_process process;
    const char *version;
    struct cw_pages pages; /* the model's storage */
    uint32_t *wanted;      /* numbers of stacks */
    uint32_t wants;
    uint32_t *frame_of; /* by frame of the layout: index in the model + 1 */
};

#endif
