/* SPDX-License-Identifier: MIT */
/* Live blocks, site counters, device sums and peaks. See tracker.h. */
#include "core/tracker.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/index.h"
#include "core/site.h"
#include "core/thread.h"

static struct cw_arena *arena;
static struct cw_lock free_lock = CW_LOCK_INIT(CW_RANK_INDEX);
static uint32_t free_list; /* guarded by free_lock; linked through `link` */

void cw_tracker_init(struct cw_arena *in)
{
    arena = in;
}

void cw_tracker_reset(void)
{
    cw_lock_reset(&free_lock);
    free_list = 0;
}

struct cw_live_block *cw_tracker_at(uint32_t block)
{
    return cw_arena_at(arena, CW_TABLE_BLOCK, block);
}

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t seen = load(peak);

    while (seen < value &&
           !atomic_compare_exchange_weak_explicit(peak, &seen, value, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

/* ---- free records ------------------------------------------------------------------------------ */

/* The spare records of a parent's thread do not belong to the forked child's arena. */
static void check_spares(void)
{
    uint32_t epoch = arena->header->pid;

    if (CW_UNLIKELY(cw_thread.epoch != epoch)) {
        cw_thread.epoch = epoch;
        cw_thread.spares = 0;
    }
}

static void refill_spares(void)
{
    cw_lock_acquire(&free_lock);
    while (free_list != 0 && cw_thread.spares < CW_SPARE_BLOCKS / 2) {
        cw_thread.spare[cw_thread.spares++] = free_list;
        free_list = cw_tracker_at(free_list)->link;
    }
    cw_lock_release(&free_lock);
}

static void spill_spares(void)
{
    cw_lock_acquire(&free_lock);
    while (cw_thread.spares > CW_SPARE_BLOCKS / 2) {
        uint32_t block = cw_thread.spare[--cw_thread.spares];

        cw_tracker_at(block)->link = free_list;
        free_list = block;
    }
    cw_lock_release(&free_lock);
}

static uint32_t acquire_record(void)
{
    check_spares();
    if (cw_thread.spares == 0)
        refill_spares();
    if (cw_thread.spares == 0)
        return cw_arena_append(arena, CW_TABLE_BLOCK);
    return cw_thread.spare[--cw_thread.spares];
}

static void release_record(uint32_t block)
{
    check_spares();
    atomic_store_explicit(&cw_tracker_at(block)->state, CW_BLOCK_FREE, memory_order_release);
    if (cw_thread.spares == CW_SPARE_BLOCKS)
        spill_spares();
    cw_thread.spare[cw_thread.spares++] = block;
}

/* ---- sums -------------------------------------------------------------------------------------- */

static struct cw_live_device *device_of(const struct cw_live_site *site)
{
    return &arena->header->device[site->device < CW_DEVICES ? site->device : 0];
}

/* Before a site changes for the first time since its device's last peak, keep what it held then. */
static void save_at_peak(struct cw_live_site *site, const struct cw_live_device *device)
{
    uint64_t version = load(&device->peak_version);

    if (load(&site->at_peak_version) == version)
        return;
    atomic_store_explicit(&site->at_peak_blocks, load(&site->live_blocks), memory_order_relaxed);
    atomic_store_explicit(&site->at_peak_bytes, load(&site->live_bytes), memory_order_relaxed);
    atomic_store_explicit(&site->at_peak_version, version, memory_order_release);
}

static void count_peaks(struct cw_live_device *device, uint64_t device_live, uint64_t total_live,
                        uint64_t now_ns)
{
    struct cw_live_header *header = arena->header;

    if (device_live > load(&device->peak_bytes)) {
        raise_to(&device->peak_bytes, device_live);
        atomic_store_explicit(&device->peak_ns, now_ns, memory_order_relaxed);
        add(&device->peak_version, 1);
    }
    if (total_live > load(&header->peak_bytes)) {
        raise_to(&header->peak_bytes, total_live);
        atomic_store_explicit(&header->peak_ns, now_ns, memory_order_relaxed);
    }
}

static void count_in(struct cw_live_site *site, uint64_t bytes, uint64_t held, uint64_t now_ns)
{
    struct cw_live_device *device = device_of(site);
    uint64_t site_blocks, site_bytes, device_live, total_live;

    save_at_peak(site, device);
    site_blocks = atomic_fetch_add_explicit(&site->live_blocks, 1, memory_order_relaxed) + 1;
    site_bytes = atomic_fetch_add_explicit(&site->live_bytes, bytes, memory_order_relaxed) + bytes;
    add(&site->live_held, held);
    raise_to(&site->peak_blocks, site_blocks);
    raise_to(&site->peak_bytes, site_bytes);
    if (cw_kind_counted(site->kind) == CW_COUNTED_NONE)
        return;
    add(&device->live_held, held);
    device_live = atomic_fetch_add_explicit(&device->live_bytes, bytes, memory_order_relaxed) + bytes;
    total_live =
        atomic_fetch_add_explicit(&arena->header->live_bytes, bytes, memory_order_relaxed) + bytes;
    count_peaks(device, device_live, total_live, now_ns);
}

static void count_out(struct cw_live_site *site, uint64_t bytes, uint64_t held)
{
    struct cw_live_device *device = device_of(site);

    save_at_peak(site, device);
    add(&site->live_blocks, (uint64_t)-1);
    add(&site->live_bytes, -bytes);
    add(&site->live_held, -held);
    if (cw_kind_counted(site->kind) == CW_COUNTED_NONE)
        return;
    add(&device->live_held, -held);
    add(&device->live_bytes, -bytes);
    add(&arena->header->live_bytes, -bytes);
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* A record whose key the driver gave out again: its memory went in a way that we did not see. */
static void close_stale(uint32_t block)
{
    atomic_store_explicit(&cw_tracker_at(block)->state, CW_BLOCK_LEAVING, memory_order_relaxed);
    cw_tracker_finish(block, CW_FREE_DONE);
}

static void fill(struct cw_live_block *block, const struct cw_request *request, uint32_t site,
                 uint64_t now_ns)
{
    atomic_store_explicit(&block->key, request->key, memory_order_relaxed);
    atomic_store_explicit(&block->bytes, request->bytes, memory_order_relaxed);
    atomic_store_explicit(&block->held, request->held, memory_order_relaxed);
    atomic_store_explicit(&block->born_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&block->site, site, memory_order_relaxed);
    block->context = request->context;
    block->tid = cw_thread_tid();
    block->space = (uint8_t)request->space;
    block->flags = request->flags;
    block->refs = 1;
    block->maps = 0;
    block->link = 0;
    atomic_store_explicit(&block->state, CW_BLOCK_LIVE, memory_order_release);
}

static void stamp(struct cw_live_site *site, uint64_t bytes, uint64_t now_ns)
{
    if (CW_UNLIKELY(load(&site->first_ns) == 0))
        atomic_store_explicit(&site->first_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&site->last_ns, now_ns, memory_order_relaxed);
    add(&site->allocs, 1);
    add(&site->total_bytes, bytes);
}

uint32_t cw_tracker_insert(const struct cw_request *request, uint32_t site_index, uint64_t now_ns)
{
    uint32_t block = site_index ? acquire_record() : 0;
    uint32_t stale = 0;

    if (CW_UNLIKELY(block == 0)) {
        add(&arena->header->lost_blocks, 1);
        return 0;
    }
    fill(cw_tracker_at(block), request, site_index, now_ns);
    stamp(cw_site_at(site_index), request->bytes, now_ns);
    count_in(cw_site_at(site_index), request->bytes, request->held, now_ns);
    if (request->space == CW_SPACE_HANDLE)
        return block;
    if (cw_index_insert(request->space, request->key, block, &stale) != 0) {
        cw_tracker_finish(block, CW_FREE_DONE);
        add(&arena->header->lost_blocks, 1);
        return 0;
    }
    if (CW_UNLIKELY(stale != 0))
        close_stale(stale);
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

uint32_t cw_tracker_find(enum cw_space space, uint64_t key)
{
    return cw_index_find(space, key);
}

uint32_t cw_tracker_take(enum cw_space space, uint64_t key)
{
    uint32_t block = cw_index_remove(space, key);

    if (block != 0)
        atomic_store_explicit(&cw_tracker_at(block)->state, CW_BLOCK_LEAVING, memory_order_relaxed);
    return block;
}

void cw_tracker_take_block(uint32_t block)
{
    atomic_store_explicit(&cw_tracker_at(block)->state, CW_BLOCK_LEAVING, memory_order_relaxed);
}

static void put_back(uint32_t index)
{
    struct cw_live_block *block = cw_tracker_at(index);
    uint32_t stale = 0;

    atomic_store_explicit(&block->state, CW_BLOCK_LIVE, memory_order_relaxed);
    if (block->space == CW_SPACE_HANDLE)
        return;
    cw_index_insert(block->space, load(&block->key), index, &stale);
    if (stale != 0)
        close_stale(stale);
}

void cw_tracker_finish(uint32_t index, enum cw_free_result result)
{
    struct cw_live_block *block = cw_tracker_at(index);
    struct cw_live_site *site = cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed));
    uint64_t bytes = load(&block->bytes);

    if (result == CW_FREE_REFUSED) {
        put_back(index);
        return;
    }
    if (result == CW_FREE_RECLAIMED) {
        add(&site->reclaimed, 1);
        add(&site->reclaimed_bytes, bytes);
    } else {
        add(&site->frees, 1);
    }
    count_out(site, bytes, load(&block->held));
    release_record(index);
}

void cw_tracker_resize(uint32_t index, uint64_t bytes)
{
    struct cw_live_block *block = cw_tracker_at(index);
    struct cw_live_site *site = cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed));
    uint64_t now_ns = load(&site->last_ns);

    count_out(site, load(&block->bytes), load(&block->held));
    atomic_store_explicit(&block->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&block->held, bytes, memory_order_relaxed);
    count_in(site, bytes, bytes, now_ns);
}

