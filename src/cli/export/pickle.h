/* SPDX-License-Identifier: MIT */
/*
 * Python's pickles, protocol 2: the subset that lists, dictionaries, integers and strings need.
 * https://docs.python.org/3/library/pickletools.html
 */
#ifndef CW_CLI_PICKLE_H
#define CW_CLI_PICKLE_H

#include <stdint.h>
#include <stdio.h>

#include "cli/ui/strings.h"

struct cw_pickle {
    FILE *out;
    struct cw_strings strings; /* written so far; each has a place in the memo */
    uint32_t *memo_of;         /* by string */
    uint32_t memo_cap;
    uint32_t memos;
    int failed; /* out of memory, after a message */
};

void cw_pickle_begin(struct cw_pickle *pickle, FILE *out);
/* Frees what it owns; 0, or -1 on failure. */
int cw_pickle_end(struct cw_pickle *pickle);

void cw_pickle_number(struct cw_pickle *pickle, uint64_t number);
void cw_pickle_false(struct cw_pickle *pickle);
void cw_pickle_text(struct cw_pickle *pickle, const char *text);
/* Open an empty list or dictionary; cw_pickle_append and cw_pickle_set add to it. */
void cw_pickle_list(struct cw_pickle *pickle);
void cw_pickle_dictionary(struct cw_pickle *pickle);
void cw_pickle_append(struct cw_pickle *pickle);
/* After a key and a value. */
void cw_pickle_set(struct cw_pickle *pickle);

/* Gives the last value a number, by which the same object can be used again. */
uint32_t cw_pickle_remember(struct cw_pickle *pickle);
void cw_pickle_recall(struct cw_pickle *pickle, uint32_t number);

#endif
