/* SPDX-License-Identifier: MIT */
/* The shared buckets of a pool. See bucket.h. */
#include "core/cache/bucket.h"

#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/cache/bucket_inside.h"
#include "core/cache/pool_context.h"
#include "core/cache/spare_buckets.h"
#include "core/process/session.h"
#include "core/account/tracker.h"

/* How many blocks of a bucket a search for a fitting one looks at. */
#define LOOKS 32

static struct cw_arena *arena;
static _Atomic uint32_t pools;
_Atomic uint64_t cw_bucket_idle_bytes[CW_DEVICES];
_Atomic uint64_t cw_bucket_listed_bytes[CW_DEVICES];

void cw_bucket_init(struct cw_arena *in)
{
    arena = in;
}

void cw_bucket_reset(void)
{
    cw_spare_buckets_reset();
    for (int i = 0; i < CW_DEVICES; i++) {
        atomic_store_explicit(&cw_bucket_idle_bytes[i], 0, memory_order_relaxed);
        atomic_store_explicit(&cw_bucket_listed_bytes[i], 0, memory_order_relaxed);
    }
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
    struct cw_buckets *buckets;

    if (pool == NULL)
        return NULL;
    pool->pool_context = pool_context;
    pool->class = (uint8_t) class;
    pool->kind = kind_of(class);
    pool->device = pool->kind == CW_KIND_PINNED ? CW_DEVICE_HOST : device;
    pool->id = atomic_fetch_add(&pools, 1);
    buckets = cw_spare_buckets_take(pool->device, pool->kind);
    if (buckets == NULL) {
        cw_mem_free(pool, sizeof(*pool));
        return NULL;
    }
    atomic_store_explicit(&pool->buckets, buckets, memory_order_release);
    return pool;
}

void cw_bucket_unmake_pool(struct cw_pool *pool)
{
    cw_spare_buckets_give(atomic_load(&pool->buckets));
    cw_mem_free(pool, sizeof(*pool));
}

struct cw_live_bucket *cw_bucket_record(const struct cw_pool *pool, unsigned size_class,
                                        uint8_t owner)
{
    uint32_t index = cw_arena_append(arena, CW_TABLE_BUCKET);
    struct cw_live_bucket *record, *shown;

    if (index == 0)
        return NULL;
    shown = cw_arena_at(arena, CW_TABLE_BUCKET, index);
    record = cw_arena_own(arena, shown);
    record->context = pool->pool_context->context;
    record->device = pool->device;
    record->kind = pool->kind;
    record->owner = owner;
    if (shown != record)
        memcpy(shown, record, sizeof(*record)); /* its counters are all zero */
    /* Last: a reader skips one without a size. */
    atomic_store_explicit(&record->size, cw_size_class_bytes(size_class), memory_order_release);
    atomic_store_explicit(&shown->size, cw_size_class_bytes(size_class), memory_order_release);
    return shown;
}

/* Also of a pool that has no buckets any more: to count is to add to the records of the device and
 * kind, so it borrows some. NULL without memory. */
static struct cw_bucket *enter_to_count(const struct cw_pool *pool, unsigned size_class,
                                        struct cw_buckets **out_borrowed)
{
    struct cw_bucket *bucket = cw_bucket_enter(pool, size_class);

    *out_borrowed = NULL;
    if (CW_LIKELY(bucket != NULL))
        return bucket;
    *out_borrowed = cw_spare_buckets_take(pool->device, pool->kind);
    if (*out_borrowed == NULL)
        return NULL;
    bucket = &(*out_borrowed)->bucket[size_class];
    cw_lock_acquire(&bucket->lock);
    return bucket;
}

static void leave_counted(struct cw_bucket *bucket, struct cw_buckets *borrowed)
{
    cw_bucket_leave(bucket);
    if (CW_UNLIKELY(borrowed != NULL))
        cw_spare_buckets_give(borrowed);
}

static struct cw_live_bucket *record_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                                            unsigned size_class)
{
    if (CW_UNLIKELY(bucket->record == NULL))
        bucket->record = cw_bucket_record(pool, size_class, 0);
    return bucket->record;
}

/* ---- the list ---- */

