/* SPDX-License-Identifier: MIT */
/* The shared buckets of a pool. See bucket.h. */
#include "core/cache/bucket.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "core/cache/pool_context.h"
#include "core/process/session.h"
#include "core/account/tracker.h"

/* How many blocks of a bucket a search for a fitting one looks at. */
#define LOOKS 32
/* How many blocks leave a bucket under its lock in one go: some microseconds. */
#define GO 256u

static struct cw_arena *arena;
static _Atomic uint32_t pools;
_Atomic uint64_t cw_bucket_idle_bytes[CW_DEVICES];
_Atomic uint64_t cw_bucket_listed_bytes[CW_DEVICES];

/* [i]: how many in 1024 of the blocks that sweep i - 1 left unused survive sweep i: a curve that
 * begins and ends flat (1 - 6x^5 + 15x^4 - 10x^3, as jemalloc's). */
static const uint32_t stays[CW_BUCKET_AGES] = {1007, 932, 828, 707, 563, 385, 159, 0};

void cw_bucket_init(struct cw_arena *in)
{
    arena = in;
}

void cw_bucket_reset(void)
{
    for (int i = 0; i < CW_DEVICES; i++) {
        atomic_store_explicit(&cw_bucket_idle_bytes[i], 0, memory_order_relaxed);
        atomic_store_explicit(&cw_bucket_listed_bytes[i], 0, memory_order_relaxed);
    }
}

static void set_next(uint32_t block, uint32_t next)
{
    atomic_store_explicit(&cw_tracker_at(block)->link, next, memory_order_relaxed);
}

static uint8_t kind_of(enum cw_pool_class class)
{
    switch (class) {
    case CW_POOL_DEVICE:
        return CW_KIND_DEVICE;
    case CW_POOL_PITCHED:
        return CW_KIND_PITCHED;
    default:
        return CW_KIND_PINNED;
    }
}

struct cw_pool *cw_bucket_make_pool(struct cw_pool_context *pool_context, enum cw_pool_class class,
                                    uint8_t device)
{
    struct cw_pool *pool = cw_mem_alloc(sizeof(*pool));

    if (pool == NULL)
        return NULL;
    pool->pool_context = pool_context;
    pool->class = (uint8_t) class;
    pool->kind = kind_of(class);
    pool->device = pool->kind == CW_KIND_PINNED ? CW_DEVICE_HOST : device;
    pool->id = atomic_fetch_add(&pools, 1);
    for (unsigned i = 0; i < CW_SIZE_CLASSES; i++)
        cw_lock_init(&pool->bucket[i].lock, CW_RANK_BUCKET);
    return pool;
}

struct cw_live_bucket *cw_bucket_record(const struct cw_pool *pool, unsigned size_class,
                                        uint8_t owner)
{
    uint32_t index = cw_arena_append(arena, CW_TABLE_BUCKET);
    struct cw_live_bucket *record;

    if (index == 0)
        return NULL;
    record = cw_arena_at(arena, CW_TABLE_BUCKET, index);
    record->context = pool->pool_context->context;
    record->device = pool->device;
    record->kind = pool->kind;
    record->owner = owner;
    /* Last: a reader skips one without a size. */
    atomic_store_explicit(&record->size, cw_size_class_bytes(size_class), memory_order_release);
    return record;
}

static struct cw_live_bucket *record_locked(struct cw_pool *pool, unsigned size_class)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];

    if (CW_UNLIKELY(bucket->record == NULL))
        bucket->record = cw_bucket_record(pool, size_class, 0);
    return bucket->record;
}

static uint32_t head_of(const struct cw_bucket *bucket)
{
    return atomic_load_explicit(&bucket->head, memory_order_relaxed);
}

static uint32_t count_of(const struct cw_bucket *bucket)
{
    return atomic_load_explicit(&bucket->count, memory_order_relaxed);
}

static uint64_t bytes_of(const struct cw_bucket *bucket)
{
    return atomic_load_explicit(&bucket->bytes, memory_order_relaxed);
}

static void set_locked(struct cw_bucket *bucket, uint32_t head, uint32_t count, uint64_t bytes)
{
    atomic_store_explicit(&bucket->head, head, memory_order_relaxed);
    atomic_store_explicit(&bucket->count, count, memory_order_relaxed);
    atomic_store_explicit(&bucket->bytes, bytes, memory_order_relaxed);
}

/* ---- the list ---- */

/* Takes the block after `before` (0: the first) out of the list. */
static void unlink_locked(const struct cw_pool *pool, struct cw_bucket *bucket, uint32_t before,
                          uint32_t block)
{
    atomic_fetch_sub_explicit(&cw_bucket_idle_bytes[pool->device], cw_tracker_held(block),
                              memory_order_relaxed);
    if (before != 0)
        set_next(before, cw_tracker_next(block));
    set_locked(bucket, before == 0 ? cw_tracker_next(block) : head_of(bucket), count_of(bucket) - 1,
               bytes_of(bucket) - cw_tracker_held(block));
    if (count_of(bucket) < bucket->low)
        bucket->low = count_of(bucket);
}

