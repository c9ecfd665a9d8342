/* SPDX-License-Identifier: MIT */
/* Blocks that threads keep to themselves. See thread_cache.h. */
#include "core/cache/thread_cache.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/cache/bin_records.h"
#include "core/cache/retention.h"
#include "core/cache/pool_context.h"
#include "core/account/tracker.h"
#include "core/process/session.h"

#define SETS  8u /* pools that one thread keeps blocks of; more go to the shared buckets */
#define LOOKS 8u /* blocks of a bin that a search looks at */
/* Bounds of one bin: blocks or bytes, but some few blocks in any case. */
#define BIN_BLOCKS 16u
#define BIN_BYTES  ((uint64_t)1 << 20)
#define BIN_LEAST  4u
/* Grants for small blocks are rounded up to this, because each takes an atomic instruction. */
#define GRANT ((uint64_t)256 << 10)

struct bin {
    _Atomic uint32_t head, stamp; /* atomic for the peeks of other threads only */
    _Atomic uint16_t count;
    uint16_t low;             /* the least that it had since the last sweep */
    _Atomic uint16_t pending; /* blocks of this size in the thread's batches */
    uint16_t unused;
    struct cw_live_bucket *record;
};

/* Never freed: other threads peek. Empty sets change hands. */
struct set {
    _Atomic(struct cw_pool *) pool;
    struct cw_bin_records *records; /* of which the bins have theirs; NULL: no memory */
    uint64_t bytes;                 /* in the bins, and pending */
    uint64_t granted;               /* of which at most so much */
    struct bin bin[CW_BINS];
};

struct __attribute__((aligned(128))) cache {
    _Atomic(struct set *) set[SETS];
};

static struct cache caches[CW_SLOTS];

void cw_thread_cache_reset(void)
{
    for (int i = 0; i < CW_SLOTS; i++)
        for (unsigned k = 0; k < SETS; k++)
            atomic_store_explicit(&caches[i].set[k], NULL, memory_order_relaxed);
    cw_bin_records_reset();
}

