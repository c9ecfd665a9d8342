/* SPDX-License-Identifier: MIT */
/* Live blocks, site counters, device sums and peaks. See tracker.h. */
#include "core/account/tracker.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/account/audit.h"
#include "core/account/budget.h"
#include "core/account/debug_log.h"
#include "core/account/freed.h"
#include "core/account/index.h"
#include "core/account/owner.h"
#include "core/account/regrowth.h"
#include "core/account/site.h"
#include "core/account/site_count.h"
#include "core/account/usage.h"
#include "core/process/thread.h"
#include "core/account/trace.h"
#include "core/account/tag_count.h"

CW_HOT_DATA struct cw_arena *cw_tracker_arena;
static struct cw_lock free_lock = CW_LOCK_INIT(CW_RANK_INDEX);
static uint32_t arenas;    /* so far: a forked child has one of its own */
static uint32_t free_list; /* guarded by free_lock; linked through `link` */

void cw_tracker_init(struct cw_arena *in)
{
    cw_tracker_arena = in;
    arenas++;
    cw_owner_init(in);
    cw_site_count_init(in);
}

void cw_tracker_reset(void)
{
    cw_lock_reset(&free_lock);
    free_list = 0;
    cw_owner_reset();
}

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Of a record that the caller owns. */
static void set_state(struct cw_live_block *block, enum cw_block_state state)
{
    cw_tracker_show_state(block, state);
    atomic_store_explicit(&block->state, state, memory_order_release);
}

/* ---- free records ---- */

/* The spare records of a parent's thread are not in the forked child's arena. */
static void check_spares(void)
{
    if (CW_UNLIKELY(cw_thread.epoch != arenas)) {
        cw_thread.epoch = arenas;
        cw_thread.spares = 0;
    }
}

static void refill_spares(void)
{
    cw_lock_acquire(&free_lock);
    while (free_list != 0 && cw_thread.spares < (cw_thread.ended ? 1 : CW_SPARE_BLOCKS / 2)) {
        cw_thread.spare[cw_thread.spares++] = free_list;
        free_list = cw_tracker_at(free_list)->link;
    }
    cw_lock_release(&free_lock);
}

/* Down to `keep` records. */
static void spill_spares(uint32_t keep)
{
    cw_lock_acquire(&free_lock);
    while (cw_thread.spares > keep) {
        uint32_t block = cw_thread.spare[--cw_thread.spares];

        cw_tracker_at(block)->link = free_list;
        free_list = block;
    }
    cw_lock_release(&free_lock);
}

/* Threads that allocate beside each other write to the owners of their own records alone. */
static void append_records(void)
{
    uint32_t group = cw_thread.ended ? 1 : CW_OWNERS_APART, count;
    uint32_t block = cw_arena_append_group(cw_tracker_arena, CW_TABLE_BLOCK, group, &count);

    if (block == 0 || cw_owner_make(block + count - 1) != 0)
        return;
    while (count-- > 0)
        cw_thread.spare[cw_thread.spares++] = block + count;
}

uint32_t cw_tracker_next_record(void)
{
    check_spares();
    if (cw_thread.spares == 0)
        refill_spares();
    if (cw_thread.spares == 0)
        append_records();
    return cw_thread.spares != 0 ? cw_thread.spare[cw_thread.spares - 1] : 0;
}

static uint32_t acquire_record(void)
{
    uint32_t block = cw_tracker_next_record();

    cw_thread.spares -= block != 0;
    return block;
}

static void release_record(uint32_t block)
{
    check_spares();
    set_state(cw_tracker_at(block), CW_BLOCK_FREE);
    if (cw_thread.spares == CW_SPARE_BLOCKS)
        spill_spares(CW_SPARE_BLOCKS / 2);
    cw_thread.spare[cw_thread.spares++] = block;
    if (CW_UNLIKELY(cw_thread.ended))
        spill_spares(0);
}

