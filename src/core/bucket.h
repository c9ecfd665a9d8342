/* SPDX-License-Identifier: MIT */
/*
 * Buckets: the idle blocks that all threads share.
 *
 * A pool holds the ready blocks of one context that can serve one class of requests, in a bucket
 * for each size (core/size_class.h): a list through the blocks' `link`, newest first. Each bucket
 * has its lock (CW_RANK_BUCKET), which also guards the bucket's record in the live layout. Always:
 * a block in a bucket is idle, ready, and at least as large as the bucket's size.
 */
#ifndef CW_CORE_BUCKET_H
#define CW_CORE_BUCKET_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/size_class.h"
#include "live/arena.h"

/* What can stand in for what. Pinned memory by the flags of cuMemHostAlloc; cuMemAllocHost is a
 * class of its own, because the flags that it implies are the driver's business. */
enum cw_pool_class {
    CW_POOL_DEVICE,
    CW_POOL_PITCHED,
    CW_POOL_HOST,
    CW_POOL_HOST_FLAGS, /* + flags 0..7 */
    CW_POOL_CLASSES = CW_POOL_HOST_FLAGS + 8,
};

struct cw_bucket {
    struct cw_lock lock;
    _Atomic uint32_t head; /* written under the lock; a look without it is a hint */
    _Atomic uint32_t count;
    _Atomic uint64_t bytes;
    _Atomic uint32_t used;         /* the look at the device before which a block last went out */
    struct cw_live_bucket *record; /* of owner 0; NULL: not made yet, or no memory */
};

struct cw_pool {
    struct cw_realm *realm;
    uint8_t class;  /* enum cw_pool_class */
    uint8_t device; /* that the blocks count to: ordinal or CW_DEVICE_HOST */
    uint8_t kind;   /* enum cw_kind */
    uint32_t id;    /* counts up over all pools */
    struct cw_bucket bucket[CW_SIZE_CLASSES];
};

void cw_bucket_init(struct cw_arena *arena);
void cw_bucket_reset(void);

extern CW_HIDDEN _Atomic uint64_t cw_bucket_idle_bytes[CW_DEVICES];

/* Bytes in all buckets of a device. */
static inline uint64_t cw_bucket_idle(uint8_t device)
{
    return atomic_load_explicit(&cw_bucket_idle_bytes[device], memory_order_relaxed);
}

/* A pool without blocks; NULL without memory. */
struct cw_pool *cw_bucket_make_pool(struct cw_realm *realm, enum cw_pool_class class,
                                    uint8_t device);

/* A record of the live layout for blocks of this size; NULL without memory. */
struct cw_live_bucket *cw_bucket_record(const struct cw_pool *pool, unsigned size_class,
                                        uint8_t owner);

/* To a counter with one writer. */
static inline void cw_bucket_count(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

/* An idle, ready block for the request: of its own size, or at most an eighth larger; 0 for none.
 * Counts a hit. */
uint32_t cw_bucket_take(struct cw_pool *pool, uint64_t bytes);
/* The same for a block of at most `most` bytes, the smallest that there is. */
uint32_t cw_bucket_take_larger(struct cw_pool *pool, uint64_t bytes, uint64_t most);
/* The smallest of the newest blocks of this class that has so many bytes; 0 for none. No hit. */
uint32_t cw_bucket_take_least(struct cw_pool *pool, unsigned size_class, uint64_t bytes);
/* Up to `max` blocks of exactly this class, linked; no hit. */
uint32_t cw_bucket_take_some(struct cw_pool *pool, unsigned size_class, uint32_t max,
                             uint32_t *out_count);
/* What was taken, and counted as a hit, did not serve after all: it counts as idle again. */
void cw_bucket_put_back(struct cw_pool *pool, uint32_t block, uint64_t bytes);
/* The driver had to be asked. */
void cw_bucket_miss(struct cw_pool *pool, uint64_t bytes, uint64_t given);

/* A free was kept: counts the block among the idle ones, wherever it goes. */
void cw_bucket_kept(struct cw_pool *pool, uint32_t block);
/* The same for a block that was taken from the driver ahead of any request. */
void cw_bucket_added(struct cw_pool *pool, uint32_t block);
/* Puts an idle, ready block in; `kept`: and counts it as cw_bucket_kept does, else it is counted
 * already. 1, or 0: the realm is not open, the block must wait elsewhere. */
int cw_bucket_put(struct cw_pool *pool, uint32_t block, int kept);
/* The block is idle no more: it went back to the driver, or (not `released`) with its context. */
void cw_bucket_dropped(struct cw_pool *pool, uint32_t block, int released);

/* What a bucket keeps: so many blocks, or 64 MiB of them if that is more; 0: nothing. `halved`:
 * half of both, when memory is short. 1 if one more block of `held` bytes has room. */
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
    const struct cw_bucket *bucket = &pool->bucket[cw_size_class_down(held)];
    uint64_t blocks = atomic_load_explicit(&bucket->count, memory_order_relaxed);

    return cw_bucket_is_within(blocks + 1,
                               atomic_load_explicit(&bucket->bytes, memory_order_relaxed) + held,
                               most_blocks, halved);
}
/* Linked: at most `max` blocks that are beyond that. */
uint32_t cw_bucket_take_excess(struct cw_pool *pool, unsigned size_class, uint64_t most_blocks,
                               int halved, uint32_t max);

/* A hint. */
static inline int cw_bucket_has_blocks(const struct cw_pool *pool, unsigned size_class)
{
    return atomic_load_explicit(&pool->bucket[size_class].head, memory_order_relaxed) != 0;
}

/* So many blocks of this class have `bytes` in all; 1..max. */
static inline uint32_t cw_bucket_blocks_for(unsigned size_class, uint64_t bytes, uint32_t max)
{
    uint64_t size = cw_size_class_bytes(size_class), blocks = (bytes + size - 1) / size;

    return blocks == 0 ? 1 : blocks < max ? (uint32_t)blocks : max;
}

/* The pools have been looked at for what is in use: counts up. */
void cw_bucket_look(void);
/* Blocks of this bucket serve by another way than a hit in it. */
void cw_bucket_touch(struct cw_pool *pool, unsigned size_class);
/* How many looks ago a block of this bucket last went out; 0: since the last. */
uint32_t cw_bucket_unused_for(const struct cw_pool *pool, unsigned size_class);

/* Linked: those above 64 MiB that have been idle since before. */
uint32_t cw_bucket_take_old(struct cw_pool *pool, uint64_t since_ns);
/* Linked: all. No lock is held for longer than some hundred blocks take. */
uint32_t cw_bucket_take_all(struct cw_pool *pool);

#endif
