/* SPDX-License-Identifier: MIT */
/* The text report: every line begins with "==PID== "; the last one is for scripts. */
#ifndef CW_REPORT_REPORT_TEXT_H
#define CW_REPORT_REPORT_TEXT_H

#include "base/out.h"
#include "report/model/report_model.h"
#include "report/text/text_form.h"

/* The sections of the full text, in their order: X(ID, "name", help). */
#define CW_TEXT_SECTIONS(X)                                                                        \
    X(ERRORS, "errors", "errors that broke a context, and invalid frees")                          \
    X(OOM, "oom", "out of memory")                                                                 \
    X(LEAKS, "leaks", "what was never freed, and what does not count as leaked")                   \
    X(GROWTH, "growth", "what grew")                                                               \
    X(OLD, "old", "live blocks of a certain age")                                                  \
    X(PEAK, "peak", "who held the memory when it was fullest")                                     \
    X(HELD, "held", "what Python freed only as it ended")                                          \
    X(TENSORS, "tensors", "tensors in PyTorch's cache, by line (run --torch)")                     \
    X(DEVICES, "devices", "sums by device")                                                        \
    X(POOL, "pool", "what the pool served and kept")                                               \
    X(BUDGETS, "budgets", "what tags may have")                                                    \
    X(PRESSURE, "pressure", "limits and pressure")                                                 \
    X(AUDIT, "audit", "what CUPTI saw")                                                            \
    X(SUPPRESSED, "suppressed", "the use of suppressions")

enum cw_text_section {
#define X(id, name, help) CW_TEXT_##id,
    CW_TEXT_SECTIONS(X)
#undef X
        CW_TEXT_SECTION_COUNT
};

#define CW_TEXT_ALL ((1u << CW_TEXT_SECTION_COUNT) - 1)

struct cw_text_style {
    enum cw_text_form form;
    unsigned sections;  /* a bit for each; head and SUMMARY are always there */
    unsigned columns;   /* that tables and lists of calls fit in; 0: 80 */
    int has_all_frames; /* of stacks; else those of frameworks are folded */
    int has_live_file;  /* from which 'cuwarden run' can tell more */
};

#define CW_TEXT_WHOLE ((struct cw_text_style){.form = CW_TEXT_FULL, .sections = CW_TEXT_ALL})

/* Reports the stacks that the text needs, before their frames are in the model. */
void cw_report_text_want(const struct cw_report_model *model, const struct cw_text_style *style,
                         cw_report_want_fn want, void *arg);
void cw_report_text_write(const struct cw_report_model *model, const struct cw_text_style *style,
                          struct cw_out *out);

#endif
