/* SPDX-License-Identifier: MIT */
/*
 * Cheap repeated reading of a live file: reads the header and the requested tables into a copy that
 * is kept from one look to the next. Other tables read as absent or as zeros. Because it is a copy,
 * like an image (live/live_copy.h), a file that is truncated or removed does no harm; view.h checks
 * every index.
 */
#ifndef CW_CLI_LIVE_LOOK_H
#define CW_CLI_LIVE_LOOK_H

#include <stddef.h>

#include "live/view.h"

struct cw_look {
    struct cw_view view; /* base is NULL until a look has succeeded */
    void *memory;
    size_t size;
};

#define CW_LOOK_AT(table) (1u << (table))

/* Reads the header and the tables whose bits are set in `tables`. 0, or -1 with the reason in
 * `why`, which follows the file's name in a message; the previous look is lost then. */
int cw_look_take(struct cw_look *look, int fd, unsigned tables, char *why, size_t cap);
void cw_look_free(struct cw_look *look);

#endif