static uint32_t load(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static unsigned count_of(const struct bin *bin)
{
    return atomic_load_explicit(&bin->count, memory_order_relaxed);
}

static unsigned pending_of(const struct bin *bin)
{
    return atomic_load_explicit(&bin->pending, memory_order_relaxed);
}

static void set_pending(struct bin *bin, unsigned count)
{
    atomic_store_explicit(&bin->pending, (uint16_t)count, memory_order_relaxed);
}

static void set_bin(struct bin *bin, uint32_t head, unsigned count)
{
    atomic_store_explicit(&bin->head, head, memory_order_relaxed);
    atomic_store_explicit(&bin->count, (uint16_t)count, memory_order_relaxed);
}

static inline unsigned most_blocks(uint64_t held)
{
    return CW_LIKELY(held <= BIN_BYTES / BIN_BLOCKS) ? BIN_BLOCKS
           : held <= BIN_BYTES / BIN_LEAST           ? (unsigned)(BIN_BYTES / held)
                                                     : BIN_LEAST;
}

static uint64_t held_of(const struct cw_live_block *record)
{
    return atomic_load_explicit(&record->held, memory_order_relaxed);
}

/* ---- sets ---- */

static struct set *set_at(unsigned slot, unsigned k)
{
    return atomic_load_explicit(&caches[slot].set[k], memory_order_acquire);
}

static struct cw_pool *pool_of(const struct set *set)
{
    return atomic_load_explicit(&set->pool, memory_order_relaxed);
}

static struct set *find_set(unsigned slot, const struct cw_pool *pool)
{
    struct set *set = set_at(slot, pool->id % SETS);

    return CW_LIKELY(set != NULL && pool_of(set) == pool) ? set : NULL;
}

static void set_records(struct set *set, struct cw_bin_records *records)
{
    if (set->records == records)
        return;
    set->records = records;
    for (unsigned c = 0; c < CW_BINS; c++)
        set->bin[c].record = records != NULL ? records->bin[c] : NULL;
}

/* Its context has ended while blocks were in hand, which are gone by now. */
static int is_left_behind(const struct set *set)
{
    return set->bytes == 0 && set->granted == 0 &&
           atomic_load_explicit(&pool_of(set)->pool_context->state, memory_order_acquire) ==
               CW_POOL_CONTEXT_DEAD;
}

/* The set of the pool, made or taken over from a pool that is gone; NULL if a living one has it. */
static CW_NOINLINE struct set *make_set(unsigned slot, struct cw_pool *pool)
{
    struct set *set = set_at(slot, pool->id % SETS);

    if (set == NULL) {
        set = cw_mem_alloc(sizeof(*set));
        if (set == NULL)
            return NULL;
        atomic_store_explicit(&caches[slot].set[pool->id % SETS], set, memory_order_release);
    }
    if (pool_of(set) == NULL || is_left_behind(set)) {
        set_records(set, cw_bin_records_for(slot, pool));
        atomic_store_explicit(&set->pool, pool, memory_order_relaxed);
    }
    return pool_of(set) == pool ? set : NULL;
}

/* ---- counters ---- */

static inline void count_hit(struct cw_live_bucket *record, uint64_t bytes, uint64_t held)
{
    if (CW_UNLIKELY(record == NULL))
        return;
    cw_bucket_count(&record->hits, 1);
    cw_bucket_count_given(record, bytes, held);
    cw_bucket_count_idle(record, (uint64_t)-1, -held);
}

static inline void count_kept(struct cw_live_bucket *record, uint64_t held)
{
    cw_bucket_count(&record->kept, 1);
    cw_bucket_count_idle(record, 1, held);
}

/* ---- the thread's own ---- */

static inline void push(struct bin *bin, uint32_t block, struct cw_live_block *record)
{
    atomic_store_explicit(&record->link, load(&bin->head), memory_order_relaxed);
    set_bin(bin, block, count_of(bin) + 1);
}

/* The block after `before` (0: the first) is the program's next. */
static CW_INLINE void take_out(struct set *set, struct bin *bin, uint32_t before, uint32_t block,
                               uint64_t bytes)
{
    const struct cw_live_block *record = cw_tracker_at(block);
    unsigned left = count_of(bin) - 1u;

    if (CW_UNLIKELY(before != 0))
        atomic_store_explicit(&cw_tracker_at(before)->link, load(&record->link),
                              memory_order_relaxed);
    set_bin(bin, before != 0 ? load(&bin->head) : load(&record->link), left);
    if (left < bin->low)
        bin->low = (uint16_t)left;
    set->bytes -= held_of(record);
    count_hit(bin->record, bytes, held_of(record));
}

/* The first block of the bin if it fits. */
static CW_INLINE uint32_t first(struct set *set, struct bin *bin, struct cw_size_fit fit,
                                uint64_t now_ns, uint64_t *out_excess)
{
    uint32_t block = load(&bin->head);
    uint64_t held, excess;

    if (CW_UNLIKELY(block == 0))
        return 0;
    held = held_of(cw_tracker_at(block));
    excess = cw_size_excess(held, fit.bytes);
    if (CW_UNLIKELY(held < fit.bytes || excess > fit.excess))
        return 0;
    take_out(set, bin, 0, block, fit.bytes);
    atomic_store_explicit(&bin->stamp, cw_session_tick(now_ns), memory_order_relaxed);
    *out_excess = excess;
    return block;
}

CW_HOT uint32_t cw_thread_cache_take_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                                            struct cw_size_fit fit, uint64_t now_ns,
                                            uint64_t *out_excess)
{
    struct set *set = find_set((unsigned)(slot - cw_slots), pool);
    unsigned up = cw_size_class_up(fit.bytes), down;
    uint32_t block;

    if (CW_UNLIKELY(set == NULL || up >= CW_BINS))
        return 0;
    block = first(set, &set->bin[up], fit, now_ns, out_excess);
    if (CW_LIKELY(block != 0))
        return block;
    /* One that was asked for exactly lies in the class below. */
    down = cw_size_class_of(fit.bytes);
    return down != up && down < CW_BINS ? first(set, &set->bin[down], fit, now_ns, out_excess) : 0;
}

