/* SPDX-License-Identifier: MIT */
/*
 * What the program says it is doing: ranges and marks, by the tags of their names (tag_name.h).
 *
 * A range of a thread (push, pop) tags what the thread allocates inside it, and is a step when it
 * ends; the innermost one that has a name counts. A range of the process (begin, end) may end on
 * another thread, so it tags nothing; it is a step, as a mark is. Domains nest by themselves: a pop
 * ends the innermost range of its own domain.
 *
 * A tag of the program's own (enter, leave: src/api) nests with the ranges as if in a domain of its
 * own. It is no step, which is what makes it cheap.
 *
 * The stack of ranges is the thread's own and needs no lock. It holds CW_TAG_DEPTH ranges; those
 * that lie deeper are counted, so that pops find their partners, but have no name and are no steps.
 * A forked child goes on with the stack of the thread that forked it. Before the session is armed
 * ranges are kept, and nothing is counted: no memory is live.
 */
#ifndef CW_CORE_TAG_H
#define CW_CORE_TAG_H

#include <stdint.h>

#include "base/compiler.h"
#include "core/tags/tag_name.h"

#define CW_TAG_DEPTH 32
#define CW_TAG_OWN   CW_TAG_DOMAINS /* in place of a domain: of the program's own tags */

struct cw_tag_range {
    uint16_t tag;
    uint8_t domain;
    uint8_t life; /* of which session, 0: of none; see tag.c */
};

struct cw_tag_stack {
    /* What of the thread makes its sites different, in one load: in the upper half the tag of the
     * innermost range that has one, in the lower half what core/account/site.h keeps there. */
    uint32_t where;
    uint16_t depth;
    uint16_t unused;
    uint32_t deeper; /* ranges too deep for the stack; younger than all on it */
    struct cw_tag_range range[CW_TAG_DEPTH];
    uint32_t deeper_in[CW_TAG_DOMAINS + 1];
};

extern CW_HIDDEN CW_TLS struct cw_tag_stack cw_tag_stack;

/* The tag of what the calling thread allocates now; 0: none. */
static inline uint16_t cw_tag_here(void)
{
    return (uint16_t)(cw_tag_stack.where >> 16);
}

/* The level of the range within its domain, from 0; pop: -1 when there is none to end. */
int cw_tag_push(uint8_t domain, uint16_t tag);
int cw_tag_pop(uint8_t domain);

/* Of the program's own; leave: 0, or -1 when there is none to end. */
void cw_tag_enter(uint16_t tag);
int cw_tag_leave(void);

void cw_tag_mark(uint16_t tag);
/* A number that no other range of this process has, never 0. It contains all that the end needs. */
uint64_t cw_tag_begin(uint16_t tag);
void cw_tag_end(uint64_t range);

void cw_tag_init(struct cw_arena *arena);
/* In a forked child. */
void cw_tag_reset(void);

#endif
