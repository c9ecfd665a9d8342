/* SPDX-License-Identifier: MIT */
/* Blocks that threads keep to themselves. See hoard.h. */
#include "core/hoard.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/realm.h"
#include "core/slot.h"
#include "core/tracker.h"

#define CLASSES    72u /* up to CW_HOARD_LARGEST: 8 + 8 * 8 */
#define SETS       8u  /* pools that one thread keeps blocks of; more go to the shared buckets */
#define CELL_COUNT 16u
#define CELL_BYTES ((uint64_t)1 << 20)

struct cell {
    _Atomic uint32_t head, count; /* atomic for the peeks of other threads only */
    struct cw_live_bucket *record;
};

/* Never freed: other threads peek. Empty sets change hands. */
struct set {
    _Atomic(struct cw_pool *) pool;
    const struct cw_pool *last; /* whose records the cells have */
    struct cell cell[CLASSES];
};

struct __attribute__((aligned(128))) hoard {
    _Atomic(struct set *) set[SETS];
    struct cw_batch *open;
    uint64_t bytes;
};

static struct hoard hoards[CW_SLOTS];
static uint64_t most_bytes;

void cw_hoard_init(uint64_t bytes)
{
    most_bytes = bytes;
}

void cw_hoard_reset(void)
{
    for (int i = 0; i < CW_SLOTS; i++) {
        for (unsigned k = 0; k < SETS; k++)
            atomic_store_explicit(&hoards[i].set[k], NULL, memory_order_relaxed);
        hoards[i].open = NULL;
        hoards[i].bytes = 0;
    }
}

struct cw_batch **cw_hoard_batch(unsigned slot)
{
    return &hoards[slot].open;
}

