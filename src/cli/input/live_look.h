/* SPDX-License-Identifier: MIT */
/*
 * A cheap look at a live file, for those that look again and again: the header and the tables that
 * are asked for are read, into a copy that stays from one look to the next. What was not asked for
 * reads as absent or as zeros. Like an image (live/live_copy.h) it is a copy, so a file that
 * somebody cuts off, or that goes, does no harm; view.h checks every index.
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
 * `why`, to be read after the file's name; the last look is gone then. */
int cw_look_take(struct cw_look *look, int fd, unsigned tables, char *why, size_t cap);
void cw_look_free(struct cw_look *look);

#endif