static uint32_t first_locked(const struct cw_pool *pool, struct cw_bucket *bucket)
{
    uint32_t block = head_of(bucket);

    if (block != 0)
        unlink_locked(pool, bucket, 0, block);
    return block;
}

/* The smallest of the newest blocks that fit. */
static uint32_t best_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                            struct cw_size_fit fit)
{
    uint64_t least = cw_size_class_bytes((unsigned)(bucket - pool->bucket));
    uint32_t best = 0, before_best = 0, before = 0, looks = 0;

    if (least < cw_size_exact(fit.bytes))
        least = cw_size_exact(fit.bytes);
    for (uint32_t block = head_of(bucket); block != 0 && looks < LOOKS;
         block = cw_tracker_next(block)) {
        uint64_t held = cw_tracker_held(block);

        if (cw_size_fits(held, fit) && (best == 0 || held < cw_tracker_held(best))) {
            best = block;
            before_best = before;
        }
        if (best != 0 && cw_tracker_held(best) <= least)
            break;
        before = block;
        looks++;
    }
    if (best != 0)
        unlink_locked(pool, bucket, before_best, best);
    return best;
}

static void add_idle(struct cw_live_bucket *record, uint64_t blocks, uint64_t bytes)
{
    cw_bucket_count(&record->idle_blocks, blocks);
    cw_bucket_count(&record->idle_bytes, bytes);
}

/* Read before the lock is taken: the clock is part of the driver (core/process/driver_ops.h). */
static void stamp(struct cw_pool *pool, unsigned size_class)
{
    atomic_store_explicit(&pool->bucket[size_class].stamp, cw_session_tick(cw_session_now()),
                          memory_order_relaxed);
}

static void hit_locked(struct cw_pool *pool, unsigned size_class, uint32_t block, uint64_t bytes)
{
    struct cw_live_bucket *record = record_locked(pool, size_class);

    if (record == NULL)
        return;
    cw_bucket_count(&record->hits, 1);
    cw_bucket_count(&record->asked_bytes, bytes);
    cw_bucket_count(&record->given_bytes, cw_tracker_held(block));
    add_idle(record, (uint64_t)-1, -cw_tracker_held(block));
}

/* Most buckets are empty: a look without the lock saves taking it. */
static int is_empty(const struct cw_pool *pool, unsigned size_class)
{
    return head_of(&pool->bucket[size_class]) == 0;
}

static uint32_t take_from(struct cw_pool *pool, unsigned size_class, struct cw_size_fit fit)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t block;

    if (is_empty(pool, size_class))
        return 0;
    stamp(pool, size_class);
    cw_lock_acquire(&bucket->lock);
    block = best_locked(pool, bucket, fit);
    if (block != 0)
        hit_locked(pool, size_class, block, fit.bytes);
    cw_lock_release(&bucket->lock);
    return block;
}

/* Blocks of exact size lie in the class below the one that requests are rounded up to. */
uint32_t cw_bucket_take(struct cw_pool *pool, struct cw_size_fit fit)
{
    unsigned up = cw_size_class_up(fit.bytes);
    unsigned down = cw_size_class_of(fit.bytes);
    uint64_t most = cw_size_exact(fit.bytes) + fit.excess;
    unsigned last = cw_size_class_up(most < CW_SIZE_MOST ? most : CW_SIZE_MOST);
    uint32_t block = 0;

    if (down != up && fit.excess < cw_size_excess(cw_size_class_bytes(up), fit.bytes))
        return take_from(pool, down, fit);
    block = take_from(pool, up, fit);
    if (block == 0 && down != up)
        block = take_from(pool, down, fit);
    for (unsigned c = up + 1; block == 0 && c < CW_SIZE_CLASSES && c <= last; c++)
        block = take_from(pool, c, fit);
    return block;
}

uint32_t cw_bucket_take_least(struct cw_pool *pool, unsigned size_class, uint64_t bytes)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t block;

    if (is_empty(pool, size_class))
        return 0;
    cw_lock_acquire(&bucket->lock);
    block = best_locked(pool, bucket, (struct cw_size_fit){.bytes = bytes, .excess = UINT64_MAX});
    cw_lock_release(&bucket->lock);
    if (block != 0)
        set_next(block, 0);
    return block;
}

