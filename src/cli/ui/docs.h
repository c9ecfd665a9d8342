/* SPDX-License-Identifier: MIT */
/* Documentation and flags of the options, generated from options.def; and that of frameworks'
 * caches. */
#ifndef CW_CLI_DOCS_H
#define CW_CLI_DOCS_H

#include <stddef.h>
#include <stdio.h>

#include "cli/ui/flags.h"

/* form: "text", "man" or "readme". */
void cw_docs_print(FILE *to, const char *form);
/* The table of caches.def. */
void cw_docs_print_caches(FILE *to);
/* "STACK_DEPTH" becomes "stack-depth"; returns buf. */
char *cw_docs_flag_name(char *buf, size_t cap, const char *name);

#define CW_FLAG_MAX 32 /* longest flag, with its NUL */

/* A row of options.def as a flag. */
struct cw_docs_flag {
    struct cw_flag flag;
    char name[CW_FLAG_MAX], offers[128];
};
void cw_docs_flag(struct cw_docs_flag *flag, size_t row, int id);

#endif
