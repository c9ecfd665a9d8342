/* SPDX-License-Identifier: MIT */
/*
 * Program-supplied text on a screen: truncated to a number of columns, never inside a character.
 * Characters are those of the locale (LC_CTYPE); invalid ones, and those that would move the
 * cursor, become '?'.
 */
#ifndef CW_CLI_TRUNCATE_H
#define CW_CLI_TRUNCATE_H

#include <stddef.h>

/* Copies what fits in `columns` and, with the NUL, in `cap` bytes; returns the columns used. */
size_t cw_truncate(char *buf, size_t cap, const char *text, size_t columns);

/* The same, padded with spaces to all columns, as far as `cap` allows. */
void cw_truncate_fill(char *buf, size_t cap, const char *text, size_t columns);

#endif
