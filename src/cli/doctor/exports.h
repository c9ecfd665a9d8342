/* SPDX-License-Identifier: MIT */
/* The exports of a libcuwarden.so, of whatever version. */
#ifndef CW_CLI_EXPORTS_H
#define CW_CLI_EXPORTS_H

#include <stddef.h>

struct cw_exports {
    char **name; /* the functions, sorted */
    size_t count;
    int has_table; /* the one for programs */
};

/* 0; or -1 if the file is no such library, and `why` gets the words to follow its name. */
int cw_exports_read(struct cw_exports *exports, const char *path, char *why, size_t cap);
void cw_exports_destroy(struct cw_exports *exports);

#endif