void cw_tracker_thread_ends(void)
{
    if (cw_tracker_arena == NULL || cw_tracker_arena->header == NULL)
        return;
    check_spares();
    spill_spares(0);
}

/* ---- sums ---- */

static void commit(const struct cw_request *request, uint64_t now_ns)
{
    if (request->reserved > request->held)
        cw_usage_sub(request->device, 0, request->reserved - request->held);
    cw_usage_committed(request->device, now_ns);
}

/* ---- blocks ---- */

/* The state of a record that still has this key, if it has an owner: whose key the driver gave out
 * again may have been finished since, and be another block's. CW_BLOCK_FREE: it has none. */
static uint32_t state_of(const struct cw_live_block *block, enum cw_space space, uint64_t key)
{
    uint32_t state = atomic_load_explicit(&block->state, memory_order_acquire);

    return (state == CW_BLOCK_LIVE || state == CW_BLOCK_IDLE) && load(&block->key) == key &&
                   atomic_load_explicit(&block->space, memory_order_relaxed) == space
               ? state
               : CW_BLOCK_FREE;
}

/* Closes a record whose key the driver gave out again: its memory went with its context, which is
 * just ending, or was freed unseen. */
static void close_stale(uint32_t index, const struct cw_request *request)
{
    struct cw_live_block *block = cw_tracker_at(index);
    const struct cw_live_context *context;
    uint32_t state;

    do {
        state = state_of(block, request->space, request->key);
        if (state == CW_BLOCK_FREE) /* who is freeing it finishes it */
            return;
    } while (!atomic_compare_exchange_strong(&block->state, &state, CW_BLOCK_LEAVING));
    cw_tracker_show_state(block, CW_BLOCK_LEAVING);
    if (state == CW_BLOCK_IDLE) /* it lies in a list of the pool, which finds out */
        return;
    context =
        block->context ? cw_arena_at(cw_tracker_arena, CW_TABLE_CONTEXT, block->context) : NULL;
    cw_trace_gone(index, request->key);
    cw_tracker_finish(index, context != NULL && atomic_load(&context->state) != CW_CONTEXT_LIVE
                                 ? CW_FREE_RECLAIMED
                                 : CW_FREE_DONE);
}

static void fill(struct cw_live_block *block, const struct cw_live_owner *owner,
                 const struct cw_request *request, uint32_t site, uint64_t now_ns,
                 enum cw_block_state state)
{
    atomic_thread_fence(memory_order_release); /* none of it is seen before the new id */
    atomic_store_explicit(&block->key, request->key, memory_order_relaxed);
    atomic_store_explicit(&block->bytes, request->bytes, memory_order_relaxed);
    atomic_store_explicit(&block->held, request->held, memory_order_relaxed);
    atomic_store_explicit(&block->born_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&block->site, site, memory_order_release);
    atomic_store_explicit(&block->context, request->context, memory_order_relaxed);
    block->tid = cw_thread_tid();
    atomic_store_explicit(&block->space, (uint8_t)request->space, memory_order_relaxed);
    atomic_store_explicit(&block->flags, request->flags, memory_order_relaxed);
    block->class = request->class;
    block->cell = cw_size_bin(request->held);
    atomic_store_explicit(&block->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&block->maps, 0, memory_order_relaxed);
    atomic_store_explicit(&block->link, 0, memory_order_relaxed);
    cw_tracker_show(block, owner, state);
    atomic_store_explicit(&block->state, state, memory_order_release);
}

/* No memory for a record: nobody would release the block's excess later. */
static void lose(const struct cw_request *request)
{
    add(&cw_tracker_arena->header->lost_blocks, 1);
    if ((request->flags & CW_BLOCK_POOLED) != 0 && request->class < CW_POOL_HOST)
        cw_usage_give_excess(request->device, cw_size_excess(request->held, request->bytes));
}

