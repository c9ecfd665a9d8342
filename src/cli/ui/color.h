/* SPDX-License-Identifier: MIT */
/*
 * Colours of the command's output. The text report is coloured line by line: files and terminals
 * get the same text. A report cannot contain colours of its own: it has no control characters.
 */
#ifndef CW_CLI_COLOR_H
#define CW_CLI_COLOR_H

#include <stdio.h>

#define CW_PAINT_DIM   "\033[2m"
#define CW_PAINT_BOLD  "\033[1m"
#define CW_PAINT_ALARM "\033[1;31m"
#define CW_PAINT_RED   "\033[31m"
#define CW_PAINT_GREEN "\033[32m"
#define CW_PAINT_CYAN  "\033[36m"
#define CW_PAINT_PLAIN "\033[m"

/* Copies the text in `fd`, from its beginning, with colours. 0, or -1 if it could not be read or
 * written. */
int cw_color_text(int fd, FILE *out);

#endif
