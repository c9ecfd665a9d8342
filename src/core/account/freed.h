/* SPDX-License-Identifier: MIT */
/*
 * How the last blocks ended, by address: freed by the program, or gone with their context; with the
 * sites of the free and of the allocation, so that a report of a free that comes too late can show
 * both.
 *
 * A table of fixed size; a new entry replaces the one in its place, so the entry of an address is
 * that of its newest block, as long as every end that can be followed by such a free is remembered.
 * Entries are relaxed words: a torn one names a wrong first free in a report, and nothing else.
 */
#ifndef CW_CORE_FREED_H
#define CW_CORE_FREED_H

#include <stdint.h>

enum cw_freed_how {
    CW_FREED_NOT,
    CW_FREED_UNKNOWN, /* if it was, that is no longer remembered */
    CW_FREED_BY_CALL,
    CW_FREED_WITH_CONTEXT,
};

struct cw_freed {
    enum cw_freed_how how;
    uint32_t site;       /* of the free; 0: not known, or there was none */
    uint32_t alloc_site; /* of the block's allocation */
};

/* A free by the program. site: of the free, 0: not known; alloc_site: of the allocation. */
void cw_freed_remember(uint64_t key, uint32_t site, uint32_t alloc_site);
/* The block went with its context. */
void cw_freed_remember_ended(uint64_t key, uint32_t alloc_site);
/* The address has become something else. */
void cw_freed_forget(uint64_t key);
/* How the newest block with the address ended. */
struct cw_freed cw_freed_find(uint64_t key);
/* In a forked child. */
void cw_freed_reset(void);

#endif
