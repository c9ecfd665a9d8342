/* SPDX-License-Identifier: MIT */
/* The report for people: every line begins with "==PID== ", the last one is for scripts. */
#ifndef CW_REPORT_REPORT_TEXT_H
#define CW_REPORT_REPORT_TEXT_H

#include "base/out.h"
#include "report/symbols/source.h"

enum cw_text_form { CW_TEXT_SHORT, CW_TEXT_FULL };

/* Marks the stacks that will be printed; the caller resolves them before it writes. */
void cw_report_text_want(const struct cw_report_source *source, enum cw_text_form form);
void cw_report_text_write(const struct cw_report_source *source, enum cw_text_form form,
                          struct cw_out *out);

#endif
