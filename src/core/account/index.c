/* SPDX-License-Identifier: MIT */
/*
 * Sharded open addressing with linear probing and backward-shift deletion (no tombstones, so a
 * table that churns for days does not slow down). See index.h.
 *
 * Writers hold the shard's lock. Readers hold no lock: they read the shard's count of changes,
 * look, and look again if the count was odd or has changed. It is odd while entries move within the
 * table or to a bigger one. A key that goes into an empty slot moves nothing and is not counted.
 * Every load of a slot acquires and every store releases, so a reader that has seen any store of a
 * counted change finds the count changed. A table that has been replaced stays mapped for good,
 * because a reader may still be in it, but its pages go back to the system.
 *
 * The tables of one size lie side by side, those of all shards: they come to that size at about the
 * same number of keys, and then are large enough together for large pages. A look-up in many keys
 * pays more for the way to its page than for the line.
 */
#include "core/account/index.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/mem.h"

#define SHARD_BITS  6
#define SHARDS      (1u << SHARD_BITS)
#define FIRST_SHIFT 6  /* log2 of a shard's first slots */
#define SHIFT_MASK  63 /* the bits of a table's address that are zero: cw_mem aligns to a line */
#define SHIFT_MAX   31
#define TRIES       8 /* of a reader, before it takes the lock */

struct slot {
    _Atomic uint64_t key;
    _Atomic uint64_t owner; /* the space above, the block below; 0: empty */
};

struct CW_ALIGNED_LINE shard {
    struct cw_lock lock;      /* held by who writes to anything here */
    _Atomic uint64_t changes; /* odd: one is under way */
    _Atomic uintptr_t table;  /* address of the slots, and log2 of how many; 0: none yet */
    uint32_t used;
};

/* A shard's table, unpacked. */
struct table {
    struct slot *slots;
    uint32_t mask;
};

static struct shard shards[SHARDS] = {
    [0 ... SHARDS - 1] = {.lock = CW_LOCK_INIT(CW_RANK_INDEX)},
};

/* Of each size: where the tables lie, the first shard's first; NULL: none has it yet. */
static _Atomic(struct slot *) tables[SHIFT_MAX + 1];

/* Both halves of a product: keys are multiples of anything from 512 to 32 MiB, or heap pointers, so
 * their low bits say nothing, and half a product folded upon itself crowds some of them. */
static inline uint64_t hash_of(enum cw_space space, uint64_t key)
{
    unsigned __int128 h =
        (unsigned __int128)(key ^ ((uint64_t)space << 57)) * 0x9e3779b97f4a7c15ull;

    return (uint64_t)(h >> 64) ^ (uint64_t)h;
}

static struct shard *shard_of(uint64_t hash)
{
    return &shards[hash & (SHARDS - 1)];
}

static uint64_t owner_of(enum cw_space space, uint32_t block)
{
    return (uint64_t)space << 32 | block;
}

static uint64_t load(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_acquire);
}

static void store(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_release);
}

/* Without slots, and mask 0: there is none yet. */
static struct table table_of(const struct shard *shard)
{
    uintptr_t word = atomic_load_explicit(&shard->table, memory_order_acquire);

    return (struct table){.slots = (struct slot *)(word & ~(uintptr_t)SHIFT_MASK),
                          .mask = (1u << (word & SHIFT_MASK)) - 1};
}

static uint32_t home(uint32_t mask, uint64_t hash)
{
    return (uint32_t)(hash >> SHARD_BITS) & mask;
}

/* The slot that holds the key, or the empty one where it belongs; there is always an empty one. A
 * reader whose table changes under it may miss that one: it gets NULL after one round. */
