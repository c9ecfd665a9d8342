/* SPDX-License-Identifier: MIT */
/* The section OUT OF MEMORY of the text report. */
#ifndef CW_REPORT_TEXT_OOM_H
#define CW_REPORT_TEXT_OOM_H

#include "report/text/text_put.h"

void cw_text_ooms(const struct cw_text *text);

#endif
