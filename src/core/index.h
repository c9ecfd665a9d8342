/* SPDX-License-Identifier: MIT */
/*
 * The index: from (space, key) to the live block that has it.
 *
 * Split into shards by hash, each an open-addressing table with its own lock (CW_RANK_INDEX; never
 * two at once) that doubles on its own, so the cost of a look-up stays flat and growing stalls one
 * shard. It lives outside the arena: a reader of a dead process scans the blocks. The one that
 * removes a key owns the block: that is what settles a race between two frees.
 */
#ifndef CW_CORE_INDEX_H
#define CW_CORE_INDEX_H

#include <stdint.h>

#include "core/types.h"

/* Puts the key in. *out_old is the block that was there and is now replaced, or 0. 0, or -1: no
 * memory. */
int cw_index_insert(enum cw_space space, uint64_t key, uint32_t block, uint32_t *out_old);
/* As insert, but leaves a block that has the key by now: 0, -1: no memory, or 1: the key is taken.
 */
int cw_index_restore(enum cw_space space, uint64_t key, uint32_t block);
/* The block, or 0. It may be gone by the time the caller looks at it. */
uint32_t cw_index_find(enum cw_space space, uint64_t key);
/* Takes the key out; the block, now the caller's own, or 0. */
uint32_t cw_index_remove(enum cw_space space, uint64_t key);
/* As remove, but only if the key still names this block; 1 if it did. */
int cw_index_remove_block(enum cw_space space, uint64_t key, uint32_t block);

/* In a forked child: empty, the memory of the old tables is forgotten. */
void cw_index_reset(void);

#endif