static uint32_t take_some_locked(const struct cw_pool *pool, struct cw_bucket *bucket, uint32_t max,
                                 uint32_t list, uint32_t *out_count)
{
    while (*out_count < max && head_of(bucket) != 0) {
        uint32_t block = first_locked(pool, bucket);

        set_next(block, list);
        list = block;
        ++*out_count;
    }
    return list;
}

uint32_t cw_bucket_take_some(struct cw_pool *pool, unsigned size_class, uint32_t max,
                             uint32_t *out_count)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t list = 0;

    *out_count = 0;
    if (is_empty(pool, size_class))
        return 0;
    stamp(pool, size_class);
    cw_lock_acquire(&bucket->lock);
    list = take_some_locked(pool, bucket, max, 0, out_count);
    cw_lock_release(&bucket->lock);
    return list;
}

void cw_bucket_put_back(struct cw_pool *pool, uint32_t block, uint64_t bytes)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = cw_size_class_down(held);
    struct cw_live_bucket *record;

    /* Another thread's record may have counted the hit; only the sum over the records counts. */
    cw_lock_acquire(&pool->bucket[size_class].lock);
    record = record_locked(pool, size_class);
    if (record != NULL) {
        cw_bucket_count(&record->hits, (uint64_t)-1);
        cw_bucket_count(&record->asked_bytes, -bytes);
        cw_bucket_count(&record->given_bytes, -held);
        add_idle(record, 1, held);
    }
    cw_lock_release(&pool->bucket[size_class].lock);
}

void cw_bucket_miss(struct cw_pool *pool, uint64_t bytes, uint64_t given)
{
    unsigned size_class = given < CW_SIZE_LEAST ? 0 : cw_size_class_down(given);
    struct cw_live_bucket *record;

    stamp(pool, size_class); /* the size is in use, though nothing lay here */
    cw_lock_acquire(&pool->bucket[size_class].lock);
    record = record_locked(pool, size_class);
    if (record != NULL) {
        cw_bucket_count(&record->misses, 1);
        cw_bucket_count(&record->asked_bytes, bytes);
        cw_bucket_count(&record->given_bytes, given);
    }
    cw_lock_release(&pool->bucket[size_class].lock);
}

/* ---- in and out ---- */

static void count_kept_locked(struct cw_pool *pool, unsigned size_class, uint64_t held,
                              uint64_t kept)
{
    struct cw_live_bucket *record = record_locked(pool, size_class);

    if (record == NULL)
        return;
    add_idle(record, 1, held);
    cw_bucket_count(&record->kept, kept);
}

int cw_bucket_put(struct cw_pool *pool, uint32_t block, int kept)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = cw_size_class_down(held);
    struct cw_bucket *bucket = &pool->bucket[size_class];
    int open;

    cw_lock_acquire(&bucket->lock);
    /* A pool context closes before its buckets are emptied, so what comes in while it is open is
     * found. */
    open = atomic_load_explicit(&pool->pool_context->state, memory_order_acquire) ==
           CW_POOL_CONTEXT_OPEN;
    if (open) {
        set_next(block, head_of(bucket));
        set_locked(bucket, block, count_of(bucket) + 1, bytes_of(bucket) + held);
        atomic_fetch_add_explicit(&cw_bucket_idle_bytes[pool->device], held, memory_order_relaxed);
    }
    if (kept)
        count_kept_locked(pool, size_class, held, 1);
    cw_lock_release(&bucket->lock);
    return open;
}

static void count_idle(struct cw_pool *pool, uint32_t block, uint64_t kept)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = cw_size_class_down(held);

    cw_lock_acquire(&pool->bucket[size_class].lock);
    count_kept_locked(pool, size_class, held, kept);
    cw_lock_release(&pool->bucket[size_class].lock);
}

void cw_bucket_kept(struct cw_pool *pool, uint32_t block)
{
    count_idle(pool, block, 1);
}

void cw_bucket_added(struct cw_pool *pool, uint32_t block)
{
    count_idle(pool, block, 0);
}

void cw_bucket_dropped(struct cw_pool *pool, uint32_t block, int released)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = held < CW_SIZE_LEAST ? 0 : cw_size_class_down(held);
    struct cw_bucket *bucket = &pool->bucket[size_class];

    cw_lock_acquire(&bucket->lock);
    if (record_locked(pool, size_class) != NULL) {
        add_idle(bucket->record, (uint64_t)-1, -held);
        cw_bucket_count(&bucket->record->released, released ? 1 : 0);
        cw_bucket_count(&bucket->record->released_bytes, released ? held : 0);
    }
    cw_lock_release(&bucket->lock);
}