/* The smallest of the newest blocks that fit. */
static uint32_t best_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                            unsigned size_class, struct cw_size_fit fit)
{
    uint64_t least = cw_size_class_bytes(size_class);
    uint32_t best = 0, before_best = 0, before = 0, looks = 0;

    if (least < cw_size_exact(fit.bytes))
        least = cw_size_exact(fit.bytes);
    for (uint32_t block = cw_bucket_head(bucket); block != 0 && looks < LOOKS;
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
        cw_bucket_unlink_locked(pool, bucket, before_best, best);
    return best;
}

/* Read before the lock is taken: the clock is part of the driver (core/process/driver_ops.h). */
static uint32_t tick(void)
{
    return cw_session_tick(cw_session_now());
}

static void stamp_locked(struct cw_bucket *bucket, uint32_t now)
{
    atomic_store_explicit(&bucket->stamp, now, memory_order_relaxed);
}

static void hit_locked(const struct cw_pool *pool, struct cw_bucket *bucket, unsigned size_class,
                       uint32_t block, uint64_t bytes)
{
    struct cw_live_bucket *record = record_locked(pool, bucket, size_class);

    if (record == NULL)
        return;
    cw_bucket_count(&record->hits, 1);
    cw_bucket_count_given(record, bytes, cw_tracker_held(block));
    cw_bucket_count_idle(record, (uint64_t)-1, -cw_tracker_held(block));
}

/* Most buckets are empty: a look without the lock saves taking it. */
static uint32_t take_from(struct cw_pool *pool, unsigned size_class, struct cw_size_fit fit)
{
    struct cw_bucket *bucket;
    uint32_t block, now;

    if (!cw_bucket_has_blocks(pool, size_class))
        return 0;
    now = tick();
    bucket = cw_bucket_enter(pool, size_class);
    if (bucket == NULL)
        return 0;
    stamp_locked(bucket, now);
    block = best_locked(pool, bucket, size_class, fit);
    if (block != 0)
        hit_locked(pool, bucket, size_class, block, fit.bytes);
    cw_bucket_leave(bucket);
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
    struct cw_bucket *bucket =
        cw_bucket_has_blocks(pool, size_class) ? cw_bucket_enter(pool, size_class) : NULL;
    uint32_t block;

    if (bucket == NULL)
        return 0;
    block = best_locked(pool, bucket, size_class,
                        (struct cw_size_fit){.bytes = bytes, .excess = UINT64_MAX});
    cw_bucket_leave(bucket);
    if (block != 0)
        cw_bucket_set_next(block, 0);
    return block;
}

uint32_t cw_bucket_take_some(struct cw_pool *pool, unsigned size_class, uint32_t max,
                             uint32_t *out_count)
{
    struct cw_bucket *bucket;
    uint32_t list, now;

    *out_count = 0;
    if (!cw_bucket_has_blocks(pool, size_class))
        return 0;
    now = tick();
    bucket = cw_bucket_enter(pool, size_class);
    if (bucket == NULL)
        return 0;
    stamp_locked(bucket, now);
    list = cw_bucket_take_some_locked(pool, bucket, max, 0, out_count);
    cw_bucket_leave(bucket);
    return list;
}

void cw_bucket_put_back(struct cw_pool *pool, uint32_t block, uint64_t bytes)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = cw_size_class_down(held);
    struct cw_buckets *borrowed;
    struct cw_bucket *bucket = enter_to_count(pool, size_class, &borrowed);
    struct cw_live_bucket *record;

    if (bucket == NULL)
        return;
    /* Another thread's record may have counted the hit; only the sum over the records counts. */
    record = record_locked(pool, bucket, size_class);
    if (record != NULL) {
        cw_bucket_count(&record->hits, (uint64_t)-1);
        cw_bucket_count_given(record, -bytes, -held);
        cw_bucket_count_idle(record, 1, held);
    }
    leave_counted(bucket, borrowed);
}

void cw_bucket_miss(struct cw_pool *pool, uint64_t bytes, uint64_t given)
{
    unsigned size_class = given < CW_SIZE_LEAST ? 0 : cw_size_class_down(given);
    uint32_t now = tick();
    struct cw_buckets *borrowed;
    struct cw_bucket *bucket = enter_to_count(pool, size_class, &borrowed);
    struct cw_live_bucket *record;

    if (bucket == NULL)
        return;
    stamp_locked(bucket, now); /* the size is in use, though nothing lay here */
    record = record_locked(pool, bucket, size_class);
    if (record != NULL) {
        cw_bucket_count(&record->misses, 1);
        cw_bucket_count_given(record, bytes, given);
    }
    leave_counted(bucket, borrowed);
}

/* ---- in and out ---- */

static void count_kept_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                              unsigned size_class, uint64_t held, uint64_t kept)
{
    struct cw_live_bucket *record = record_locked(pool, bucket, size_class);

    if (record == NULL)
        return;
    cw_bucket_count_idle(record, 1, held);
    cw_bucket_count(&record->kept, kept);
}

static void count_idle(struct cw_pool *pool, uint32_t block, uint64_t kept)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = cw_size_class_down(held);
    struct cw_buckets *borrowed;
    struct cw_bucket *bucket = enter_to_count(pool, size_class, &borrowed);

    if (bucket == NULL)
        return;
    count_kept_locked(pool, bucket, size_class, held, kept);
    leave_counted(bucket, borrowed);
}

int cw_bucket_put(struct cw_pool *pool, uint32_t block, int kept)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = cw_size_class_down(held);
    struct cw_bucket *bucket = cw_bucket_enter(pool, size_class);
    int open;

    if (CW_UNLIKELY(bucket == NULL)) {
        if (kept)
            count_idle(pool, block, 1);
        return 0;
    }
    /* A pool context closes before its buckets are emptied, so what comes in while it is open is
     * found. */
    open = atomic_load_explicit(&pool->pool_context->state, memory_order_acquire) ==
           CW_POOL_CONTEXT_OPEN;
    if (open) {
        cw_bucket_set_next(block, cw_bucket_head(bucket));
        cw_bucket_set_locked(bucket, block, cw_bucket_blocks(bucket) + 1,
                             cw_bucket_bytes(bucket) + held);
        atomic_fetch_add_explicit(&cw_bucket_idle_bytes[pool->device], held, memory_order_relaxed);
    }
    if (kept)
        count_kept_locked(pool, bucket, size_class, held, 1);
    cw_bucket_leave(bucket);
    return open;
}

