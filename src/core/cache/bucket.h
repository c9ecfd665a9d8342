/* SPDX-License-Identifier: MIT */
/*
 * Buckets: the idle blocks that all threads share.
 *
 * A pool holds the ready blocks of one context that can serve one class of requests, in a bucket
 * for each size (core/account/size_class.h): a list through the blocks' `link`, newest first. Each
 * bucket has its lock (CW_RANK_BUCKET), which also guards the bucket's records, the private one and
 * the one in the live layout. Always: a block in a bucket is idle, ready, and at least as large as
 * the bucket's size.
 *
 * A pool lasts as long as the process: a thread may have come by a pointer to it at any time, and
 * nobody knows which have. Its buckets, most of its memory, go to another pool once its context has
 * ended. Whoever comes late is told so by the pool, which never gets others: it names its buckets
 * until it loses them, and they are looked for again under a bucket's lock, which the one that
 * takes them away has passed once before they are anybody else's. What is read without the lock is
 * a hint.
 */
#ifndef CW_CORE_BUCKET_H
#define CW_CORE_BUCKET_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/account/site.h"
#include "core/account/size_class.h"
#include "core/cache/spare_buckets.h"
#include "core/process/types.h"
#include "live/arena.h"

struct cw_pool {
    struct cw_pool_context *pool_context;
    _Atomic(struct cw_buckets *) buckets; /* NULL: the context has ended */
    uint8_t class;                        /* enum cw_pool_class */
    uint8_t device;                       /* that the blocks count to: ordinal or CW_DEVICE_HOST */
    uint8_t kind;                         /* enum cw_kind */
    uint32_t id;                          /* counts up over all pools */
};

void cw_bucket_init(struct cw_arena *arena);
void cw_bucket_reset(void);

extern CW_HIDDEN _Atomic uint64_t cw_bucket_idle_bytes[CW_DEVICES];

/* Bytes in all buckets of a device. */
static inline uint64_t cw_bucket_idle(uint8_t device)
{
    return atomic_load_explicit(&cw_bucket_idle_bytes[device], memory_order_relaxed);
}

extern CW_HIDDEN _Atomic uint64_t cw_bucket_listed_bytes[CW_DEVICES];

/* Bytes of a device in the lists of batches (core/pending/waiting.h), which counts them here. */
static inline uint64_t cw_bucket_listed(uint8_t device)
{
    return atomic_load_explicit(&cw_bucket_listed_bytes[device], memory_order_relaxed);
}

static inline void cw_bucket_list(uint8_t device, uint64_t bytes)
{
    atomic_fetch_add_explicit(&cw_bucket_listed_bytes[device], bytes, memory_order_relaxed);
}

/* A pool without blocks; NULL without memory. */
struct cw_pool *cw_bucket_make_pool(struct cw_pool_context *pool_context, enum cw_pool_class class,
                                    uint8_t device);
/* One that nobody else has seen. */
void cw_bucket_unmake_pool(struct cw_pool *pool);
/* Its context has ended: its buckets are free for another pool. Returns blocks that lay in them,
 * linked. Any thread, any number of times; no lock held. */
uint32_t cw_bucket_retire(struct cw_pool *pool);

/* The bucket of a size, for hints; NULL: the pool has none any more. */
static inline struct cw_bucket *cw_bucket_of(const struct cw_pool *pool, unsigned size_class)
{
    struct cw_buckets *buckets = atomic_load_explicit(&pool->buckets, memory_order_acquire);

    return CW_LIKELY(buckets != NULL) ? &buckets->bucket[size_class] : NULL;
}

/* A record of the live layout for blocks of this size; NULL without memory. */
struct cw_live_bucket *cw_bucket_record(const struct cw_pool *pool, unsigned size_class,
                                        uint8_t owner);

