/* SPDX-License-Identifier: MIT */
/* Text of programs may be any bytes; formats that others read want UTF-8. */
#ifndef CW_CLI_UTF8_H
#define CW_CLI_UTF8_H

#include <stddef.h>

/* Bytes of the character that `text` begins with, as RFC 3629 has it; 0: it begins with none. */
size_t cw_utf8_len(const char *text);

/* The text with U+FFFD for each byte that belongs to no character; what does not fit is cut off
 * between two characters. */
void cw_utf8_clean(char *buf, size_t cap, const char *text);

#endif
