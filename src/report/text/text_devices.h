/* SPDX-License-Identifier: MIT */
/* The section DEVICES of the text report. */
#ifndef CW_REPORT_TEXT_DEVICES_H
#define CW_REPORT_TEXT_DEVICES_H

#include "report/text/text_put.h"

void cw_text_devices(const struct cw_text *text);

#endif
