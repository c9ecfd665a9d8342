/* SPDX-License-Identifier: MIT */
/* The width of the screen that a text is printed on. */
#ifndef CW_CLI_SCREEN_H
#define CW_CLI_SCREEN_H

#include <stdio.h>

/* Columns of the terminal, or of COLUMNS, or 80; at least 20. */
unsigned cw_screen_columns(FILE *out);

#endif
