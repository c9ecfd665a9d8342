/* SPDX-License-Identifier: MIT */
/* The extent of the text report, and its requests for stacks. */
#ifndef CW_REPORT_TEXT_FORM_H
#define CW_REPORT_TEXT_FORM_H

#include <stdint.h>

enum cw_text_form { CW_TEXT_SHORT, CW_TEXT_FULL };

/* Called with the number of each stack that a text shows, possibly more than once. */
typedef void (*cw_report_want_fn)(void *arg, uint32_t stack);

#endif
