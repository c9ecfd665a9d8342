/* SPDX-License-Identifier: MIT */
/*
 * Memory that is taken piece by piece and given back all at once. From cw_mem; of one thread.
 */
#ifndef CW_BASE_PAGES_H
#define CW_BASE_PAGES_H

#include <stddef.h>

struct cw_page;

/* Zeroed: nothing taken yet. */
struct cw_pages {
    struct cw_page *first;
};

/* Zeroed, aligned to 16 bytes; stays where it is. NULL: no memory. */
void *cw_pages_take(struct cw_pages *pages, size_t size);
/* A copy with its NUL. */
const char *cw_pages_copy(struct cw_pages *pages, const char *text, size_t len);
void cw_pages_free(struct cw_pages *pages);

#endif
