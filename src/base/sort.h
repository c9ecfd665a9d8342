/* SPDX-License-Identifier: MIT */
/*
 * Sorting in place. Not qsort: glibc's takes memory from malloc, which may be the very thing that
 * the program is dying in. Not stable: an order that must not vary between runs ends in a unique
 * key.
 */
#ifndef CW_BASE_SORT_H
#define CW_BASE_SORT_H

#include <stddef.h>

/* Nonzero when a comes before b. */
typedef int (*cw_before_fn)(const void *a, const void *b, const void *arg);

/* size: of one element, at most CW_SORT_ELEMENT_MAX. */
#define CW_SORT_ELEMENT_MAX 128
void cw_sort(void *base, size_t count, size_t size, cw_before_fn before, const void *arg);

#endif
