/* SPDX-License-Identifier: MIT */
/* The shared buckets of a pool. See bucket.h. */
#include "core/bucket.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "core/realm.h"
#include "core/tracker.h"

/* Blocks that a search for one that fits looks at in a bucket. */
#define LOOKS 32
/* Blocks that are taken out of a bucket under its lock in one go: some microseconds. */
#define GO 256u

static struct cw_arena *arena;
static _Atomic uint32_t pools;
_Atomic uint64_t cw_bucket_idle_bytes[CW_DEVICES];
static _Atomic uint32_t looks;

void cw_bucket_init(struct cw_arena *in)
{
    arena = in;
}

void cw_bucket_reset(void)
{
    for (int i = 0; i < CW_DEVICES; i++)
        atomic_store_explicit(&cw_bucket_idle_bytes[i], 0, memory_order_relaxed);
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

struct cw_pool *cw_bucket_make_pool(struct cw_realm *realm, enum cw_pool_class class,
                                    uint8_t device)
{
    struct cw_pool *pool = cw_mem_alloc(sizeof(*pool));

    if (pool == NULL)
        return NULL;
    pool->realm = realm;
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
    record->context = pool->realm->context;
    record->device = pool->device;
    record->kind = pool->kind;
    record->owner = owner;
    record->size = cw_size_class_bytes(size_class); /* last: a reader skips one without a size */
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

/* ---- the list ----------------------------------------------------------------------------------
 */

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
}

static uint32_t first_locked(const struct cw_pool *pool, struct cw_bucket *bucket)
{
    uint32_t block = head_of(bucket);

    if (block != 0)
        unlink_locked(pool, bucket, 0, block);
    return block;
}

/* The smallest of the newest blocks of `bytes` to `most`. */
static uint32_t best_locked(const struct cw_pool *pool, struct cw_bucket *bucket, uint64_t bytes,
                            uint64_t most)
{
    uint32_t best = 0, before_best = 0, before = 0, looks = 0;

    for (uint32_t block = head_of(bucket); block != 0 && looks < LOOKS;
         block = cw_tracker_next(block)) {
        if (cw_tracker_held(block) >= bytes && cw_tracker_held(block) <= most &&
            (best == 0 || cw_tracker_held(block) < cw_tracker_held(best))) {
            best = block;
            before_best = before;
        }
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

void cw_bucket_touch(struct cw_pool *pool, unsigned size_class)
{
    atomic_store_explicit(&pool->bucket[size_class].used,
                          atomic_load_explicit(&looks, memory_order_relaxed), memory_order_relaxed);
}

static void hit_locked(struct cw_pool *pool, unsigned size_class, uint32_t block, uint64_t bytes)
{
    struct cw_live_bucket *record = record_locked(pool, size_class);

    cw_bucket_touch(pool, size_class);
    if (record == NULL)
        return;
    cw_bucket_count(&record->hits, 1);
    cw_bucket_count(&record->asked_bytes, bytes);
    cw_bucket_count(&record->given_bytes, cw_tracker_held(block));
    add_idle(record, (uint64_t)-1, -cw_tracker_held(block));
}

/* most 0: every block of the bucket will do. */
static uint32_t take_from(struct cw_pool *pool, unsigned size_class, uint64_t bytes, uint64_t most)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t block;

    cw_lock_acquire(&bucket->lock);
    block = most == 0 ? first_locked(pool, bucket) : best_locked(pool, bucket, bytes, most);
    if (block != 0)
        hit_locked(pool, size_class, block, bytes);
    cw_lock_release(&bucket->lock);
    return block;
}

/* A look without the lock saves it for buckets that are empty, as most are. */
static int is_empty(const struct cw_pool *pool, unsigned size_class)
{
    return head_of(&pool->bucket[size_class]) == 0;
}

/* From the class that holds it exactly on, up to that of `most`. */
static uint32_t take_between(struct cw_pool *pool, uint64_t bytes, uint64_t most, unsigned first)
{
    unsigned last = cw_size_class_up(most < CW_SIZE_MOST ? most : CW_SIZE_MOST);
    uint32_t block = 0;

    for (unsigned c = first; block == 0 && c < CW_SIZE_CLASSES && c <= last; c++)
        if (!is_empty(pool, c))
            block = take_from(pool, c, bytes, most);
    return block;
}

uint32_t cw_bucket_take(struct cw_pool *pool, uint64_t bytes)
{
    unsigned up = cw_size_class_up(bytes);
    /* Rounded requests have a bucket in which every block will do. Blocks of other sizes (asked for
     * exactly, pitched) lie one below. */
    int rounded = bytes <= CW_SIZE_ROUNDED && pool->class != CW_POOL_PITCHED;
    unsigned first = rounded || bytes < CW_SIZE_LEAST ? up : cw_size_class_down(bytes);
    uint64_t most = cw_size_largest_for(bytes);
    uint32_t block = 0;

    if (rounded && !is_empty(pool, up))
        block = take_from(pool, up, bytes, 0);
    if (block == 0 && rounded && up > 0 && !is_empty(pool, up - 1))
        block = take_from(pool, up - 1, bytes, most);
    return block != 0 ? block : take_between(pool, bytes, most, first);
}

uint32_t cw_bucket_take_larger(struct cw_pool *pool, uint64_t bytes, uint64_t most)
{
    return take_between(pool, bytes, most, bytes < CW_SIZE_LEAST ? 0 : cw_size_class_down(bytes));
}

uint32_t cw_bucket_take_least(struct cw_pool *pool, unsigned size_class, uint64_t bytes)
{
    struct cw_bucket *bucket = &pool->bucket[size_class];
    uint32_t block;

    if (is_empty(pool, size_class))
        return 0;
    cw_lock_acquire(&bucket->lock);
    block = best_locked(pool, bucket, bytes, UINT64_MAX);
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

    /* A hoard may have counted the hit; what counts is the sum of the records. */
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

    cw_lock_acquire(&pool->bucket[size_class].lock);
    cw_bucket_touch(pool, size_class); /* the size is in use, though nothing lay here */
    record = record_locked(pool, size_class);
    if (record != NULL) {
        cw_bucket_count(&record->misses, 1);
        cw_bucket_count(&record->asked_bytes, bytes);
        cw_bucket_count(&record->given_bytes, given);
    }
    cw_lock_release(&pool->bucket[size_class].lock);
}

/* ---- in and out --------------------------------------------------------------------------------
 */

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
    /* A realm closes before its buckets are emptied: what comes in while it is open is found. */
    open = atomic_load_explicit(&pool->realm->state, memory_order_acquire) == CW_REALM_OPEN;
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

void cw_bucket_look(void)
{
    atomic_fetch_add_explicit(&looks, 1, memory_order_relaxed);
}

uint32_t cw_bucket_unused_for(const struct cw_pool *pool, unsigned size_class)
{
    return atomic_load_explicit(&looks, memory_order_relaxed) -
           atomic_load_explicit(&pool->bucket[size_class].used, memory_order_relaxed);
}

static int is_old(uint32_t block, uint64_t since_ns)
{
    return cw_tracker_held(block) > CW_SIZE_ROUNDED &&
           atomic_load_explicit(&cw_tracker_at(block)->born_ns, memory_order_relaxed) <= since_ns;
}

/* A list of those that have been idle since before; the others stay, in order. */
static uint32_t take_old_locked(const struct cw_pool *pool, struct cw_bucket *bucket,
                                uint64_t since_ns, uint32_t list)
{
    uint32_t before = 0, next;

    for (uint32_t block = head_of(bucket); block != 0; block = next) {
        next = cw_tracker_next(block);
        if (!is_old(block, since_ns)) {
            before = block;
            continue;
        }
        unlink_locked(pool, bucket, before, block);
        set_next(block, list);
        list = block;
    }
    return list;
}

uint32_t cw_bucket_take_old(struct cw_pool *pool, uint64_t since_ns)
{
    uint32_t list = 0;

    for (unsigned c = cw_size_class_up(CW_SIZE_ROUNDED); c < CW_SIZE_CLASSES; c++) {
        if (is_empty(pool, c))
            continue;
        cw_lock_acquire(&pool->bucket[c].lock);
        list = take_old_locked(pool, &pool->bucket[c], since_ns, list);
        cw_lock_release(&pool->bucket[c].lock);
    }
    return list;
}

/* With a realm that closes, the lock tells what a look without it may miss: a block whose thread
 * has found the realm open (cw_bucket_put). */
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
