/* SPDX-License-Identifier: MIT */
/*
 * The tracker: the live blocks and the sums over them.
 *
 * A block's life: insert (after the driver gave it), then take (before the driver is asked to free
 * it) and finish (after it answered). Take comes first because the driver may give the same address
 * to another thread the moment it is free; insert comes last because only then the address is
 * known. A thread that takes a block owns it until finish; a second take of the same key finds
 * nothing.
 *
 * A block of the pool stays in the index when the program frees it: claim, retire, and at the next
 * request reuse. The claim settles who frees it. take_idle and finish_idle release it.
 *
 * No lock of its own: the index and the claims settle who owns a block, counters are atomics, free
 * records lie in per-thread stashes over one list under CW_RANK_INDEX. Always: a device's live
 * bytes (core/account/usage.h) are the sum over its sites of counted kinds, up to calls that are in
 * flight.
 */
#ifndef CW_CORE_TRACKER_H
#define CW_CORE_TRACKER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/account/budget.h"
#include "core/account/index.h"
#include "core/account/owner.h"
#include "core/account/regrowth.h"
#include "core/account/size_class.h"
#include "core/account/site.h"
#include "core/account/site_count.h"
#include "core/process/thread.h"
#include "core/account/trace.h"
#include "core/process/guard.h"
#include "core/process/types.h"
#include "live/arena.h"

void cw_tracker_init(struct cw_arena *arena);
void cw_tracker_reset(void);

/* Accounts for a block that the driver gave at this site. The block, or 0 when there was no room
 * (it is then counted in header.lost_blocks). A block that still had the key is closed as freed
 * unseen. */
uint32_t cw_tracker_insert(const struct cw_request *request, uint32_t site, uint64_t now_ns);

/* The record that the calling thread's next insertion takes; 0 without memory. */
uint32_t cw_tracker_next_record(void);

/* Counts a failed allocating call. */
void cw_tracker_fail(uint32_t site, int is_oom);

static inline uint32_t cw_tracker_find(enum cw_space space, uint64_t key)
{
    return cw_index_find(space, key);
}

/* The block, live or idle, that contains the address but does not begin there; 0: none. Looks at
 * every block. */
uint32_t cw_tracker_find_around(uint64_t address);

uint32_t cw_tracker_take(enum cw_space space, uint64_t key);
/* The same for the front of a list, which it returns, for cw_tracker_finish_list. */
uint32_t cw_tracker_take_onto(uint32_t list, enum cw_space space, uint64_t key);
void cw_tracker_finish(uint32_t block, enum cw_free_result result);
/* As take, for a block of CW_SPACE_HANDLE, which has no key in the index; its owner (vmm.c) knows
 * it. */
void cw_tracker_take_block(uint32_t block);

extern CW_HIDDEN struct cw_arena *cw_tracker_arena;

static inline struct cw_live_block *cw_tracker_at(uint32_t block)
{
    return cw_arena_at_shape(cw_tracker_arena, CW_TABLE_BLOCK, CW_BLOCKS_FIRST,
                             sizeof(struct cw_live_block), block);
}

/* Where readers of the file see the record; NULL: nowhere. */
static inline struct cw_live_block *cw_tracker_shown(const struct cw_live_block *block)
{
    ptrdiff_t own = cw_site_own_offset;

    return own != 0 ? (struct cw_live_block *)((uintptr_t)block - (uintptr_t)own) : NULL;
}

static inline void cw_tracker_show_state(const struct cw_live_block *block, uint32_t state)
{
    struct cw_live_block *shown = cw_tracker_shown(block);

    if (shown != NULL)
        atomic_store_explicit(&shown->state, state, memory_order_release);
}

/* All of it, after its new owner (NULL: it has none), and `state` last. Shown before the record
 * itself says so: after that it may be another thread's. */
