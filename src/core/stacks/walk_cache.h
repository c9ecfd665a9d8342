/* SPDX-License-Identifier: MIT */
/*
 * Stacks that a thread has already walked, recognised without a walk.
 *
 * One per thread (struct cw_walk_cache of core/process/thread.h), seen by no other: no lock. See
 * walk_cache.c for why a match is the same stack.
 */
#ifndef CW_CORE_WALK_CACHE_H
#define CW_CORE_WALK_CACHE_H

#include <stdint.h>

#include "core/process/thread.h"
#include "core/stacks/unwind.h"

/* The entry of the stack above `frame`, the caller's __builtin_frame_address(0); or, with stack 0,
 * the entry to note it in. hint: any number that tells stacks apart. */
struct cw_walk_cache_entry *cw_walk_cache_find(struct cw_walk_cache *walk_cache, const void *frame,
                                               uint64_t hint, uint32_t epoch);

/* Notes the walk, which began at or below the frame and has a frame that is not our own. A walk
 * that could not be recognised with certainty is not noted. */
void cw_walk_cache_note(struct cw_walk_cache *walk_cache, struct cw_walk_cache_entry *entry,
                        const void *frame, const struct cw_walk *walk, uint32_t stack,
                        uint32_t epoch);

#endif
