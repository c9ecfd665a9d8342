/* SPDX-License-Identifier: MIT */
/* The known word that a misspelt one probably meant. No locks, no memory of its own. */
#ifndef CW_BASE_NEAREST_H
#define CW_BASE_NEAREST_H

#include <stddef.h>

struct cw_nearest {
    const char *word; /* need not end with a NUL */
    size_t len;
    unsigned least;
    const char *found; /* NULL: none is near: about one wrong letter in three at most */
    size_t found_len;
};

static inline struct cw_nearest cw_nearest_to(const char *word, size_t len)
{
    return (struct cw_nearest){.word = word, .len = len, .least = (unsigned)(len + 2) / 3 + 1};
}

/* Offers a known word, which must outlive the search. The first of equally near ones is found. */
void cw_nearest_offer(struct cw_nearest *nearest, const char *known, size_t known_len);

#endif
