/* SPDX-License-Identifier: MIT */
/* How much of the text report is written, and how it asks for stacks. */
#ifndef CW_REPORT_TEXT_FORM_H
#define CW_REPORT_TEXT_FORM_H

#include <stdint.h>

enum cw_text_form { CW_TEXT_SHORT, CW_TEXT_FULL };

/* Told of each stack that a text shows, by its number; of some more than once. */
typedef void (*cw_report_want_fn)(void *arg, uint32_t stack);

#endif