uint32_t cw_tracker_insert(const struct cw_request *request, uint32_t site_index, uint64_t now_ns)
{
    uint32_t block = site_index ? acquire_record() : 0;
    uint32_t stale = 0;

    if (CW_UNLIKELY(block == 0)) {
        lose(request);
        return 0;
    }
    fill(cw_tracker_at(block), cw_owner_new(block), request, site_index, now_ns, CW_BLOCK_LIVE);
    if (request->space != CW_SPACE_HANDLE &&
        cw_index_insert(request->space, request->key, block, &stale) != 0) {
        cw_budget_unexpect(block);
        release_record(block);
        lose(request);
        return 0;
    }
    /* Closes the key's old owner first: the two never held the memory at the same time. */
    if (CW_UNLIKELY(stale != 0))
        close_stale(stale, request);
    cw_tag_count_granted(cw_site_at(site_index), request);
    cw_site_count_in(cw_site_at(site_index), request->bytes, request->held,
                     request->held > request->reserved ? request->held - request->reserved : 0,
                     now_ns);
    if (request->reserved != 0)
        commit(request, now_ns);
    if (cw_tracker_has_pages(cw_tracker_at(block)))
        cw_usage_take_padding(request->device, cw_tracker_padding(cw_tracker_at(block)));
    if (CW_UNLIKELY(cw_budget_is_on()))
        cw_budget_count(block);
    cw_audit_taken(cw_tracker_at(block));
    if (cw_kind_counted(request->kind) != CW_COUNTED_NONE)
        cw_trace_taken(block, request->key, request->bytes, request->device);
    cw_debug_log_taken(cw_tracker_at(block));
    return block;
}

void cw_tracker_fail(uint32_t site_index, int is_oom)
{
    if (site_index == 0)
        return;
    add(&cw_site_at(site_index)->failed, 1);
    if (is_oom)
        add(&cw_site_at(site_index)->oom, 1);
}

static int is_around(const struct cw_live_block *block, uint64_t address)
{
    uint32_t state = atomic_load_explicit(&block->state, memory_order_acquire);
    uint64_t key = load(&block->key);

    return (state == CW_BLOCK_LIVE || state == CW_BLOCK_IDLE) &&
           atomic_load_explicit(&block->space, memory_order_relaxed) == CW_SPACE_ADDRESS &&
           key < address && address - key < load(&block->bytes);
}

uint32_t cw_tracker_find_around(uint64_t address)
{
    uint32_t count = cw_arena_count(cw_tracker_arena, CW_TABLE_BLOCK);

    for (uint32_t i = 1; i < count; i++)
        if (is_around(cw_tracker_at(i), address))
            return i;
    return 0;
}

uint32_t cw_tracker_take(enum cw_space space, uint64_t key)
{
    uint32_t block = cw_index_remove(space, key);

    if (block != 0)
        cw_tracker_take_block(block);
    return block;
}

uint32_t cw_tracker_take_onto(uint32_t list, enum cw_space space, uint64_t key)
{
    uint32_t block = cw_tracker_take(space, key);

    if (block == 0)
        return list;
    atomic_store_explicit(&cw_tracker_at(block)->link, list, memory_order_relaxed);
    return block;
}

void cw_tracker_take_block(uint32_t block)
{
    cw_trace_gone(block, load(&cw_tracker_at(block)->key));
    set_state(cw_tracker_at(block), CW_BLOCK_LEAVING);
}

static int is_context_dead(uint32_t context)
{
    const struct cw_live_context *record;

    if (context == 0)
        return 0;
    record = cw_arena_at(cw_tracker_arena, CW_TABLE_CONTEXT, context);
    return atomic_load(&record->state) == CW_CONTEXT_DEAD;
}

/* 1 if the block lives on under its key. Not if the key has a new owner, or the context has ended
 * while the free was inside the driver. */
static int put_back(uint32_t index)
{
    struct cw_live_block *block = cw_tracker_at(index);

    if (is_context_dead(block->context))
        return 0;
    set_state(block, CW_BLOCK_LIVE);
    return block->space == CW_SPACE_HANDLE ||
           cw_index_restore(block->space, load(&block->key), index) == 0;
}

