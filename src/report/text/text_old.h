/* SPDX-License-Identifier: MIT */
/* The section OLD: blocks that have been live for a long time, by the place that allocated them. */
#ifndef CW_REPORT_TEXT_OLD_H
#define CW_REPORT_TEXT_OLD_H

#include "report/text/text_put.h"

/* Nothing without old blocks. */
void cw_text_old(const struct cw_text *text);

#endif