/* The smallest of the newest that fit. */
static uint32_t best(struct set *set, struct bin *bin, struct cw_size_fit fit)
{
    uint32_t best = 0, before_best = 0, before = 0, block = load(&bin->head);

    for (unsigned i = 0; block != 0 && i < LOOKS; i++) {
        uint64_t held = cw_tracker_held(block);

        if (cw_size_fits(held, fit) && (best == 0 || held < cw_tracker_held(best))) {
            best = block;
            before_best = before;
        }
        before = block;
        block = cw_tracker_next(block);
    }
    if (best != 0)
        take_out(set, bin, before_best, best, fit.bytes);
    return best;
}

/* In the order of cw_bucket_take. */
static uint32_t take_between(struct set *set, struct cw_size_fit fit)
{
    unsigned up = cw_size_class_up(fit.bytes), down = cw_size_class_of(fit.bytes), last;
    uint64_t most = cw_size_exact(fit.bytes) + fit.excess;
    uint32_t block = 0;

    last = cw_size_class_up(most < CW_SIZE_MOST ? most : CW_SIZE_MOST);
    if (up < CW_BINS)
        block = best(set, &set->bin[up], fit);
    if (block == 0 && down != up && down < CW_BINS)
        block = best(set, &set->bin[down], fit);
    for (unsigned c = up + 1; block == 0 && c < CW_BINS && c <= last; c++)
        block = best(set, &set->bin[c], fit);
    return block;
}

uint32_t cw_thread_cache_take(struct cw_pool *pool, struct cw_size_fit fit)
{
    struct cw_slot *slot = cw_slot_enter();
    uint32_t block = 0;
    struct set *set;

    if (CW_UNLIKELY(slot == NULL))
        return 0;
    set = find_set((unsigned)(slot - cw_slots), pool);
    if (set != NULL)
        block = take_between(set, fit);
    cw_slot_leave(slot);
    return block;
}

static int is_open(const struct cw_pool *pool)
{
    return atomic_load_explicit(&pool->pool_context->state, memory_order_acquire) ==
           CW_POOL_CONTEXT_OPEN;
}

/* The bin for one more block that was granted room already; NULL: prepare first. */
static inline struct bin *bin_for(const struct cw_slot *slot, const struct cw_pool *pool,
                                  uint8_t bin, uint64_t held, struct set **out_set)
{
    struct set *set = find_set((unsigned)(slot - cw_slots), pool);

    if (CW_UNLIKELY(set == NULL || bin == CW_BIN_NONE || set->bytes + held > set->granted ||
                    set->bin[bin].record == NULL || !is_open(pool)))
        return NULL;
    *out_set = set;
    return &set->bin[bin];
}

CW_HOT int cw_thread_cache_put_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                                      uint32_t block, struct cw_live_block *record, uint64_t held)
{
    struct set *set;
    struct bin *bin = bin_for(slot, pool, record->cell, held, &set);

    if (CW_UNLIKELY(bin == NULL || count_of(bin) >= most_blocks(held)))
        return 0;
    push(bin, block, record);
    set->bytes += held;
    count_kept(bin->record, held);
    return 1;
}

int cw_thread_cache_hold_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                                const struct cw_live_block *record, uint64_t held, int freed)
{
    struct set *set;
    struct bin *bin = bin_for(slot, pool, record->cell, held, &set);

    if (CW_UNLIKELY(bin == NULL || pending_of(bin) == UINT16_MAX))
        return 0;
    set_pending(bin, pending_of(bin) + 1);
    set->bytes += held;
    if (CW_LIKELY(freed))
        count_kept(bin->record, held);
    return 1;
}

int cw_thread_cache_prepare(struct cw_pool *pool, uint8_t bin, uint64_t held)
{
    uint64_t want = held < GRANT ? GRANT : held;
    struct cw_slot *slot;
    struct set *set;
    int is_ready = 0;

    if (bin == CW_BIN_NONE || !is_open(pool))
        return 0;
    slot = cw_slot_enter();
    if (CW_UNLIKELY(slot == NULL))
        return 0;
    set = find_set((unsigned)(slot - cw_slots), pool);
    if (CW_UNLIKELY(set == NULL))
        set = make_set((unsigned)(slot - cw_slots), pool);
    if (set != NULL) {
        if (set->bin[bin].record == NULL && set->records != NULL)
            set->bin[bin].record =
                cw_bin_records_at(set->records, (unsigned)(slot - cw_slots), pool, bin);
        if (set->bytes + held > set->granted && !cw_retention_grant(pool, want, held))
            want = cw_retention_grant(pool, held, held) ? held : 0;
        else if (set->bytes + held <= set->granted)
            want = 0;
        set->granted += want;
        is_ready = set->bin[bin].record != NULL && set->bytes + held <= set->granted;
    }
    cw_slot_leave(slot);
    return is_ready;
}

