/* SPDX-License-Identifier: MIT */
/* Text of a program may be any bytes; JSON and the formats of other tools require UTF-8. */
#ifndef CW_BASE_UTF8_H
#define CW_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define CW_UTF8_REPLACEMENT     "\xef\xbf\xbd" /* U+FFFD, for each sequence that is not a character */
#define CW_UTF8_REPLACEMENT_MAX 3              /* bytes that a byte can become */

/* Bytes of the well-formed start of the sequence at `text`, at least 1; *out_complete says whether
 * it is a whole character. len: at least 1. */
size_t cw_utf8_scan(const char *text, size_t len, int *out_complete);
/* The character of a complete sequence of `len` bytes. */
uint32_t cw_utf8_decode(const char *text, size_t len);
int cw_utf8_is_valid(const char *text);
/* How many bytes of the text fit into cap with their NUL, without cutting a character. */
size_t cw_utf8_cut(const char *text, size_t cap);
/* Copies the text with replacements, cut off between characters; returns the length. */
size_t cw_utf8_clean(char *buf, size_t cap, const char *text);

#endif
