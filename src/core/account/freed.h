/* SPDX-License-Identifier: MIT */
/*
 * Recent frees: the sites of the last frees by address and of their allocations, so that a report
 * of a second free can show both.
 *
 * A table of fixed size; a new entry replaces the one in its place. Entries are relaxed words:
 * a torn one names a wrong first free in a report, and nothing else.
 */
#ifndef CW_CORE_FREED_H
#define CW_CORE_FREED_H

#include <stdint.h>

struct cw_freed {
    uint32_t site;       /* of the free; 0: not known */
    uint32_t alloc_site; /* of the block's allocation */
};

void cw_freed_remember(uint64_t key, struct cw_freed freed);
/* The last free of the address. */
struct cw_freed cw_freed_find(uint64_t key);
/* In a forked child. */
void cw_freed_reset(void);

#endif
