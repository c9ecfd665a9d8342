/* SPDX-License-Identifier: MIT */
/* The section PRESSURE of the text report: limits, levels, and what was done when memory was short.
 */
#ifndef CW_REPORT_TEXT_PRESSURE_H
#define CW_REPORT_TEXT_PRESSURE_H

#include "report/text/text_put.h"

/* Nothing when nothing happened and nothing is limited. */
void cw_text_pressure(const struct cw_text *text);

#endif
