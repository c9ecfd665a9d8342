/* SPDX-License-Identifier: MIT */
/*
 * The tracker: the live blocks and the sums over them.
 *
 * A block's life: insert (after the driver gave it), then take (before the driver is asked to free
 * it) and finish (after it answered). Take comes first because the driver may give the same address
 * to another thread the moment it is free; insert comes last because only then the address is
 * known. Who takes a block owns it until finish; a second take of the same key finds nothing.
 *
 * No lock of its own: the index settles who owns a block, counters are atomics, free records lie in
 * per-thread stashes over one list under CW_RANK_INDEX. Always: a device's live_bytes is the sum of
 * live_bytes over its sites of counted kinds, up to calls that are in flight.
 */
#ifndef CW_CORE_TRACKER_H
#define CW_CORE_TRACKER_H

#include <stdint.h>

#include "core/types.h"
#include "live/arena.h"

void cw_tracker_init(struct cw_arena *arena);
void cw_tracker_reset(void);

/* Accounts for a block that the driver gave at this site. The block, or 0 when there was no room
 * (it is then counted in header.lost_blocks). A block that still had the key is closed as freed
 * unseen. */
uint32_t cw_tracker_insert(const struct cw_request *request, uint32_t site, uint64_t now_ns);

/* Counts a failed allocating call. */
void cw_tracker_fail(uint32_t site, int is_oom);

uint32_t cw_tracker_find(enum cw_space space, uint64_t key);
uint32_t cw_tracker_take(enum cw_space space, uint64_t key);
void cw_tracker_finish(uint32_t block, enum cw_free_result result);
/* As take, for a block of CW_SPACE_HANDLE, which has no key in the index; its owner (vmm.c) knows
 * it. */
void cw_tracker_take_block(uint32_t block);

struct cw_live_block *cw_tracker_at(uint32_t block);

/* Changes the size of a live block: a mapping tells how large an imported handle is. */
void cw_tracker_resize(uint32_t block, uint64_t bytes);

/*
 * Takes every block that went with the context, once the driver has said that it did. The list is
 * for cw_tracker_finish_list. 0 when there is none.
 */
uint32_t cw_tracker_take_context(uint32_t context);
void cw_tracker_finish_list(uint32_t list, enum cw_free_result result);

/* The calling thread ends: its stash of free records goes back. */
void cw_tracker_thread_ends(void);

/* Debug and unit tests: 0, or -1 when the sums do not agree. Nobody else may be at work. */
int cw_tracker_check(void);

#endif
