/* SPDX-License-Identifier: MIT */
/* The section POOL of the text report. */
#ifndef CW_REPORT_TEXT_POOL_H
#define CW_REPORT_TEXT_POOL_H

#include "report/text/text_put.h"

/* Nothing without MODE=pool, or when nothing came the pool's way. */
void cw_text_pool(const struct cw_text *text);

#endif
