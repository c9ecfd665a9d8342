/* SPDX-License-Identifier: MIT */
/* Blocks that threads keep to themselves. See hoard.h. */
#include "core/hoard.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/realm.h"
#include "core/slot.h"
#include "core/tracker.h"

#define SETS       8u /* pools that one thread keeps blocks of; more go to the shared buckets */
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
    struct cell cell[CW_HOARD_CELLS];
};

struct __attribute__((aligned(128))) hoard {
    _Atomic(struct set *) set[SETS];
    struct cw_batch *open;
    uint64_t bytes;
};

static struct hoard hoards[CW_SLOTS];
static uint64_t most_bytes;
static uint8_t most_blocks[CW_HOARD_CELLS]; /* in one cell */

void cw_hoard_init(uint64_t bytes)
{
    most_bytes = bytes;
    for (unsigned c = 0; c < CW_HOARD_CELLS; c++) {
        uint64_t blocks = CELL_BYTES / cw_size_class_bytes(c);

        most_blocks[c] = (uint8_t)(blocks < CELL_COUNT ? blocks : CELL_COUNT);
    }
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
static CW_NOINLINE struct set *make_set(struct hoard *hoard, struct cw_pool *pool)
{
    struct set *set = set_at(hoard, pool->id % SETS);

    if (set == NULL) {
        set = cw_mem_alloc(sizeof(*set));
        if (set == NULL)
            return NULL;
        atomic_store_explicit(&hoard->set[pool->id % SETS], set, memory_order_release);
    }
    if (pool_of(set) == NULL) {
        for (unsigned c = 0; set->last != pool && c < CW_HOARD_CELLS; c++)
            set->cell[c].record = NULL;
        set->last = pool;
        atomic_store_explicit(&set->pool, pool, memory_order_relaxed);
    }
    return pool_of(set) == pool ? set : NULL;
}

static void make_record(struct cell *cell, const struct cw_pool *pool, unsigned size_class,
                        unsigned slot)
{
    if (cell->record == NULL)
        cell->record = cw_bucket_record(pool, size_class, (uint8_t)slot);
}

static inline void count_hit(struct cw_live_bucket *record, uint64_t bytes, uint64_t held)
{
    if (CW_UNLIKELY(record == NULL))
        return;
    cw_bucket_count(&record->hits, 1);
    cw_bucket_count(&record->asked_bytes, bytes);
    cw_bucket_count(&record->given_bytes, held);
    cw_bucket_count(&record->idle_blocks, (uint64_t)-1);
    cw_bucket_count(&record->idle_bytes, -held);
}

static inline void count_kept(struct cw_live_bucket *record, uint64_t held)
{
    if (CW_UNLIKELY(record == NULL))
        return;
    cw_bucket_count(&record->kept, 1);
    cw_bucket_count(&record->idle_blocks, 1);
    cw_bucket_count(&record->idle_bytes, held);
}

uint32_t cw_hoard_take_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                              unsigned size_class, uint64_t bytes)
{
    struct hoard *hoard = &hoards[slot - cw_slots];
    struct set *set = size_class < CW_HOARD_CELLS ? find_set(hoard, pool) : NULL;
    const struct cw_live_block *record;
    struct cell *cell;
    uint32_t block;
    uint64_t held;

    if (CW_UNLIKELY(set == NULL))
        return 0;
    cell = &set->cell[size_class];
    block = load(&cell->head);
    if (CW_UNLIKELY(block == 0))
        return 0;
    record = cw_tracker_at(block);
    held = atomic_load_explicit(&record->held, memory_order_relaxed);
    set_cell(cell, load(&record->link), load(&cell->count) - 1);
    hoard->bytes -= held;
    count_hit(cell->record, bytes, held);
    return block;
}

uint32_t cw_hoard_take(struct cw_pool *pool, unsigned size_class, uint64_t bytes)
{
    struct cw_slot *slot = cw_slot_enter();
    uint32_t block;

    if (CW_UNLIKELY(slot == NULL))
        return 0;
    block = cw_hoard_take_inside(slot, pool, size_class, bytes);
    cw_slot_leave(slot);
    return block;
}

/* Unlinks the newer half; the link of the last of them is 0. */
static CW_NOINLINE uint32_t split(struct hoard *hoard, struct cell *cell)
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

static inline void push(struct hoard *hoard, struct cell *cell, uint32_t block,
                        struct cw_live_block *record, uint64_t held)
{
    atomic_store_explicit(&record->link, load(&cell->head), memory_order_relaxed);
    set_cell(cell, block, load(&cell->count) + 1);
    hoard->bytes += held;
}

static int is_full(const struct hoard *hoard, const struct cw_pool *pool, uint64_t held)
{
    return hoard->bytes + held > most_bytes ||
           atomic_load_explicit(&pool->realm->state, memory_order_acquire) != CW_REALM_OPEN;
}

int cw_hoard_put_inside(const struct cw_slot *slot, const struct cw_pool *pool, uint32_t block,
                        struct cw_live_block *record, uint64_t held)
{
    struct hoard *hoard = &hoards[slot - cw_slots];
    struct set *set = find_set(hoard, pool);
    struct cell *cell;

    if (CW_UNLIKELY(set == NULL || record->cell == CW_HOARD_NONE || is_full(hoard, pool, held)))
        return 0;
    cell = &set->cell[record->cell];
    if (CW_UNLIKELY(cell->record == NULL || load(&cell->count) >= most_blocks[record->cell]))
        return 0;
    push(hoard, cell, block, record, held);
    count_kept(cell->record, held);
    return 1;
}

/* The cell for one more block, inside the slot; NULL: keep it elsewhere. */
static struct cell *cell_for(struct hoard *hoard, struct cw_pool *pool, uint8_t cell, uint64_t held)
{
    struct set *set;

    if (cell == CW_HOARD_NONE || is_full(hoard, pool, held))
        return NULL;
    set = find_set(hoard, pool);
    if (CW_UNLIKELY(set == NULL))
        set = make_set(hoard, pool);
    return set != NULL ? &set->cell[cell] : NULL;
}

int cw_hoard_put(struct cw_pool *pool, uint32_t block, int freed, uint32_t *out_spill)
{
    struct cw_live_block *record = cw_tracker_at(block);
    uint64_t held = atomic_load_explicit(&record->held, memory_order_relaxed);
    struct cw_slot *slot = cw_slot_enter();
    struct hoard *hoard;
    struct cell *cell;

    *out_spill = 0;
    if (CW_UNLIKELY(slot == NULL))
        return 0;
    hoard = &hoards[slot - cw_slots];
    cell = cell_for(hoard, pool, record->cell, held);
    if (cell != NULL) {
        make_record(cell, pool, record->cell, (unsigned)(slot - cw_slots));
        if (load(&cell->count) >= most_blocks[record->cell])
            *out_spill = split(hoard, cell);
        push(hoard, cell, block, record, held);
        if (freed)
            count_kept(cell->record, held);
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
        struct cell *cell = cell_for(hoard, pool, record->cell, held);
        uint32_t next = load(&record->link);

        if (cell == NULL || load(&cell->count) >= most_blocks[size_class])
            break;
        make_record(cell, pool, size_class, (unsigned)(slot - cw_slots));
        push(hoard, cell, list, record, held);
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
        for (unsigned c = 0; c < CW_HOARD_CELLS; c++)
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

    if (size_class != CW_SIZE_CLASSES && size_class >= CW_HOARD_CELLS)
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
