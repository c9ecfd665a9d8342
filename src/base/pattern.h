/* SPDX-License-Identifier: MIT */
/*
 * Patterns as in LeakSanitizer's suppressions: matched anywhere in the text; * stands for any
 * characters, a leading ^ for the beginning of the text, a trailing $ for its end.
 */
#ifndef CW_BASE_PATTERN_H
#define CW_BASE_PATTERN_H

int cw_pattern_matches(const char *pattern, const char *text);

#endif