uint32_t cw_tracker_take_context(uint32_t context)
{
    uint32_t count = atomic_load_explicit(&arena->header->table[CW_TABLE_BLOCK].count,
                                          memory_order_acquire);
    uint32_t list = 0;

    for (uint32_t i = 1; i < count; i++) {
        struct cw_live_block *block = cw_tracker_at(i);

        if (atomic_load_explicit(&block->state, memory_order_acquire) != CW_BLOCK_LIVE ||
            block->context != context ||
            !cw_index_remove_block(block->space, load(&block->key), i))
            continue;
        atomic_store_explicit(&block->state, CW_BLOCK_LEAVING, memory_order_relaxed);
        block->link = list;
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

/* ---- self-check -------------------------------------------------------------------------------- */

static int check_sites(uint64_t live[CW_DEVICES])
{
    uint32_t count = atomic_load(&arena->header->table[CW_TABLE_SITE].count);

    memset(live, 0, CW_DEVICES * sizeof(*live));
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_site *site = cw_site_at(i);

        if (load(&site->allocs) !=
            load(&site->frees) + load(&site->reclaimed) + load(&site->live_blocks))
            return -1;
        if (cw_kind_counted(site->kind) != CW_COUNTED_NONE)
            live[site->device] += load(&site->live_bytes);
    }
    return 0;
}

int cw_tracker_check(void)
{
    uint64_t live[CW_DEVICES], blocks = 0, total = 0;
    uint32_t count = atomic_load(&arena->header->table[CW_TABLE_BLOCK].count);

    if (check_sites(live) != 0)
        return -1;
    for (int i = 0; i < CW_DEVICES; i++) {
        if (live[i] != load(&arena->header->device[i].live_bytes))
            return -1;
        total += live[i];
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_block *block = cw_tracker_at(i);

        if (atomic_load(&block->state) == CW_BLOCK_LIVE &&
            cw_kind_counted(cw_site_at(block->site)->kind) != CW_COUNTED_NONE)
            blocks += load(&block->bytes);
    }
    return total == blocks && total == load(&arena->header->live_bytes) ? 0 : -1;
}
