/* SPDX-License-Identifier: MIT */
/* The section AUDIT: where our account and that of CUPTI differ. */
#ifndef CW_REPORT_TEXT_AUDIT_H
#define CW_REPORT_TEXT_AUDIT_H

#include "report/text/text_put.h"

/* Nothing where no audit was asked for. */
void cw_text_audit(const struct cw_text *text);

#endif
