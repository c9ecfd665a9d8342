/* SPDX-License-Identifier: MIT */
/* Handles in a map, mappings in an array sorted by address. See vmm.h. */
#include "core/device/vmm.h"

#include <string.h>

#include "base/lock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/account/tracker.h"

struct entry {
    struct cw_map_entry map; /* by handle */
    uint32_t block;
    uint32_t refs; /* of this handle; the block's refs are the sum over its handles */
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_VMM); /* guards everything below */
static struct cw_map handles;
static struct cw_vmm_mapping *mappings; /* sorted by addr, disjoint */
static uint32_t mapping_count, mapping_capacity;

void cw_vmm_reset(void)
{
    cw_lock_reset(&lock);
    handles = (struct cw_map){0};
    mappings = NULL;
    mapping_count = mapping_capacity = 0;
}

static struct entry *find_locked(uint64_t handle)
{
    return (struct entry *)cw_map_find(&handles, handle);
}

static void add_locked(uint64_t handle, uint32_t block)
{
    struct entry *entry = cw_mem_alloc(sizeof(*entry));

    if (entry == NULL)
        return;
    entry->block = block;
    entry->refs = 1;
    if (cw_map_insert(&handles, &entry->map, handle) != 0)
        cw_mem_free(entry, sizeof(*entry));
}

static void drop_locked(struct entry *entry)
{
    cw_map_remove(&handles, &entry->map);
    cw_mem_free(entry, sizeof(*entry));
}

/* The block's memory is gone when nothing refers to it any more. */
static void settle_locked(uint32_t index)
{
    const struct cw_live_block *block = cw_tracker_at(index);

    if (block->refs != 0 || block->maps != 0)
        return;
    cw_tracker_take_block(index);
    cw_tracker_finish(index, CW_FREE_DONE);
}

/* The driver reused the number: its references ended unseen. */
static void drop_stale_locked(struct entry *entry)
{
    cw_tracker_at(entry->block)->refs -= entry->refs;
    settle_locked(entry->block);
    drop_locked(entry);
}

void cw_vmm_insert(uint64_t handle, uint32_t block)
{
    struct entry *stale;

    if (block == 0)
        return;
    cw_lock_acquire(&lock);
    stale = find_locked(handle);
    if (stale != NULL)
        drop_stale_locked(stale);
    add_locked(handle, block);
    cw_lock_release(&lock);
}

