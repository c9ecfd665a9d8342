/* SPDX-License-Identifier: MIT */
/*
 * Call stacks: which chain of calls led here, as an index.
 *
 * Stacks are nodes of an append-only tree, outermost frame first. They are interned: found without
 * a lock through chains that are only ever extended at their head, added under cw_intern_lock. A
 * stack that the thread has walked before is recognised by its return addresses (walk_cache.h).
 * Where the process runs Python, its frames take the place of the interpreter's (merge.h).
 */
#ifndef CW_CORE_STACK_H
#define CW_CORE_STACK_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "live/arena.h"

/* stacks: what to keep; depth: frames kept at most, 1..CW_DEPTH_MAX. 0, or -1: no memory. */
int cw_stack_init(struct cw_arena *arena, enum cw_stacks stacks, unsigned depth);
/* In a forked child. */
void cw_stack_reset(void);

/* Interns the stack; its innermost frame, 0 when empty or out of memory. No lock held. */
uint32_t cw_stack_intern(const uint64_t *pcs, unsigned count);

extern CW_HIDDEN enum cw_stacks cw_stack_mode; /* set once, before arming */

uint32_t cw_stack_take(void);

/* The stack of the thread's current call, interned, as the option STACKS wants it. No lock held. */
static inline uint32_t cw_stack_here(void)
{
    return cw_stack_mode == CW_STACKS_OFF ? 0 : cw_stack_take();
}

/* Stores in the live header why Python frames are missing, if they should be there. */
void cw_stack_note_python(void);

#endif