static inline void cw_tracker_show(const struct cw_live_block *block,
                                   const struct cw_live_owner *owner, uint32_t state)
{
    enum { STATE = offsetof(struct cw_live_block, state) / 8, WORDS = sizeof(*block) / 8 };
    struct cw_live_block *shown = cw_tracker_shown(block);
    const uint64_t *from = (const uint64_t *)(const void *)block;
    volatile uint64_t *to = (volatile uint64_t *)(void *)shown;

    if (shown == NULL)
        return;
    if (owner != NULL)
        cw_owner_show(owner, (const char *)block - (const char *)shown);
    for (unsigned i = 0; i < WORDS; i++)
        if (i != STATE)
            to[i] = from[i];
    atomic_store_explicit(&shown->site, atomic_load_explicit(&block->site, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&shown->state, state, memory_order_release);
}

/* Bytes taken from the driver for the block; the next in the list that it lies in. */
static inline uint64_t cw_tracker_held(uint32_t block)
{
    return atomic_load_explicit(&cw_tracker_at(block)->held, memory_order_relaxed);
}

static inline uint32_t cw_tracker_next(uint32_t block)
{
    return atomic_load_explicit(&cw_tracker_at(block)->link, memory_order_relaxed);
}

/* 1: device memory of the pool. */
static inline int cw_tracker_has_pages(const struct cw_live_block *block)
{
    return (atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED) != 0 &&
           block->class < CW_POOL_HOST;
}

/* The excess of a live block of the pool (core/limits/excess.h); 0 for others. */
static inline uint64_t cw_tracker_excess(const struct cw_live_block *block)
{
    if (!cw_tracker_has_pages(block))
        return 0;
    return cw_size_excess(atomic_load_explicit(&block->held, memory_order_relaxed),
                          atomic_load_explicit(&block->bytes, memory_order_relaxed));
}

/* What the driver's pages have beyond a block, live or idle. */
static inline uint64_t cw_tracker_padding(const struct cw_live_block *block)
{
    return cw_tracker_has_pages(block)
               ? cw_size_padding(atomic_load_explicit(&block->held, memory_order_relaxed))
               : 0;
}

/* Joins two lists. `more`, which is walked to its end, comes first. */
uint32_t cw_tracker_join(uint32_t list, uint32_t more);

/* A block that the driver gave ahead of any request; 0 without memory. */
uint32_t cw_tracker_insert_idle(const struct cw_request *request, uint32_t site, uint64_t now_ns);

/* The program no longer has this block, which the caller owns and has not changed yet: tells those
 * who have marked it. is_freed: by a free, not with its context. */
static inline void cw_tracker_gone(uint32_t index, const struct cw_live_block *block, int is_freed)
{
    uint32_t guards = atomic_load_explicit(&cw_guards, memory_order_acquire);

    cw_regrowth_gone(index, block, is_freed);
    if (CW_UNLIKELY((guards & CW_GUARD_BUDGET) != 0))
        cw_budget_gone(index, guards);
}

/* Undoes a claim that got another block than the intended one. */
CW_COLD void cw_tracker_unclaim(struct cw_live_block *block);

/* Makes the caller the owner of the live block with this key; 0: it is not live, or no longer has
 * this key. The owner either retires it, or removes it from the index and finishes it. */
static CW_INLINE int cw_tracker_claim(struct cw_live_block *block, uint32_t index,
                                      enum cw_space space, uint64_t key)
{
    uint32_t live = CW_BLOCK_LIVE;

    if (CW_UNLIKELY(!atomic_compare_exchange_strong_explicit(
            &block->state, &live, CW_BLOCK_LEAVING, memory_order_acquire, memory_order_relaxed)))
        return 0;
    if (CW_LIKELY(atomic_load_explicit(&block->key, memory_order_relaxed) == key &&
                  atomic_load_explicit(&block->space, memory_order_relaxed) == space)) {
        cw_tracker_show_state(block, CW_BLOCK_LEAVING);
        cw_trace_gone(index, key);
        return 1;
    }
    cw_tracker_unclaim(block);
    return 0;
}

/* Marks a claimed block idle; all sums have been updated. */
static inline void cw_tracker_rest(struct cw_live_block *block, uint32_t freeing_site,
                                   uint64_t now_ns)
{
    atomic_store_explicit(&block->maps, freeing_site, memory_order_relaxed);
    atomic_store_explicit(&block->born_ns, now_ns, memory_order_relaxed);
    cw_tracker_show(block, NULL, CW_BLOCK_IDLE);
    atomic_store_explicit(&block->state, CW_BLOCK_IDLE, memory_order_release);
}

/* An idle block that the caller has taken from the pool serves a new request. Updates all but the
 * device's sums and the trace. */
static CW_INLINE void cw_tracker_renew(struct cw_live_block *block, uint32_t index, uint32_t site,
                                       uint64_t bytes, uint64_t now_ns)
{
    const struct cw_live_owner *owner = cw_owner_new(index);

    /* None of it is seen before the new id (cw_api_block_read; tests/litmus/block-read). */
    atomic_store_explicit(&block->bytes, bytes, memory_order_release);
    atomic_store_explicit(&block->born_ns, now_ns, memory_order_release);
    atomic_store_explicit(&block->site, site, memory_order_release);
    block->tid = cw_thread_tid();
    atomic_store_explicit(&block->refs,
                          atomic_load_explicit(&block->refs, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    cw_tracker_show(block, owner, CW_BLOCK_LIVE);
    atomic_store_explicit(&block->state, CW_BLOCK_LIVE, memory_order_release);
    cw_site_add(cw_site_at(site), bytes, atomic_load_explicit(&block->held, memory_order_relaxed),
                now_ns);
}

/* All of it. */
void cw_tracker_reuse(uint32_t block, uint32_t site, uint64_t bytes, uint64_t now_ns);

/* Releases an idle block: marked before the driver is asked, so that a second free is refused until
 * the memory is gone, and removed from the index afterwards. 0: the address belongs to a newer
 * block, so the memory is gone already and the driver must not be asked. */
int cw_tracker_take_idle(uint32_t block);
void cw_tracker_finish_idle(uint32_t block);

/* Changes the size of a live block: only a mapping tells the size of an imported handle, and only
 * its pointer that of a graphics resource. */
void cw_tracker_resize(uint32_t block, uint64_t bytes);

/*
 * Takes every block that went with the context, once the driver has confirmed its end. Returns a
 * list for cw_tracker_finish_list; 0: none.
 */
uint32_t cw_tracker_take_context(uint32_t context);
void cw_tracker_finish_list(uint32_t list, enum cw_free_result result);

/* The calling thread ends: returns its stash of free records. */
void cw_tracker_thread_ends(void);

#endif
