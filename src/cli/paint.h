/* SPDX-License-Identifier: MIT */
/*
 * Colours for the text report, put in line by line: it is the same text for a file and for a
 * terminal. Nothing in a report can bring a colour of its own: it has no control characters.
 */
#ifndef CW_CLI_PAINT_H
#define CW_CLI_PAINT_H

#include <stdio.h>

/* Copies the text in `fd`, from its beginning, with colours. 0, or -1 when it could not be read or
 * written. */
int cw_paint(int fd, FILE *out);

#endif