static inline struct slot *probe(struct table table, uint64_t hash, enum cw_space space,
                                 uint64_t key, uint64_t *out_owner)
{
    uint32_t i = home(table.mask, hash);

    for (uint32_t n = 0; n <= table.mask; n++, i = (i + 1) & table.mask) {
        struct slot *slot = &table.slots[i];
        uint64_t owner = load(&slot->owner);

        if (owner == 0 || (owner >> 32 == space && load(&slot->key) == key)) {
            *out_owner = owner;
            return slot;
        }
    }
    return NULL;
}

/* Around moves of entries. The stores in between release, so none is seen before the first. */
static void begin_change_locked(struct shard *shard)
{
    uint64_t changes = atomic_load_explicit(&shard->changes, memory_order_relaxed);

    atomic_store_explicit(&shard->changes, changes + 1, memory_order_relaxed);
}

static void end_change_locked(struct shard *shard)
{
    store(&shard->changes, atomic_load_explicit(&shard->changes, memory_order_relaxed) + 1);
}

/* The key first: the owner makes the slot valid. */
static void fill(struct slot *slot, uint64_t key, uint64_t owner)
{
    store(&slot->key, key);
    store(&slot->owner, owner);
}

/* Readers may come here until they notice that the table has been replaced: what they read is zero.
 * Less than a page stays as it is. */
static void discard(void *slots, size_t size)
{
    int saved = errno;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (((uintptr_t)slots | size) % page == 0)
        (void)madvise(slots, size, MADV_DONTNEED);
    errno = saved;
}

/* Where the shard's table of this size lies, all of it empty; NULL: no memory. */
static struct slot *table_for(const struct shard *shard, uint32_t shift)
{
    size_t size = sizeof(struct slot) << shift << SHARD_BITS;
    struct slot *first = atomic_load_explicit(&tables[shift], memory_order_acquire), *fresh;

    if (first == NULL) {
        fresh = cw_mem_alloc_dense(size);
        if (fresh == NULL)
            return NULL;
        if (atomic_compare_exchange_strong(&tables[shift], &first, fresh))
            first = fresh;
        else
            cw_mem_free(fresh, size);
    }
    return first + ((size_t)(shard - shards) << shift);
}

