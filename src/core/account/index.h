/* SPDX-License-Identifier: MIT */
/*
 * The index: from (space, key) to the live block that has it.
 *
 * Split into shards by hash, each an open-addressing table with its own lock (CW_RANK_INDEX; never
 * two at once) that doubles on its own, so the cost of a look-up stays flat and growing stalls the
 * writers of one shard. It lives outside the arena: a reader of a dead process scans the blocks.
 * The thread that removes a key owns the block, which settles a race between two frees.
 */
#ifndef CW_CORE_INDEX_H
#define CW_CORE_INDEX_H

#include <stdint.h>

#include "core/process/types.h"

/* Inserts the key. *out_old: the block that it replaces, or 0. 0; -1: no memory. */
int cw_index_insert(enum cw_space space, uint64_t key, uint32_t block, uint32_t *out_old);
/* As insert, but keeps a block that has taken the key meanwhile. 0; -1: no memory; 1: key taken. */
int cw_index_restore(enum cw_space space, uint64_t key, uint32_t block);
/*
 * The block, or 0. Takes no lock and stores nothing that others see, so that threads do not slow
 * each other down; only one that others have disturbed several times in a row takes the shard's
 * lock. Callable under any lock of a lower rank than CW_RANK_INDEX.
 *
 * The answer was true at some moment of the call and may be stale by the time it is used: the key
 * may have been removed or replaced since, the record may be another block's, and after a 0 the key
 * may have been put in. The answer is certain about what other threads cannot change meanwhile: a
 * key that stays is found with its block, one that is in at no moment is not found. To own the
 * block, remove the key.
 */
uint32_t cw_index_find(enum cw_space space, uint64_t key);
/* Removes the key. The block, now owned by the caller, or 0. */
uint32_t cw_index_remove(enum cw_space space, uint64_t key);
/* As remove, but only if the key still names this block; 1 if it did. */
int cw_index_remove_block(enum cw_space space, uint64_t key, uint32_t block);

/* In a forked child: empties the index; the memory of the old tables is lost. */
void cw_index_reset(void);

#endif
