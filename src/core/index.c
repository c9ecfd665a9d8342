/* SPDX-License-Identifier: MIT */
/*
 * Sharded open addressing with linear probing and backward-shift deletion (no tombstones, so a
 * table that churns for days does not slow down). See index.h.
 */
#include "core/index.h"

#include "base/compiler.h"
#include "base/lock.h"
#include "base/mem.h"

#define SHARD_BITS     6
#define SHARDS         (1u << SHARD_BITS)
#define FIRST_CAPACITY 64u /* slots per shard; a power of two */

struct slot {
    uint64_t key;
    uint32_t block; /* 0: empty */
    uint32_t space;
};

struct CW_ALIGNED_LINE shard {
    struct cw_lock lock; /* guards everything below */
    uint32_t used;
    uint32_t capacity; /* power of two, or 0 */
    struct slot *slots;
};

static struct shard shards[SHARDS] = {
    [0 ... SHARDS - 1] = {.lock = CW_LOCK_INIT(CW_RANK_INDEX)},
};

/* Fibonacci hashing with a fold: keys are multiples of 512 or heap pointers, their low bits say
 * nothing. */
static uint64_t hash_of(enum cw_space space, uint64_t key)
{
    uint64_t h = (key ^ ((uint64_t)space << 57)) * 0x9e3779b97f4a7c15ull;

    return h ^ (h >> 29);
}

static struct shard *shard_of(uint64_t hash)
{
    return &shards[hash & (SHARDS - 1)];
}

static uint32_t home(const struct shard *shard, uint64_t hash)
{
    return (uint32_t)(hash >> SHARD_BITS) & (shard->capacity - 1);
}

/* The slot that holds the key, or the empty one where it belongs. There is always an empty one. */
static struct slot *probe(const struct shard *shard, uint64_t hash, enum cw_space space,
                          uint64_t key)
{
    uint32_t i = home(shard, hash);

    while (shard->slots[i].block != 0 &&
           (shard->slots[i].key != key || shard->slots[i].space != (uint32_t)space))
        i = (i + 1) & (shard->capacity - 1);
    return &shard->slots[i];
}

static int grow_locked(struct shard *shard)
{
    struct shard bigger = {.capacity = shard->capacity ? shard->capacity * 2 : FIRST_CAPACITY};

    bigger.slots = cw_mem_alloc(bigger.capacity * sizeof(struct slot));
    if (bigger.slots == NULL)
        return -1;
    for (uint32_t i = 0; i < shard->capacity; i++) {
        const struct slot *old = &shard->slots[i];

        if (old->block != 0)
            *probe(&bigger, hash_of(old->space, old->key), old->space, old->key) = *old;
    }
    if (shard->slots != NULL)
        cw_mem_free(shard->slots, shard->capacity * sizeof(struct slot));
    shard->slots = bigger.slots;
    shard->capacity = bigger.capacity;
    return 0;
}

/* replace 0: an old owner of the key stays. */
static int put(enum cw_space space, uint64_t key, uint32_t block, int replace, uint32_t *out_old)
{
    uint64_t hash = hash_of(space, key);
    struct shard *shard = shard_of(hash);
    int rc = 0;

    *out_old = 0;
    cw_lock_acquire(&shard->lock);
    /* At most three quarters full. */
    if ((shard->used + 1) * 4 > shard->capacity * 3 && grow_locked(shard) != 0) {
        rc = -1;
    } else {
        struct slot *slot = probe(shard, hash, space, key);

        if (slot->block != 0)
            *out_old = slot->block;
        else
            shard->used++;
        if (*out_old == 0 || replace)
            *slot = (struct slot){.key = key, .block = block, .space = space};
    }
    cw_lock_release(&shard->lock);
    return rc;
}

int cw_index_insert(enum cw_space space, uint64_t key, uint32_t block, uint32_t *out_old)
{
    return put(space, key, block, 1, out_old);
}

int cw_index_restore(enum cw_space space, uint64_t key, uint32_t block)
{
    uint32_t taken = 0;
    int rc = put(space, key, block, 0, &taken);

    return rc != 0 ? rc : taken != 0;
}

uint32_t cw_index_find(enum cw_space space, uint64_t key)
{
    uint64_t hash = hash_of(space, key);
    struct shard *shard = shard_of(hash);
    uint32_t block = 0;

    cw_lock_acquire(&shard->lock);
    if (shard->used != 0)
        block = probe(shard, hash, space, key)->block;
    cw_lock_release(&shard->lock);
    return block;
}

/* Empties the slot and moves back what had been pushed behind it. */
static void erase_locked(struct shard *shard, struct slot *slot)
{
    uint32_t mask = shard->capacity - 1;
    uint32_t hole = (uint32_t)(slot - shard->slots);
    uint32_t i = hole;

    for (;;) {
        uint32_t want;

        i = (i + 1) & mask;
        if (shard->slots[i].block == 0)
            break;
        want = home(shard, hash_of(shard->slots[i].space, shard->slots[i].key));
        if (((i - want) & mask) >= ((i - hole) & mask)) {
            shard->slots[hole] = shard->slots[i];
            hole = i;
        }
    }
    shard->slots[hole].block = 0;
    shard->used--;
}

/* only: 0 for any block. */
static uint32_t remove_key(enum cw_space space, uint64_t key, uint32_t only)
{
    uint64_t hash = hash_of(space, key);
    struct shard *shard = shard_of(hash);
    uint32_t block = 0;

    cw_lock_acquire(&shard->lock);
    if (shard->used != 0) {
        struct slot *slot = probe(shard, hash, space, key);

        if (slot->block != 0 && (only == 0 || slot->block == only)) {
            block = slot->block;
            erase_locked(shard, slot);
        }
    }
    cw_lock_release(&shard->lock);
    return block;
}

uint32_t cw_index_remove(enum cw_space space, uint64_t key)
{
    return remove_key(space, key, 0);
}

int cw_index_remove_block(enum cw_space space, uint64_t key, uint32_t block)
{
    return remove_key(space, key, block) != 0;
}

void cw_index_reset(void)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        cw_lock_reset(&shards[i].lock);
        shards[i].used = 0;
        shards[i].capacity = 0;
        shards[i].slots = NULL;
    }
}
