/* SPDX-License-Identifier: MIT */
/*
 * Interned strings, as string tables of output formats need them. Numbers start at 0 in the order
 * of first use. Owns copies of the strings, or only the table if the strings live as long.
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
    int borrows;    /* set initially: no copies */
    int failed;     /* out of memory, after a message; numbers are 0 */
};

uint32_t cw_strings_add(struct cw_strings *strings, const char *text);
void cw_strings_free(struct cw_strings *strings);

#endif