void cw_bucket_kept(struct cw_pool *pool, uint32_t block)
{
    count_idle(pool, block, 1);
}

void cw_bucket_added(struct cw_pool *pool, uint32_t block)
{
    count_idle(pool, block, 0);
}

void cw_bucket_add_pending(struct cw_pool *pool, unsigned size_class, uint32_t count)
{
    struct cw_bucket *bucket = cw_bucket_enter(pool, size_class);

    if (bucket == NULL)
        return;
    atomic_store_explicit(&bucket->pending,
                          atomic_load_explicit(&bucket->pending, memory_order_relaxed) + count,
                          memory_order_relaxed);
    cw_bucket_leave(bucket);
}

void cw_bucket_dropped(struct cw_pool *pool, uint32_t block, int released)
{
    uint64_t held = cw_tracker_held(block);
    unsigned size_class = held < CW_SIZE_LEAST ? 0 : cw_size_class_down(held);
    struct cw_buckets *borrowed;
    struct cw_bucket *bucket = enter_to_count(pool, size_class, &borrowed);
    struct cw_live_bucket *record;

    if (bucket == NULL)
        return;
    record = record_locked(pool, bucket, size_class);
    if (record != NULL) {
        cw_bucket_count_idle(record, (uint64_t)-1, -held);
        cw_bucket_count(&record->released, released ? 1 : 0);
        cw_bucket_count(&record->released_bytes, released ? held : 0);
    }
    leave_counted(bucket, borrowed);
}

uint32_t cw_bucket_take_excess(struct cw_pool *pool, unsigned size_class, uint64_t most_blocks,
                               int halved, uint32_t max)
{
    struct cw_bucket *bucket = cw_bucket_of(pool, size_class);
    uint32_t list = 0, count = 0, block;

    if (bucket == NULL ||
        cw_bucket_is_within(cw_bucket_blocks(bucket), cw_bucket_bytes(bucket), most_blocks, halved))
        return 0;
    bucket = cw_bucket_enter(pool, size_class);
    if (bucket == NULL)
        return 0;
    while (count < max && count < CW_BUCKET_GO && cw_bucket_head(bucket) != 0 &&
           !cw_bucket_is_within(cw_bucket_blocks(bucket), cw_bucket_bytes(bucket), most_blocks,
                                halved)) {
        block = cw_bucket_first_locked(pool, bucket);
        cw_bucket_set_next(block, list);
        list = block;
        count++;
    }
    cw_bucket_leave(bucket);
    return list;
}

/* ---- the end of a pool ---- */

/* The pool context is closing. A look without the lock may miss a block whose thread found the
 * context open (cw_bucket_put). */
uint32_t cw_bucket_take_all(struct cw_pool *pool)
{
    uint32_t list = 0;

    for (unsigned c = 0; c < CW_SIZE_CLASSES; c++) {
        struct cw_bucket *bucket;
        uint32_t count = CW_BUCKET_GO;

        while (count >= CW_BUCKET_GO && (bucket = cw_bucket_enter(pool, c)) != NULL) {
            count = 0;
            list = cw_bucket_take_some_locked(pool, bucket, CW_BUCKET_GO, list, &count);
            cw_bucket_leave(bucket);
        }
    }
    return list;
}

/* As new, but for its record. */
static void clear_locked(struct cw_bucket *bucket)
{
    atomic_store_explicit(&bucket->stamp, 0, memory_order_relaxed);
    atomic_store_explicit(&bucket->pending, 0, memory_order_relaxed);
    atomic_store_explicit(&bucket->doomed, 0, memory_order_relaxed);
    bucket->low = 0;
    for (unsigned i = 0; i < CW_BUCKET_AGES; i++)
        bucket->unused[i] = 0;
}

/* From the exchange on no thread that then takes a bucket's lock takes it for this pool's; one that
 * has it already is waited for. */
uint32_t cw_bucket_retire(struct cw_pool *pool)
{
    struct cw_buckets *buckets = atomic_exchange(&pool->buckets, NULL);
    uint32_t list = 0;

    if (buckets == NULL)
        return 0;
    for (unsigned c = 0; c < CW_SIZE_CLASSES; c++) {
        struct cw_bucket *bucket = &buckets->bucket[c];
        uint32_t count = 0;

        cw_lock_acquire(&bucket->lock);
        list = cw_bucket_take_some_locked(pool, bucket, UINT32_MAX, list, &count);
        clear_locked(bucket);
        cw_bucket_leave(bucket);
    }
    cw_spare_buckets_give(buckets);
    return list;
}