/* Index of the first mapping that ends above addr. */
static uint32_t lower_bound_locked(uint64_t addr)
{
    uint32_t low = 0, high = mapping_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (mappings[middle].addr + mappings[middle].size <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t cw_vmm_block_at(uint64_t addr)
{
    uint32_t at, block = 0;

    cw_lock_acquire(&lock);
    at = lower_bound_locked(addr);
    if (at < mapping_count && mappings[at].addr <= addr)
        block = mappings[at].block;
    cw_lock_release(&lock);
    return block;
}

void cw_vmm_retain(uint64_t handle, uint64_t addr)
{
    struct entry *entry;
    uint32_t at;

    cw_lock_acquire(&lock);
    at = lower_bound_locked(addr);
    if (at < mapping_count && mappings[at].addr <= addr) {
        cw_tracker_at(mappings[at].block)->refs++;
        entry = find_locked(handle);
        if (entry != NULL && entry->block != mappings[at].block) {
            drop_stale_locked(entry);
            entry = NULL;
        }
        if (entry != NULL)
            entry->refs++;
        else
            add_locked(handle, mappings[at].block);
    }
    cw_lock_release(&lock);
}

void cw_vmm_export(uint64_t handle)
{
    const struct entry *entry;

    cw_lock_acquire(&lock);
    entry = find_locked(handle);
    if (entry != NULL)
        cw_tracker_at(entry->block)->flags |= CW_BLOCK_EXPORTED;
    cw_lock_release(&lock);
}

void cw_vmm_release_begin(uint64_t handle, struct cw_vmm_release *out)
{
    struct entry *entry;

    *out = (struct cw_vmm_release){.handle = handle};
    cw_lock_acquire(&lock);
    entry = find_locked(handle);
    if (entry != NULL) {
        out->block = entry->block;
        if (--entry->refs == 0)
            drop_locked(entry);
    }
    cw_lock_release(&lock);
}

int cw_vmm_release_finish(const struct cw_vmm_release *release, int released)
{
    struct entry *entry;

    if (release->block == 0)
        return 0;
    cw_lock_acquire(&lock);
    if (released) {
        cw_tracker_at(release->block)->refs--;
        settle_locked(release->block);
    } else {
        entry = find_locked(release->handle);
        if (entry != NULL)
            entry->refs++;
        else
            add_locked(release->handle, release->block);
    }
    cw_lock_release(&lock);
    return 1;
}

static int insert_mapping_locked(const struct cw_vmm_mapping *mapping)
{
    uint32_t at = lower_bound_locked(mapping->addr);

    if (mapping_count == mapping_capacity) {
        uint32_t capacity = mapping_capacity ? mapping_capacity * 2 : 64;
        struct cw_vmm_mapping *bigger = cw_mem_alloc(capacity * sizeof(*bigger));

        if (bigger == NULL)
            return -1;
        if (mappings != NULL) {
            memcpy(bigger, mappings, mapping_count * sizeof(*bigger));
            cw_mem_free(mappings, mapping_capacity * sizeof(*mappings));
        }
        mappings = bigger;
        mapping_capacity = capacity;
    }
    memmove(&mappings[at + 1], &mappings[at], (mapping_count - at) * sizeof(*mappings));
    mappings[at] = *mapping;
    mapping_count++;
    return 0;
}

void cw_vmm_map(uint64_t addr, uint64_t size, uint64_t offset, uint64_t handle)
{
    const struct entry *entry;

    cw_lock_acquire(&lock);
    entry = find_locked(handle);
    if (entry != NULL) {
        struct cw_live_block *block = cw_tracker_at(entry->block);
        struct cw_vmm_mapping mapping = {.addr = addr, .size = size, .block = entry->block};

        if (insert_mapping_locked(&mapping) == 0)
            block->maps++;
        /* An imported handle does not tell its size; its mappings do. */
        if (block->bytes < offset + size)
            cw_tracker_resize(entry->block, offset + size);
    }
    cw_lock_release(&lock);
}

void cw_vmm_unmap_begin(uint64_t addr, uint64_t size, struct cw_vmm_unmap *out)
{
    uint32_t from, to;

    *out = (struct cw_vmm_unmap){0};
    cw_lock_acquire(&lock);
    from = lower_bound_locked(addr);
    for (to = from; to < mapping_count && mappings[to].addr < addr + size; to++)
        ;
    if (to > from)
        out->mappings = cw_mem_alloc((to - from) * sizeof(*mappings));
    if (out->mappings != NULL) {
        out->count = to - from;
        memcpy(out->mappings, &mappings[from], out->count * sizeof(*mappings));
        memmove(&mappings[from], &mappings[to], (mapping_count - to) * sizeof(*mappings));
        mapping_count -= out->count;
    }
    cw_lock_release(&lock);
}

void cw_vmm_unmap_finish(struct cw_vmm_unmap *unmap, int unmapped)
{
    cw_lock_acquire(&lock);
    for (uint32_t i = 0; i < unmap->count; i++) {
        if (!unmapped) {
            insert_mapping_locked(&unmap->mappings[i]);
            continue;
        }
        cw_tracker_at(unmap->mappings[i].block)->maps--;
        settle_locked(unmap->mappings[i].block);
    }
    cw_lock_release(&lock);
    if (unmap->mappings != NULL)
        cw_mem_free(unmap->mappings, unmap->count * sizeof(*unmap->mappings));
}
