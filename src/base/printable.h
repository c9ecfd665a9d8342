/* SPDX-License-Identifier: MIT */
/*
 * Text of programs, files and other users before it is printed. It must neither steer a terminal
 * nor show something else than it is: control characters (C0, DEL, C1), characters that reverse the
 * direction of what follows or break the line, and what is not UTF-8 become '?'.
 */
#ifndef CW_BASE_PRINTABLE_H
#define CW_BASE_PRINTABLE_H

#include <stddef.h>

/* Bytes of the character at `text`, which has `len` > 0 bytes; *out_is_printable: it may be printed
 * as it is. A sequence that is no character has one byte or more. */
size_t cw_printable_scan(const char *text, size_t len, int *out_is_printable);
/* Replaces in place; the text may become shorter. Returns its length; it does not end it. */
size_t cw_printable_clean(char *text, size_t len);
/* The same for a string. Returns it. */
char *cw_printable_clean_string(char *text);

#endif
