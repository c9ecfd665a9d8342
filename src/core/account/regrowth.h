/* SPDX-License-Identifier: MIT */
/*
 * Regrowth: blocks that grow by being replaced, as a vector that doubles its capacity does.
 *
 * A copy from the beginning of one live block to the beginning of another makes the two a pair, if
 * the second may replace the first: it is larger and not older, as far as the clock tells (it ticks
 * every few milliseconds), and both are from the same place, that is, equal in call stack, API,
 * kind and device, whatever thread and tag. Further copies by the same thread between the two,
 * until it begins another pair, are parts of the same (chunks). The pair counts as a resize once
 * the program frees the first while it has the second, and more than half of the first has been
 * copied. A block replaces one other at most, and is replaced once; a chain of replacements begins
 * with a block that did not replace any.
 *
 * Not seen: copies by kernels (thrust's own among them), over the host, and from or to the middle
 * of blocks alone; copies while any stream captures, which run when the graph does; a growth whose
 * blocks come from different places, such as a constructor and a resize. Without stacks
 * (STACKS=off) all blocks of an API, a kind and a device are from one place.
 *
 * Owns the pairs (PAIRS at most, the oldest is forgotten) and CW_TABLE_REGROWTH (RECORDS at most,
 * one for each place); both are guarded by one lock (CW_RANK_REGROWTH). The blocks of a pair are
 * marked in their flags, so a free of any other block costs a look at a byte that is in the cache.
 */
#ifndef CW_CORE_REGROWTH_H
#define CW_CORE_REGROWTH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "live/arena.h"

#define CW_REGROWTH_PAIRS   256
#define CW_REGROWTH_RECORDS 4096

/* is_on 0: no copy is looked at. */
void cw_regrowth_init(struct cw_arena *arena, int is_on);
/* In a forked child. */
void cw_regrowth_reset(void);

extern CW_HIDDEN _Atomic int cw_regrowth_on;

static inline int cw_regrowth_is_on(void)
{
    return atomic_load_explicit(&cw_regrowth_on, memory_order_relaxed);
}

/* The program has made or requested a copy, with success. Addresses without a block cost two
 * look-ups in the index. No lock held. */
void cw_regrowth_copied(uint64_t to, uint64_t from, uint64_t bytes);

/* The library itself has replaced a block of so many bytes (a growable buffer's) by this larger
 * one, 0 if that is not in the account. begins_chain: the first did not replace any. No lock held.
 */
void cw_regrowth_replaced(uint32_t block, uint64_t before, uint64_t copied, int begins_chain);

CW_COLD void cw_regrowth_gone_slowly(uint32_t block, int is_freed);

/* The program no longer has this block, which the caller owns and has not changed yet. is_freed: by
 * a free, not with its context. */
static inline void cw_regrowth_gone(uint32_t index, const struct cw_live_block *block, int is_freed)
{
    if (CW_UNLIKELY((atomic_load_explicit(&block->flags, memory_order_relaxed) &
                     (CW_BLOCK_PAIRED | CW_BLOCK_REGROWN)) != 0))
        cw_regrowth_gone_slowly(index, is_freed);
}

#endif
