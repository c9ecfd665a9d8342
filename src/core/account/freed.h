/* SPDX-License-Identifier: MIT */
/*
 * Recent frees: the sites of the last frees by address, so that a report of a second free can show
 * the first.
 *
 * A table of fixed size; a new entry replaces the one in its place. Entries are two relaxed words:
 * a torn one names a wrong first free in a report, and nothing else.
 */
#ifndef CW_CORE_FREED_H
#define CW_CORE_FREED_H

#include <stdint.h>

void cw_freed_remember(uint64_t key, uint32_t site);
/* The site of the last free of the address, 0 if not known. */
uint32_t cw_freed_find(uint64_t key);
/* In a forked child. */
void cw_freed_reset(void);

#endif