/* A free that comes after it is to find why. */
static CW_COLD void remember_end(const struct cw_live_block *block)
{
    if (block->space == CW_SPACE_ADDRESS)
        cw_freed_remember_ended(load(&block->key),
                                atomic_load_explicit(&block->site, memory_order_relaxed));
}

void cw_tracker_finish(uint32_t index, enum cw_free_result result)
{
    struct cw_live_block *block = cw_tracker_at(index);
    struct cw_live_site *site =
        cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed));
    uint64_t bytes = load(&block->bytes);

    if (result != CW_FREE_DONE && result != CW_FREE_RECLAIMED) {
        if (put_back(index)) {
            if (cw_kind_counted(cw_site_own(site)->kind) != CW_COUNTED_NONE)
                cw_trace_taken(index, load(&block->key), bytes, cw_site_device(site));
            return;
        }
        result = is_context_dead(block->context) ? CW_FREE_RECLAIMED : CW_FREE_DONE;
    }
    cw_usage_give_excess(cw_site_device(site), cw_tracker_excess(block));
    if (cw_tracker_has_pages(block))
        cw_usage_give_padding(cw_site_device(site), cw_tracker_padding(block));
    cw_tracker_gone(index, block, result == CW_FREE_DONE);
    cw_audit_given(block, result == CW_FREE_RECLAIMED);
    if (result == CW_FREE_RECLAIMED) {
        cw_site_count_reclaimed(site, bytes, load(&block->held));
        remember_end(block);
    } else {
        cw_site_count_out(site, bytes, load(&block->held), load(&block->held));
    }
    cw_debug_log_given(block);
    release_record(index);
}

/* ---- blocks of the pool ---- */

uint32_t cw_tracker_insert_idle(const struct cw_request *request, uint32_t site_index,
                                uint64_t now_ns)
{
    uint32_t block = acquire_record(), stale = 0;

    if (block == 0)
        return 0;
    fill(cw_tracker_at(block), NULL, request, site_index, now_ns, CW_BLOCK_IDLE);
    if (cw_index_insert(request->space, request->key, block, &stale) != 0) {
        release_record(block);
        return 0;
    }
    if (stale != 0)
        close_stale(stale, request);
    cw_usage_add(request->device, 0,
                 request->held > request->reserved ? request->held - request->reserved : 0, now_ns);
    if (request->reserved != 0)
        commit(request, now_ns);
    cw_usage_take_padding(request->device, cw_tracker_padding(cw_tracker_at(block)));
    cw_audit_taken(cw_tracker_at(block));
    cw_debug_log_taken(cw_tracker_at(block));
    return block;
}

/* The record changed hands between the look into the index and the claim. */
void cw_tracker_unclaim(struct cw_live_block *block)
{
    uint32_t leaving = CW_BLOCK_LEAVING;

    atomic_compare_exchange_strong(&block->state, &leaving, CW_BLOCK_LIVE);
}

void cw_tracker_reuse(uint32_t index, uint32_t site_index, uint64_t bytes, uint64_t now_ns)
{
    const struct cw_live_site *site = cw_site_at(site_index);

    cw_tracker_renew(cw_tracker_at(index), index, site_index, bytes, now_ns);
    cw_usage_add(cw_site_device(site), bytes, 0, now_ns);
    cw_trace_taken(index, load(&cw_tracker_at(index)->key), bytes, cw_site_device(site));
}

int cw_tracker_take_idle(uint32_t index)
{
    struct cw_live_block *block = cw_tracker_at(index);

    set_state(block, CW_BLOCK_LEAVING);
    return cw_index_find(block->space, load(&block->key)) == index;
}

