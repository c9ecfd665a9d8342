/* SPDX-License-Identifier: MIT */
/*
 * Strings that are known by number, each of them once: the tables of strings that output forms
 * have. Numbers count from 0 in the order of the first use. Owns copies of them, or only the table,
 * for texts that live as long.
 */
#ifndef CW_CLI_STRINGS_H
#define CW_CLI_STRINGS_H

#include <stdint.h>

/* Zeroed: empty. */
struct cw_strings {
    const char **text;
    uint32_t count, cap;
    uint32_t *slot; /* open addressing: number + 1, or 0 */
    uint32_t slots; /* a power of 2 */
    int borrows;    /* set at first: no copies */
    int failed;     /* no memory; there was a message, and numbers are 0 */
};

uint32_t cw_strings_add(struct cw_strings *strings, const char *text);
void cw_strings_free(struct cw_strings *strings);

#endif