static uint32_t load(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void set_cell(struct cell *cell, uint32_t head, uint32_t count)
{
    atomic_store_explicit(&cell->head, head, memory_order_relaxed);
    atomic_store_explicit(&cell->count, count, memory_order_relaxed);
}

static struct set *set_at(const struct hoard *hoard, unsigned k)
{
    return atomic_load_explicit(&hoard->set[k], memory_order_acquire);
}

static struct cw_pool *pool_of(const struct set *set)
{
    return atomic_load_explicit(&set->pool, memory_order_relaxed);
}

static struct set *find_set(const struct hoard *hoard, const struct cw_pool *pool)
{
    struct set *set = set_at(hoard, pool->id % SETS);

    return CW_LIKELY(set != NULL && pool_of(set) == pool) ? set : NULL;
}

/* The set of the pool, made or taken over from a pool that is gone; NULL if a living one has it. */
static struct set *get_set(struct hoard *hoard, struct cw_pool *pool)
{
    struct set *set = set_at(hoard, pool->id % SETS);

    if (CW_UNLIKELY(set == NULL)) {
        set = cw_mem_alloc(sizeof(*set));
        if (set == NULL)
            return NULL;
        atomic_store_explicit(&hoard->set[pool->id % SETS], set, memory_order_release);
    }
    if (CW_UNLIKELY(pool_of(set) == NULL)) {
        for (unsigned c = 0; set->last != pool && c < CLASSES; c++)
            set->cell[c].record = NULL;
        set->last = pool;
        atomic_store_explicit(&set->pool, pool, memory_order_relaxed);
    }
    return pool_of(set) == pool ? set : NULL;
}

static struct cw_live_bucket *record_of(struct cell *cell, const struct cw_pool *pool,
                                        unsigned size_class, unsigned slot)
{
    if (CW_UNLIKELY(cell->record == NULL))
        cell->record = cw_bucket_record(pool, size_class, (uint8_t)slot);
    return cell->record;
}

uint32_t cw_hoard_take(struct cw_pool *pool, unsigned size_class, uint64_t bytes)
{
    struct cw_slot *slot = size_class < CLASSES ? cw_slot_enter() : NULL;
    struct hoard *hoard;
    struct set *set;
    uint32_t block = 0;

    if (CW_UNLIKELY(slot == NULL))
        return 0;
    hoard = &hoards[slot - cw_slots];
    set = find_set(hoard, pool);
    if (CW_LIKELY(set != NULL && (block = load(&set->cell[size_class].head)) != 0)) {
        struct cell *cell = &set->cell[size_class];
        const struct cw_live_block *record = cw_tracker_at(block);
        uint64_t held = atomic_load_explicit(&record->held, memory_order_relaxed);

        set_cell(cell, atomic_load_explicit(&record->link, memory_order_relaxed),
                 load(&cell->count) - 1);
        hoard->bytes -= held;
        if (CW_LIKELY(cell->record != NULL)) {
            cw_bucket_count(&cell->record->hits, 1);
            cw_bucket_count(&cell->record->asked_bytes, bytes);
            cw_bucket_count(&cell->record->given_bytes, held);
            cw_bucket_count(&cell->record->idle_blocks, (uint64_t)-1);
            cw_bucket_count(&cell->record->idle_bytes, -held);
        }
    }
    cw_slot_leave(slot);
    return block;
}

static uint32_t most_in_cell(uint64_t held)
{
    return held >= CELL_BYTES               ? 1
           : held * CELL_COUNT > CELL_BYTES ? (uint32_t)(CELL_BYTES / held)
                                            : CELL_COUNT;
}

/* Unlinks the newer half; the link of the last of them is 0. */
static uint32_t split(struct hoard *hoard, struct cell *cell)
{
    uint32_t list = load(&cell->head), last = list, count = (load(&cell->count) + 1) / 2;
    struct cw_live_block *record = cw_tracker_at(last);

    hoard->bytes -= atomic_load_explicit(&record->held, memory_order_relaxed);
    for (uint32_t i = 1; i < count; i++) {
        last = load(&record->link);
        record = cw_tracker_at(last);
        hoard->bytes -= atomic_load_explicit(&record->held, memory_order_relaxed);
    }
    set_cell(cell, load(&record->link), load(&cell->count) - count);
    atomic_store_explicit(&record->link, 0, memory_order_relaxed);
    return list;
}

static void push(struct hoard *hoard, struct cell *cell, uint32_t block, uint64_t held)
{
    atomic_store_explicit(&cw_tracker_at(block)->link, load(&cell->head), memory_order_relaxed);
    set_cell(cell, block, load(&cell->count) + 1);
    hoard->bytes += held;
}

/* The cell for one more block of this size, inside the slot; NULL: keep it elsewhere. */
static struct cell *cell_for(struct hoard *hoard, struct cw_pool *pool, unsigned size_class,
                             uint64_t held)
{
    struct set *set;

    /* Pitched blocks have all sizes, and are looked for by size in the shared buckets. */
    if (size_class >= CLASSES || pool->class == CW_POOL_PITCHED ||
        hoard->bytes + held > most_bytes ||
        atomic_load_explicit(&pool->realm->state, memory_order_acquire) != CW_REALM_OPEN)
        return NULL;
    set = get_set(hoard, pool);
    return set != NULL ? &set->cell[size_class] : NULL;
}

int cw_hoard_put(struct cw_pool *pool, uint32_t block, int freed, uint32_t *out_spill)
{
    uint64_t held = atomic_load_explicit(&cw_tracker_at(block)->held, memory_order_relaxed);
    unsigned size_class = cw_size_class_down(held);
    struct cw_slot *slot = cw_slot_enter();
    struct hoard *hoard;
    struct cell *cell;

    *out_spill = 0;
    if (CW_UNLIKELY(slot == NULL))
        return 0;
    hoard = &hoards[slot - cw_slots];
    cell = cell_for(hoard, pool, size_class, held);
    if (CW_LIKELY(cell != NULL)) {
        struct cw_live_bucket *record =
            record_of(cell, pool, size_class, (unsigned)(slot - cw_slots));

        if (CW_UNLIKELY(load(&cell->count) >= most_in_cell(held)))
            *out_spill = split(hoard, cell);
        push(hoard, cell, block, held);
        if (CW_LIKELY(freed && record != NULL)) {
            cw_bucket_count(&record->kept, 1);
            cw_bucket_count(&record->idle_blocks, 1);
            cw_bucket_count(&record->idle_bytes, held);
        }
    }
    cw_slot_leave(slot);
    return cell != NULL;
}

uint32_t cw_hoard_refill(struct cw_pool *pool, unsigned size_class, uint32_t list, uint32_t count)
{
    struct cw_slot *slot = cw_slot_enter();
    struct hoard *hoard;

    if (slot == NULL)
        return list;
    hoard = &hoards[slot - cw_slots];
    for (; list != 0 && count > 0; count--) {
        struct cw_live_block *record = cw_tracker_at(list);
        uint64_t held = atomic_load_explicit(&record->held, memory_order_relaxed);
        struct cell *cell = cell_for(hoard, pool, size_class, held);
        uint32_t next = load(&record->link);

        if (cell == NULL || load(&cell->count) >= most_in_cell(held))
            break;
        record_of(cell, pool, size_class, (unsigned)(slot - cw_slots));
        push(hoard, cell, list, held);
        list = next;
    }
    cw_slot_leave(slot);
    return list;
}

/* ---- other threads' blocks ---------------------------------------------------------------------
 */

/* All of a cell, in front of the list. */
static uint32_t take_cell(struct hoard *hoard, struct cell *cell, uint32_t list)
{
    uint32_t block = load(&cell->head);

    while (block != 0) {
        struct cw_live_block *record = cw_tracker_at(block);
        uint32_t next = load(&record->link);

        hoard->bytes -= atomic_load_explicit(&record->held, memory_order_relaxed);
        atomic_store_explicit(&record->link, list, memory_order_relaxed);
        list = block;
        block = next;
    }
    set_cell(cell, 0, 0);
    return list;
}

static int is_wanted(const struct set *set, const struct cw_pool *pool)
{
    return set != NULL && pool_of(set) != NULL && (pool == NULL || pool_of(set) == pool);
}

/* 1 if there is something to take, as far as can be seen from outside. */
static int peek(const struct hoard *hoard, const struct cw_pool *pool, unsigned size_class)
{
    for (unsigned k = 0; k < SETS; k++) {
        const struct set *set = set_at(hoard, k);

        if (!is_wanted(set, pool))
            continue;
        if (load(&set->cell[size_class].head) != 0)
            return 1;
    }
    return 0;
}

/* The slot is stopped. A pool that loses all its blocks gives up its set. */
static uint32_t take_from(struct hoard *hoard, const struct cw_pool *pool, unsigned size_class,
                          uint32_t list)
{
    for (unsigned k = 0; k < SETS; k++) {
        struct set *set = set_at(hoard, k);

        if (!is_wanted(set, pool))
            continue;
        for (unsigned c = 0; c < CLASSES; c++)
            if (size_class == CW_SIZE_CLASSES || size_class == c)
                list = take_cell(hoard, &set->cell[c], list);
        if (size_class != CW_SIZE_CLASSES || pool == NULL ||
            atomic_load(&pool->realm->state) == CW_REALM_OPEN)
            continue;
        atomic_store_explicit(&set->pool, NULL, memory_order_relaxed);
    }
    return list;
}

uint32_t cw_hoard_seize(const struct cw_pool *pool, unsigned size_class)
{
    uint64_t mask = 0;
    uint32_t list = 0;

    if (size_class != CW_SIZE_CLASSES && size_class >= CLASSES)
        return 0;
    for (uint64_t rest = cw_slot_used(); rest != 0; rest &= rest - 1)
        if (size_class == CW_SIZE_CLASSES || peek(&hoards[__builtin_ctzll(rest)], pool, size_class))
            mask |= rest & -rest;
    if (mask == 0)
        return 0;
    cw_slot_stop(mask);
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
        list = take_from(&hoards[__builtin_ctzll(rest)], pool, size_class, list);
    cw_slot_resume(mask);
    return list;
}

uint32_t cw_hoard_empty(void)
{
    struct cw_slot *slot = cw_slot_enter();
    uint32_t list = 0;

    if (slot == NULL)
        return 0;
    list = take_from(&hoards[slot - cw_slots], NULL, CW_SIZE_CLASSES, 0);
    cw_slot_leave(slot);
    return list;
}
