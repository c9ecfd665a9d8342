/* SPDX-License-Identifier: MIT */
/*
 * Sites: where the program allocates, and the counters of it.
 *
 * A site is (call stack, API, kind, device). Stacks are nodes of an append-only tree. Both are
 * interned: found without a lock through chains that are only ever extended at their head, added
 * under cw_site_lock. The counters are atomics in the site's record; nobody needs the lock for
 * them.
 */
#ifndef CW_CORE_SITE_H
#define CW_CORE_SITE_H

#include <stdint.h>

#include "base/lock.h"
#include "base/options.h"
#include "core/types.h"
#include "live/arena.h"

extern struct cw_lock cw_site_lock; /* CW_RANK_SITE: interning of modules, frames and sites */

/* stacks: what to keep; depth: frames kept at most, 1..CW_DEPTH_MAX. 0, or -1: no memory. */
int cw_site_init(struct cw_arena *arena, enum cw_stacks stacks, unsigned depth);
/* In a forked child. */
void cw_site_reset(void);

/* The unwinder's first call loads libgcc_s, which takes the loader's lock, and allocates: do it
 * before the session is armed, with no lock held and nobody waiting for us. */
void cw_stack_warm_up(void);
/* Fills pcs[] with return addresses, innermost first, without our own frames; how many. No lock
 * held. */
unsigned cw_stack_capture(uint64_t *pcs, unsigned max);
/* Interns the stack; its innermost frame, 0 when empty or out of memory. No lock held. */
uint32_t cw_stack_intern(const uint64_t *pcs, unsigned count);

/* The calling thread's own record of the site of its current call; 0 when out of memory. No lock
 * held. */
uint32_t cw_site_here(uint32_t api, enum cw_kind kind, uint8_t device);

/* The record of the same site that belongs to no thread, for blocks that any thread may bring to
 * life. */
uint32_t cw_site_shared(uint32_t site);

struct cw_live_site *cw_site_at(uint32_t site);

/* Text of a name that lives as long as the library, 0 when out of memory. */
uint32_t cw_site_text(const char *name);

#endif