/* To a counter with one writer. */
static inline void cw_bucket_count(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

/* The private record beside it (live/arena.h), which has what the library acts upon: whose blocks
 * it counts, and bytes that were asked, given and are idle. */
static inline struct cw_live_bucket *cw_bucket_own(struct cw_live_bucket *record)
{
    return (struct cw_live_bucket *)((char *)record + cw_site_own_offset);
}

/* To one that is there twice. */
static inline void cw_bucket_count_twice(_Atomic uint64_t *own, _Atomic uint64_t *shown,
                                         uint64_t value)
{
    value += atomic_load_explicit(own, memory_order_relaxed);
    atomic_store_explicit(own, value, memory_order_relaxed);
    atomic_store_explicit(shown, value, memory_order_relaxed);
}

static inline void cw_bucket_count_idle(struct cw_live_bucket *record, uint64_t blocks,
                                        uint64_t bytes)
{
    struct cw_live_bucket *own = cw_bucket_own(record);

    cw_bucket_count_twice(&own->idle_blocks, &record->idle_blocks, blocks);
    cw_bucket_count_twice(&own->idle_bytes, &record->idle_bytes, bytes);
}

/* What was asked, and the block's size. */
static inline void cw_bucket_count_given(struct cw_live_bucket *record, uint64_t asked,
                                         uint64_t given)
{
    struct cw_live_bucket *own = cw_bucket_own(record);

    cw_bucket_count_twice(&own->asked_bytes, &record->asked_bytes, asked);
    cw_bucket_count_twice(&own->given_bytes, &record->given_bytes, given);
}

/* An idle, ready block that fits, 0 for none: one of the request's own class if its excess is to be
 * had, else the smallest of the newest. Counts a hit. */
uint32_t cw_bucket_take(struct cw_pool *pool, struct cw_size_fit fit);
/* The smallest of the newest blocks of this class with at least so many bytes; 0: none. Not a
 * hit. */
uint32_t cw_bucket_take_least(struct cw_pool *pool, unsigned size_class, uint64_t bytes);
/* Up to `max` blocks of exactly this class, linked. Not a hit, but counts as a request for this
 * size. */
uint32_t cw_bucket_take_some(struct cw_pool *pool, unsigned size_class, uint32_t max,
                             uint32_t *out_count);
/* A block that was taken, and counted as a hit, did not serve after all: it counts as idle
 * again. */
void cw_bucket_put_back(struct cw_pool *pool, uint32_t block, uint64_t bytes);
/* The driver had to be asked. */
void cw_bucket_miss(struct cw_pool *pool, uint64_t bytes, uint64_t given);

/* A freed block is kept: counts it as idle, wherever it goes. */
void cw_bucket_kept(struct cw_pool *pool, uint32_t block);
/* The same for a block that was taken from the driver ahead of any request. */
void cw_bucket_added(struct cw_pool *pool, uint32_t block);
/* Puts an idle, ready block in; `kept`: and counts it as cw_bucket_kept does, else it is counted
 * already. 1, or 0: the pool_context is not open, the block must wait elsewhere. */
int cw_bucket_put(struct cw_pool *pool, uint32_t block, int kept);
/* So many more blocks of a size are in lists of batches, or fewer. */
void cw_bucket_add_pending(struct cw_pool *pool, unsigned size_class, uint32_t count);
/* How many are: a hint. */
static inline uint32_t cw_bucket_pending(const struct cw_pool *pool, unsigned size_class)
{
    const struct cw_bucket *bucket = cw_bucket_of(pool, size_class);

    return bucket != NULL ? atomic_load_explicit(&bucket->pending, memory_order_relaxed) : 0;
}
/* The block is no longer idle: it was released or, if not `released`, went with its context. */
void cw_bucket_dropped(struct cw_pool *pool, uint32_t block, int released);

/* POOL_BUCKET_MAX: so many blocks, or 64 MiB of them if that is more; 0: nothing. `halved`: half of
 * both, when memory is short. 1 if one more block of `held` bytes has room beside those that are
 * there, ready or not. */
#define CW_BUCKET_BYTES ((uint64_t)64 << 20)

static inline int cw_bucket_is_within(uint64_t blocks, uint64_t bytes, uint64_t most_blocks,
                                      int halved)
{
    if (most_blocks == 0)
        return 0;
    return halved ? blocks <= (most_blocks + 1) / 2 || bytes <= CW_BUCKET_BYTES / 2
                  : blocks <= most_blocks || bytes <= CW_BUCKET_BYTES;
}

static inline int cw_bucket_has_room(const struct cw_pool *pool, uint64_t held,
                                     uint64_t most_blocks, int halved)
{
    const struct cw_bucket *bucket = cw_bucket_of(pool, cw_size_class_down(held));
    uint64_t pending, blocks;

    if (CW_UNLIKELY(bucket == NULL))
        return 0;
    pending = atomic_load_explicit(&bucket->pending, memory_order_relaxed);
    blocks = atomic_load_explicit(&bucket->count, memory_order_relaxed) + pending;
    return cw_bucket_is_within(blocks + 1,
                               atomic_load_explicit(&bucket->bytes, memory_order_relaxed) +
                                   (pending + 1) * held,
                               most_blocks, halved);
}
/* Linked: at most `max` blocks that are beyond that. */
uint32_t cw_bucket_take_excess(struct cw_pool *pool, unsigned size_class, uint64_t most_blocks,
                               int halved, uint32_t max);

/* A hint. */
static inline int cw_bucket_has_blocks(const struct cw_pool *pool, unsigned size_class)
{
    const struct cw_bucket *bucket = cw_bucket_of(pool, size_class);

    return bucket != NULL && atomic_load_explicit(&bucket->head, memory_order_relaxed) != 0;
}

/* The tick of the last request for this size, 0: none. */
static inline uint32_t cw_bucket_stamp(const struct cw_pool *pool, unsigned size_class)
{
    const struct cw_bucket *bucket = cw_bucket_of(pool, size_class);

    return bucket != NULL ? atomic_load_explicit(&bucket->stamp, memory_order_relaxed) : 0;
}

/* A sweep has come (core/reclaim/sweep.c), or several at once: how many blocks, of those that
 * nobody has needed for some sweeps, are to go. */
uint32_t cw_bucket_sweep(struct cw_pool *pool, unsigned size_class, unsigned times);
/* A block that has just come in was in a thread's cache, unused since the sweep. */
void cw_bucket_not_needed(struct cw_pool *pool, uint64_t held);
/* Linked: at most `max` of them. */
uint32_t cw_bucket_take_doomed(struct cw_pool *pool, unsigned size_class, uint32_t max);
/* Linked: at most `max` blocks, the oldest where the bucket is short. */
uint32_t cw_bucket_take_oldest(struct cw_pool *pool, unsigned size_class, uint32_t max);
/* All, linked. Holds no lock for longer than some hundred blocks take. */
uint32_t cw_bucket_take_all(struct cw_pool *pool);

#endif