/* Prepends the newest blocks of a bin to the list. A block that leaves the thread takes its
 * grant. */
static uint32_t take_blocks(struct set *set, struct bin *bin, unsigned count, uint32_t list)
{
    uint32_t block = load(&bin->head);
    unsigned left = count_of(bin) - count;
    uint64_t bytes = 0;

    for (; count > 0; count--) {
        struct cw_live_block *record = cw_tracker_at(block);
        uint32_t next = load(&record->link);

        bytes += held_of(record);
        atomic_store_explicit(&record->link, list, memory_order_relaxed);
        list = block;
        block = next;
    }
    set_bin(bin, block, left);
    if (left < bin->low)
        bin->low = (uint16_t)left;
    set->bytes -= bytes;
    set->granted -= bytes;
    cw_retention_ungrant(pool_of(set)->device, bytes);
    return list;
}

int cw_thread_cache_put(struct cw_pool *pool, uint32_t block, uint32_t *out_spill)
{
    struct cw_live_block *record = cw_tracker_at(block);
    uint64_t held = held_of(record);
    struct cw_slot *slot;
    struct set *set;
    struct bin *bin;

    *out_spill = 0;
    if (!cw_thread_cache_prepare(pool, record->cell, held))
        return 0;
    slot = cw_slot_enter();
    if (CW_UNLIKELY(slot == NULL))
        return 0;
    bin = bin_for(slot, pool, record->cell, held, &set);
    if (bin != NULL) {
        if (count_of(bin) >= most_blocks(held))
            *out_spill = take_blocks(set, bin, (count_of(bin) + 1u) / 2u, 0);
        bin = bin_for(slot, pool, record->cell, held, &set); /* what spilled took its grant along */
    }
    if (bin != NULL) {
        push(bin, block, record);
        set->bytes += held;
    }
    cw_slot_leave(slot);
    return bin != NULL;
}

uint32_t cw_thread_cache_refill(struct cw_pool *pool, uint32_t list)
{
    uint32_t spill = 0;

    while (list != 0 && spill == 0) {
        uint32_t next = cw_tracker_next(list);

        if (!cw_thread_cache_put(pool, list, &spill))
            break;
        list = next;
    }
    return cw_tracker_join(list, spill); /* a bin that spills is full: the others go back as well */
}

/* ---- pending ---- */

uint64_t cw_thread_cache_pending(const struct cw_pool *pool, unsigned size_class)
{
    const struct set *set = size_class < CW_BINS ? find_set(cw_thread_slot(), pool) : NULL;

    return set != NULL ? pending_of(&set->bin[size_class]) * cw_size_class_bytes(size_class) : 0;
}

int cw_thread_cache_unhold(unsigned slot, struct cw_pool *pool, uint32_t block, int ready)
{
    struct cw_live_block *record = cw_tracker_at(block);
    struct set *set = find_set(slot, pool);
    uint64_t held = held_of(record);
    struct bin *bin;

    if (set == NULL) /* it was never held here */
        return 0;
    bin = &set->bin[record->cell];
    set_pending(bin, pending_of(bin) - 1);
    if (ready && is_open(pool) && count_of(bin) < most_blocks(held)) {
        push(bin, block, record);
        return 1;
    }
    set->bytes -= held;
    set->granted -= held;
    cw_retention_ungrant(pool->device, held);
    return 0;
}

/* ---- other threads' blocks ---- */

static int is_wanted(const struct set *set, const struct cw_pool *pool)
{
    return set != NULL && pool_of(set) != NULL && (pool == NULL || pool_of(set) == pool);
}