static int grow_locked(struct shard *shard)
{
    struct table old = table_of(shard), bigger;
    uint32_t shift = old.slots ? (uint32_t)__builtin_ctz(old.mask + 1) + 1 : FIRST_SHIFT;

    bigger.mask = (1u << shift) - 1;
    bigger.slots = shift <= SHIFT_MAX ? table_for(shard, shift) : NULL;
    if (bigger.slots == NULL)
        return -1;
    for (uint32_t i = 0; old.slots != NULL && i <= old.mask; i++) {
        uint64_t owner = load(&old.slots[i].owner), key = load(&old.slots[i].key), none;

        if (owner != 0)
            fill(probe(bigger, hash_of(owner >> 32, key), owner >> 32, key, &none), key, owner);
    }
    begin_change_locked(shard);
    atomic_store_explicit(&shard->table, (uintptr_t)bigger.slots | shift, memory_order_release);
    end_change_locked(shard);
    if (old.slots != NULL)
        discard(old.slots, (old.mask + 1) * sizeof(struct slot));
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
    if ((shard->used + 1) * 4 > (table_of(shard).mask + 1) * 3 && grow_locked(shard) != 0) {
        rc = -1;
    } else {
        uint64_t old = 0;
        struct slot *slot = probe(table_of(shard), hash, space, key, &old);

        *out_old = (uint32_t)old;
        shard->used += old == 0;
        if (old == 0 || replace)
            fill(slot, key, owner_of(space, block));
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

/* 1; 0: disturbed by a writer; always 1 under the lock. */
static inline int look(const struct shard *shard, uint64_t hash, enum cw_space space, uint64_t key,
                       uint32_t *out_block)
{
    uint64_t changes = load(&shard->changes);
    struct table table = table_of(shard);
    uint64_t owner = 0;

    if (table.slots != NULL)
        probe(table, hash, space, key, &owner);
    if (changes % 2 != 0 || atomic_load_explicit(&shard->changes, memory_order_relaxed) != changes)
        return 0;
    *out_block = (uint32_t)owner;
    return 1;
}

/* A preempted writer would delay a reader for long, and readers of a higher priority would delay
 * the writer: taking the lock lets it run. */
static CW_NOINLINE uint32_t find_disturbed(struct shard *shard, uint64_t hash, enum cw_space space,
                                           uint64_t key)
{
    uint32_t block = 0;

    for (int i = 1; i < TRIES; i++)
        if (look(shard, hash, space, key, &block))
            return block;
    cw_lock_acquire(&shard->lock);
    look(shard, hash, space, key, &block);
    cw_lock_release(&shard->lock);
    return block;
}

static CW_NOINLINE uint32_t find(struct shard *shard, uint64_t hash, enum cw_space space,
                                 uint64_t key)
{
    uint32_t block;

    if (CW_LIKELY(look(shard, hash, space, key, &block)))
        return block;
    return find_disturbed(shard, hash, space, key);
}

/* Most keys lie in their first slot: like look(), without a loop. */
CW_HOT uint32_t cw_index_find(enum cw_space space, uint64_t key)
{
    uint64_t hash = hash_of(space, key), changes, owner;
    struct shard *shard = shard_of(hash);
    struct table table;
    struct slot *slot;

    changes = load(&shard->changes);
    table = table_of(shard);
    if (CW_UNLIKELY(table.slots == NULL))
        return 0;
    slot = &table.slots[home(table.mask, hash)];
    owner = load(&slot->owner);
    if (CW_LIKELY(owner >> 32 == space && (uint32_t)owner != 0 && load(&slot->key) == key &&
                  changes % 2 == 0 &&
                  atomic_load_explicit(&shard->changes, memory_order_relaxed) == changes))
        return (uint32_t)owner;
    return find(shard, hash, space, key);
}

/* Empties the slot and moves back the entries that it had displaced. */
static void erase_locked(struct shard *shard, struct table table, struct slot *slot)
{
    uint32_t hole = (uint32_t)(slot - table.slots);
    uint32_t i = hole;

    begin_change_locked(shard);
    for (;;) {
        uint64_t owner, key;
        uint32_t want;

        i = (i + 1) & table.mask;
        owner = load(&table.slots[i].owner);
        if (owner == 0)
            break;
        key = load(&table.slots[i].key);
        want = home(table.mask, hash_of(owner >> 32, key));
        if (((i - want) & table.mask) >= ((i - hole) & table.mask)) {
            fill(&table.slots[hole], key, owner);
            hole = i;
        }
    }
    store(&table.slots[hole].owner, 0);
    end_change_locked(shard);
    shard->used--;
}

/* Prefetches what the holder of the lock will read, while the lock is taken. */
static inline void prefetch(const struct shard *shard, uint64_t hash)
{
    struct table table = table_of(shard);

    __builtin_prefetch(&table.slots[home(table.mask, hash)], 1);
}

/* only: 0 for any block. */
static uint32_t remove_key(enum cw_space space, uint64_t key, uint32_t only)
{
    uint64_t hash = hash_of(space, key);
    struct shard *shard = shard_of(hash);
    uint32_t block = 0;

    prefetch(shard, hash);
    cw_lock_acquire(&shard->lock);
    if (shard->used != 0) {
        struct table table = table_of(shard);
        uint64_t owner = 0;
        struct slot *slot = probe(table, hash, space, key, &owner);

        if (owner != 0 && (only == 0 || (uint32_t)owner == only)) {
            block = (uint32_t)owner;
            erase_locked(shard, table, slot);
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
        atomic_init(&shards[i].changes, 0);
        atomic_init(&shards[i].table, 0);
        shards[i].used = 0;
    }
    for (uint32_t i = 0; i <= SHIFT_MAX; i++)
        atomic_init(&tables[i], NULL);
}
