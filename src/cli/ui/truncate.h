/* SPDX-License-Identifier: MIT */
/*
 * Text of programs on a screen: cut to a number of columns, never inside a character. Characters
 * are those of the locale (LC_CTYPE); what is none, and what would move the cursor, is a '?'.
 */
#ifndef CW_CLI_TRUNCATE_H
#define CW_CLI_TRUNCATE_H

#include <stddef.h>

/* What fits into `columns` and into `cap` bytes with the NUL; returns the columns that it takes. */
size_t cw_truncate(char *buf, size_t cap, const char *text, size_t columns);

/* The same, with spaces behind it until it takes all columns, as far as `cap` allows. */
void cw_truncate_fill(char *buf, size_t cap, const char *text, size_t columns);

#endif