int cw_thread_cache_has(const struct cw_pool *pool, unsigned size_class)
{
    if (size_class >= CW_BINS)
        return 0;
    for (uint64_t rest = cw_slot_used(); rest != 0; rest &= rest - 1) {
        const struct set *set = find_set((unsigned)__builtin_ctzll(rest), pool);

        if (set != NULL && load(&set->bin[size_class].head) != 0)
            return 1;
    }
    return 0;
}

uint32_t cw_thread_cache_stamp(const struct cw_pool *pool, unsigned size_class)
{
    uint32_t newest = 0;

    for (uint64_t rest = size_class < CW_BINS ? cw_slot_used() : 0; rest != 0; rest &= rest - 1) {
        const struct set *set = find_set((unsigned)__builtin_ctzll(rest), pool);
        uint32_t stamp = set != NULL ? load(&set->bin[size_class].stamp) : 0;

        if (stamp > newest)
            newest = stamp;
    }
    return newest;
}

static uint64_t give_up_grant(struct set *set)
{
    uint64_t spare = set->granted - set->bytes;

    set->granted = set->bytes;
    cw_retention_ungrant(pool_of(set)->device, spare);
    return spare;
}

/* The slot is stopped, or the calling thread's and entered. A pool whose context ends gives up its
 * set. */
static uint32_t take_from(unsigned slot, const struct cw_pool *pool, unsigned size_class,
                          uint32_t list)
{
    for (unsigned k = 0; k < SETS; k++) {
        struct set *set = set_at(slot, k);

        if (!is_wanted(set, pool))
            continue;
        for (unsigned c = 0; c < CW_BINS; c++)
            if (size_class == CW_SIZE_CLASSES || size_class == c)
                list = take_blocks(set, &set->bin[c], count_of(&set->bin[c]), list);
        if (size_class != CW_SIZE_CLASSES)
            continue;
        give_up_grant(set);
        if (pool != NULL && !is_open(pool) && set->bytes == 0)
            atomic_store_explicit(&set->pool, NULL, memory_order_relaxed);
    }
    return list;
}

uint32_t cw_thread_cache_seize(const struct cw_pool *pool, unsigned size_class)
{
    uint64_t mask = 0;
    uint32_t list = 0;

    if (size_class != CW_SIZE_CLASSES && size_class >= CW_BINS)
        return 0;
    for (uint64_t rest = cw_slot_used(); rest != 0; rest &= rest - 1) {
        const struct set *set = find_set((unsigned)__builtin_ctzll(rest), pool);

        if (set != NULL && (size_class == CW_SIZE_CLASSES || load(&set->bin[size_class].head) != 0))
            mask |= rest & -rest;
    }
    if (mask == 0)
        return 0;
    cw_slot_stop(mask);
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
        list = take_from((unsigned)__builtin_ctzll(rest), pool, size_class, list);
    cw_slot_resume(mask);
    return list;
}

static uint32_t sweep_set(struct set *set, uint32_t list)
{
    for (unsigned c = 0; c < CW_BINS; c++) {
        struct bin *bin = &set->bin[c];

        if (bin->low != 0)
            list = take_blocks(set, bin, bin->low, list);
        bin->low = (uint16_t)count_of(bin);
    }
    give_up_grant(set);
    return list;
}

uint32_t cw_thread_cache_sweep(void)
{
    uint64_t mask = 0;
    uint32_t list = 0;

    for (uint64_t rest = cw_slot_used(); rest != 0; rest &= rest - 1)
        for (unsigned k = 0; k < SETS; k++)
            if (is_wanted(set_at((unsigned)__builtin_ctzll(rest), k), NULL))
                mask |= rest & -rest;
    if (mask == 0)
        return 0;
    cw_slot_stop(mask);
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
        for (unsigned k = 0; k < SETS; k++) {
            struct set *set = set_at((unsigned)__builtin_ctzll(rest), k);

            if (is_wanted(set, NULL))
                list = sweep_set(set, list);
        }
    cw_slot_resume(mask);
    return list;
}

uint32_t cw_thread_cache_empty(void)
{
    struct cw_slot *slot = cw_slot_enter();
    uint32_t list = 0;

    if (slot == NULL)
        return 0;
    list = take_from((unsigned)(slot - cw_slots), NULL, CW_SIZE_CLASSES, 0);
    cw_slot_leave(slot);
    return list;
}