void cw_tracker_finish_idle(uint32_t index)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    const struct cw_live_site *site =
        cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed));

    cw_audit_given(block, !cw_index_remove_block(block->space, load(&block->key), index));
    cw_usage_sub(cw_site_device(site), 0, load(&block->held));
    cw_usage_give_padding(cw_site_device(site), cw_tracker_padding(block));
    cw_debug_log_given(block);
    release_record(index);
}

uint32_t cw_tracker_join(uint32_t list, uint32_t more)
{
    while (more != 0) {
        uint32_t next = cw_tracker_next(more);

        atomic_store_explicit(&cw_tracker_at(more)->link, list, memory_order_relaxed);
        list = more;
        more = next;
    }
    return list;
}

void cw_tracker_resize(uint32_t index, uint64_t bytes)
{
    struct cw_live_block *block = cw_tracker_at(index);
    struct cw_live_site *site =
        cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed));
    uint64_t growth = bytes - load(&block->bytes);
    uint64_t extra = load(&block->held) - load(&block->bytes);

    cw_site_save_at_peak(site);
    atomic_store_explicit(&block->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&block->held, bytes, memory_order_relaxed);
    cw_tracker_show(block, NULL, atomic_load_explicit(&block->state, memory_order_relaxed));
    /* Not called by the owner: bytes added count as fewer bytes freed. */
    add(&site->far_bytes, -growth);
    add(&site->far_extra, extra);
    cw_site_raise_peaks(site);
    if (cw_site_counted_on(site) == CW_DEVICES)
        return;
    /* In two steps: each of the sums may grow or shrink. */
    cw_usage_sub(cw_site_device(site), bytes - growth, bytes - growth + extra);
    cw_usage_add(cw_site_device(site), bytes, bytes, load(&site->last_ns));
}

static int is_pooled(const struct cw_live_block *block)
{
    return (atomic_load_explicit(&block->flags, memory_order_relaxed) & CW_BLOCK_POOLED) != 0;
}

/* A block of the pool belongs to the thread that claims it. */
static int take_pooled(uint32_t index, uint32_t context)
{
    struct cw_live_block *block = cw_tracker_at(index);
    uint32_t live = CW_BLOCK_LIVE;

    if (!atomic_compare_exchange_strong(&block->state, &live, CW_BLOCK_LEAVING))
        return 0;
    /* Freed and taken by another owner between the look and the claim. */
    if (block->context != context || !is_pooled(block)) {
        atomic_store_explicit(&block->state, CW_BLOCK_LIVE, memory_order_release);
        return 0;
    }
    cw_tracker_show_state(block, CW_BLOCK_LEAVING);
    cw_index_remove_block(block->space, load(&block->key), index);
    cw_trace_gone(index, load(&block->key));
    return 1;
}

/* Any other belongs to the thread that removes it from the index. */
static int take_unpooled(uint32_t index, uint32_t context)
{
    struct cw_live_block *block = cw_tracker_at(index);

    if (!cw_index_remove_block(block->space, load(&block->key), index))
        return 0;
    if (block->context != context) {
        cw_index_restore(block->space, load(&block->key), index);
        return 0;
    }
    cw_tracker_take_block(index);
    return 1;
}

uint32_t cw_tracker_take_context(uint32_t context)
{
    uint32_t count = cw_arena_count(cw_tracker_arena, CW_TABLE_BLOCK);
    uint32_t list = 0;

    for (uint32_t i = 1; i < count; i++) {
        struct cw_live_block *block = cw_tracker_at(i);

        if (block->context != context ||
            atomic_load_explicit(&block->state, memory_order_acquire) != CW_BLOCK_LIVE ||
            !(is_pooled(block) ? take_pooled(i, context) : take_unpooled(i, context)))
            continue;
        atomic_store_explicit(&block->link, list, memory_order_relaxed);
        list = i;
    }
    return list;
}

void cw_tracker_finish_list(uint32_t list, enum cw_free_result result)
{
    while (list != 0) {
        uint32_t next = cw_tracker_at(list)->link;

        cw_tracker_finish(list, result);
        list = next;
    }
}
