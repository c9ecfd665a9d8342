/* SPDX-License-Identifier: MIT */
/*
 * Owners: what tells an allocation from all others. Each gets an id that is never used again in
 * this process, and the program may give it a name.
 *
 * The record lies beside the block's, under the same index (CW_TABLE_OWNER), and is written by
 * whoever owns the block, its name by any thread. It is in private memory, and whoever changes it
 * shows it. Ids are taken from one counter in ranges, so that a thread with a range writes to
 * nothing shared. A mark ends all ranges: ids that are given out after it are at least the mark,
 * those from before are less. A forked child begins at 1 again.
 *
 * Names are stored once; the table of them is guarded by a lock of CW_RANK_TAG, nothing else is.
 */
#ifndef CW_CORE_OWNER_H
#define CW_CORE_OWNER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/thread.h"
#include "live/arena.h"

#define CW_OWNER_NAMES 4096u /* different ones; a power of two */
/* Owners that one thread writes to lie two cache lines apart from another's: a group of so many
 * block indices, each beginning at a multiple. */
#define CW_OWNERS_APART   (2 * CW_CACHE_LINE / sizeof(struct cw_live_owner))
#define CW_OWNER_NAME_MAX 120u /* bytes, with the NUL; a longer one is cut */

void cw_owner_init(struct cw_arena *arena);
/* In a forked child. */
void cw_owner_reset(void);

extern CW_HIDDEN struct cw_arena *cw_owner_arena;
extern CW_HIDDEN _Atomic uint32_t cw_owner_epoch; /* moved on by each mark */

/* Room for the owner of a new block record. 0, or -1: no memory. */
int cw_owner_make(uint32_t block);

static inline struct cw_live_owner *cw_owner_at(uint32_t block)
{
    return cw_arena_at_shape(cw_owner_arena, CW_TABLE_OWNER, CW_BLOCKS_FIRST,
                             sizeof(struct cw_live_owner), block);
}

CW_NOINLINE void cw_owner_take_range(void);

/* The block has a new owner, without a name; the caller shows it (cw_tracker_show). */
static inline struct cw_live_owner *cw_owner_new(uint32_t block)
{
    struct cw_live_owner *owner = cw_owner_at(block);

    if (CW_UNLIKELY(cw_thread.next_id == cw_thread.ids_end ||
                    cw_thread.id_epoch !=
                        atomic_load_explicit(&cw_owner_epoch, memory_order_relaxed)))
        cw_owner_take_range();
    atomic_store_explicit(&owner->name, 0, memory_order_relaxed);
    atomic_store_explicit(&owner->id, cw_thread.next_id++, memory_order_release);
    return owner;
}

/* Where readers of the file see it; own: the arena's, not 0. */
static inline struct cw_live_owner *cw_owner_shown(const struct cw_live_owner *owner, ptrdiff_t own)
{
    return (struct cw_live_owner *)((uintptr_t)owner - (uintptr_t)own);
}

/* A new one. */
static inline void cw_owner_show(const struct cw_live_owner *owner, ptrdiff_t own)
{
    struct cw_live_owner *shown = cw_owner_shown(owner, own);

    atomic_store_explicit(&shown->name, atomic_load_explicit(&owner->name, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&shown->id, atomic_load_explicit(&owner->id, memory_order_relaxed),
                          memory_order_relaxed);
}

/* Of a block that is or was live. Who sees an id sees that the former owner is gone. */
static inline uint64_t cw_owner_id(uint32_t block)
{
    return atomic_load_explicit(&cw_owner_at(block)->id, memory_order_acquire);
}

/* What the program calls it, "" for nothing; lives as long as the arena. */
static inline const char *cw_owner_name(uint32_t block)
{
    uint32_t name = atomic_load_explicit(&cw_owner_at(block)->name, memory_order_relaxed);

    return cw_arena_text_at(cw_owner_arena, name & ~CW_OWNER_KEPT);
}

/* 1 if no scope frees it. */
static inline int cw_owner_is_kept(uint32_t block)
{
    return (atomic_load(&cw_owner_at(block)->name) & CW_OWNER_KEPT) != 0;
}

/* The program calls the live block by this text, 0: by none. Any thread. */
void cw_owner_call(uint32_t block, uint32_t text);
/* No scope frees it. Any thread. */
void cw_owner_keep(uint32_t block);

/* At least as large as every id until now, and at most as large as every later one. Any thread. */
uint64_t cw_owner_mark(void);

/* The text of a name that is not empty, 0: there is no room. Any thread, no lock held. */
uint32_t cw_owner_text(const char *name);

#endif
