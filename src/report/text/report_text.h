/* SPDX-License-Identifier: MIT */
/* The text report: every line begins with "==PID== "; the last one is for scripts. */
#ifndef CW_REPORT_REPORT_TEXT_H
#define CW_REPORT_REPORT_TEXT_H

#include "base/out.h"
#include "report/model/report_model.h"
#include "report/text/text_form.h"

/* Reports the stacks that the text needs, before their frames are in the model. */
void cw_report_text_want(const struct cw_report_model *model, enum cw_text_form form,
                         cw_report_want_fn want, void *arg);
void cw_report_text_write(const struct cw_report_model *model, enum cw_text_form form,
                          struct cw_out *out);

#endif
