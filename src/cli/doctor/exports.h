/* SPDX-License-Identifier: MIT */
/* The exports of an ELF library. */
#ifndef CW_CLI_EXPORTS_H
#define CW_CLI_EXPORTS_H

#include <stddef.h>

struct cw_exports {
    char **name; /* sorted */
    size_t count;
};

/* Returns 0, or -1 after a message. */
int cw_exports_read(struct cw_exports *exports, const char *path);
void cw_exports_destroy(struct cw_exports *exports);

#endif
