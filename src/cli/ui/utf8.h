/* SPDX-License-Identifier: MIT */
/* Program-supplied text may be any bytes; exported formats require UTF-8. */
#ifndef CW_CLI_UTF8_H
#define CW_CLI_UTF8_H

#include <stddef.h>

/* Bytes of the character at the start of `text`, by RFC 3629; 0: there is none. */
size_t cw_utf8_len(const char *text);

/* Copies the text with U+FFFD for each byte that is not part of a character; truncates between
 * characters. */
void cw_utf8_clean(char *buf, size_t cap, const char *text);

#endif