uint32_t cw_bucket_take_excess(struct cw_pool *pool, unsigned size_class, uint64_t most_blocks,
                               int halved, uint32_t max)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t list = 0, count = 0, block;

    if (cw_bucket_is_within(count_of(bucket), bytes_of(bucket), most_blocks, halved))
        return 0;
    cw_lock_acquire(&bucket->lock);
    while (count < max && count < GO && head_of(bucket) != 0 &&
           !cw_bucket_is_within(count_of(bucket), bytes_of(bucket), most_blocks, halved)) {
        block = first_locked(pool, bucket);
        set_next(block, list);
        list = block;
        count++;
    }
    cw_lock_release(&bucket->lock);
    return list;
}

/* ---- what nobody needs ---- */

static uint32_t doom_locked(const struct cw_bucket *bucket)
{
    uint32_t doomed = 0;

    for (unsigned i = 0; i < CW_BUCKET_AGES; i++) {
        uint32_t older = i + 1 < CW_BUCKET_AGES ? bucket->unused[i + 1] : 0;
        uint32_t count = bucket->unused[i] - older;

        doomed += count - (uint32_t)(((uint64_t)count * stays[i] + 1023) / 1024);
    }
    return doomed;
}

static void age_locked(struct cw_bucket *bucket)
{
    for (unsigned i = CW_BUCKET_AGES - 1; i > 0; i--)
        bucket->unused[i] =
            bucket->unused[i - 1] < bucket->low ? bucket->unused[i - 1] : bucket->low;
    bucket->unused[0] = bucket->low;
}

uint32_t cw_bucket_sweep(struct cw_pool *pool, unsigned size_class, unsigned times)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t doomed;

    cw_lock_acquire(&bucket->lock);
    for (unsigned i = 0; i < times; i++) {
        age_locked(bucket);
        bucket->low = count_of(bucket);
    }
    doomed = doom_locked(bucket);
    cw_lock_release(&bucket->lock);
    atomic_store_explicit(&bucket->doomed, doomed, memory_order_relaxed);
    return doomed;
}

void cw_bucket_not_needed(struct cw_pool *pool, uint64_t held)
{
    struct cw_bucket *bucket = &pool->bucket[cw_size_class_down(held)];

    cw_lock_acquire(&bucket->lock);
    if (bucket->low < count_of(bucket))
        bucket->low++;
    cw_lock_release(&bucket->lock);
}

/* At most so many blocks are skipped to get at the oldest ones; beyond that age makes no
 * difference. */
#define PASSED 256u

static uint32_t take_oldest_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                                   uint32_t max)
{
    uint32_t list = 0, count = count_of(bucket) < max ? count_of(bucket) : max, before = 0;
    uint32_t passed = count_of(bucket) - count, block;

    for (uint32_t i = 0; passed <= PASSED && i < passed; i++)
        before = before != 0 ? cw_tracker_next(before) : head_of(bucket);
    for (; count > 0; count--) {
        block = before != 0 ? cw_tracker_next(before) : head_of(bucket);
        unlink_locked(pool, bucket, before, block);
        set_next(block, list);
        list = block;
    }
    return list;
}

static uint32_t take_oldest(struct cw_pool *pool, unsigned size_class, uint32_t max, int only_low)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t list;

    if (is_empty(pool, size_class))
        return 0;
    cw_lock_acquire(&bucket->lock);
    if (only_low && max > bucket->low)
        max = bucket->low;
    list = take_oldest_locked(pool, bucket, max < GO ? max : GO);
    cw_lock_release(&bucket->lock);
    return list;
}

uint32_t cw_bucket_take_oldest(struct cw_pool *pool, unsigned size_class, uint32_t max)
{
    return take_oldest(pool, size_class, max, 0);
}

/* A block that has been needed since the sweep stays after all. */
uint32_t cw_bucket_take_doomed(struct cw_pool *pool, unsigned size_class, uint32_t max)
{
    _Atomic uint32_t *doomed = &pool->bucket[size_class].doomed;
    uint32_t left = atomic_load_explicit(doomed, memory_order_relaxed), count = 0, list;

    if (left == 0)
        return 0;
    if (max > left)
        max = left;
    list = take_oldest(pool, size_class, max, 1);
    for (uint32_t block = list; block != 0; block = cw_tracker_next(block))
        count++;
    atomic_store_explicit(doomed, count == max ? left - count : 0, memory_order_relaxed);
    return list;
}

/* The pool context is closing. A look without the lock may miss a block whose thread found the
 * context open (cw_bucket_put). */
uint32_t cw_bucket_take_all(struct cw_pool *pool)
{
    uint32_t list = 0;

    for (unsigned c = 0; c < CW_SIZE_CLASSES; c++) {
        struct cw_bucket *bucket = &pool->bucket[c];
        uint32_t count = GO;

        while (count >= GO) {
            count = 0;
            cw_lock_acquire(&bucket->lock);
            list = take_some_locked(pool, bucket, GO, list, &count);
            cw_lock_release(&bucket->lock);
        }
    }
    return list;
}
