/* SPDX-License-Identifier: MIT */
/* Pairs of blocks, and which of them became resizes. See regrowth.h. */
#include "core/account/regrowth.h"

#include "base/lock.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/tag_count.h"
#include "core/account/tracker.h"
#include "core/process/gate.h"

#define HEADS 1024u

_Atomic int cw_regrowth_on;

/* A block as it was when it was copied. Its record may have another owner by now, if two threads
 * copy and free the same block at once: then one of the others differs. */
struct end {
    uint32_t block;
    uint32_t uses; /* `refs` of the record: that of a block of the pool grows with each owner */
    uint64_t key, born_ns, bytes;
};

struct pair {
    struct end small, large;
    uint64_t copied; /* at most small.bytes: bytes copied twice count once */
    uint64_t serial; /* the larger, the younger */
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_REGROWTH);
/* Guarded by the lock. */
static struct {
    struct cw_arena *arena;
    struct pair pair[CW_REGROWTH_PAIRS];
    unsigned pairs;
    uint64_t serial; /* never restarts: what a thread remembers from before a fork stays invalid */
    uint32_t head[HEADS];
} self;

/* The pair that this thread copied last, and where it lay then: the serial says whether it still
 * does. */
static CW_TLS struct {
    uint64_t serial; /* 0: none */
    uint64_t from, from_end, to, to_end;
    unsigned place;
} last;

void cw_regrowth_init(struct cw_arena *arena, int is_on)
{
    self.arena = arena;
    atomic_store_explicit(&cw_regrowth_on, is_on, memory_order_relaxed);
}

void cw_regrowth_reset(void)
{
    cw_lock_reset(&lock);
    atomic_store_explicit(&cw_regrowth_on, 0, memory_order_relaxed);
    self.pairs = 0;
    for (unsigned i = 0; i < HEADS; i++)
        self.head[i] = 0;
}

static uint64_t load(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static void store(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

static uint8_t flags_of(uint32_t block)
{
    return atomic_load_explicit(&cw_tracker_at(block)->flags, memory_order_relaxed);
}

static void mark(uint32_t block, enum cw_block_flags flag)
{
    atomic_fetch_or_explicit(&cw_tracker_at(block)->flags, (uint8_t)flag, memory_order_relaxed);
}

/* The block may be another thread's by now, and its site one that was made this moment. */
static const struct cw_live_site *site_of(uint32_t block)
{
    return cw_site_own(
        cw_site_at(atomic_load_explicit(&cw_tracker_at(block)->site, memory_order_acquire)));
}

static int is_same_place(const struct cw_live_site *a, const struct cw_live_site *b)
{
    return a->stack == b->stack && a->api == b->api && a->kind == b->kind && a->device == b->device;
}

/* ---- pairs ---- */

/* 1, or 0: no live block begins there. */
static int find_end(uint64_t address, struct end *out)
{
    const struct cw_live_block *block;

    out->block = cw_tracker_find(CW_SPACE_ADDRESS, address);
    if (out->block == 0)
        return 0;
    block = cw_tracker_at(out->block);
    out->key = address;
    out->uses = atomic_load_explicit(&block->refs, memory_order_relaxed);
    out->born_ns = load(&block->born_ns);
    out->bytes = load(&block->bytes);
    return atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE;
}

static int is_same_owner(const struct end *end)
{
    const struct cw_live_block *block = cw_tracker_at(end->block);

    return load(&block->key) == end->key && load(&block->born_ns) == end->born_ns &&
           atomic_load_explicit(&block->refs, memory_order_relaxed) == end->uses;
}

static int is_live(const struct end *end)
{
    return atomic_load_explicit(&cw_tracker_at(end->block)->state, memory_order_acquire) ==
               CW_BLOCK_LIVE &&
           is_same_owner(end);
}

static int may_replace(const struct end *large, const struct end *small)
{
    const struct cw_live_site *site = site_of(large->block);

    return large->bytes > small->bytes && large->born_ns >= small->born_ns &&
           cw_kind_counted(site->kind) != CW_COUNTED_NONE &&
           is_same_place(site, site_of(small->block));
}

static void add_locked(struct pair *pair, uint64_t bytes)
{
    uint64_t rest = pair->small.bytes - pair->copied;

    pair->copied += bytes < rest ? bytes : rest;
}

static void drop_locked(struct pair *pair)
{
    *pair = self.pair[--self.pairs];
}

/* The pair that this thread copied last, NULL if it is gone; drops may have moved it. */
static struct pair *last_locked(void)
{
    if (last.place < self.pairs && self.pair[last.place].serial == last.serial)
        return &self.pair[last.place];
    for (struct pair *pair = self.pair; pair < self.pair + self.pairs; pair++)
        if (pair->serial == last.serial)
            return pair;
    return NULL;
}

/* 1: another copy inside that pair. */
static int goes_on(uint64_t to, uint64_t from, uint64_t bytes)
{
    struct pair *pair;

    if (last.serial == 0 || from < last.from || from >= last.from_end || to < last.to ||
        to >= last.to_end)
        return 0;
    cw_lock_acquire(&lock);
    pair = last_locked();
    if (pair != NULL) {
        add_locked(pair, bytes);
        last.place = (unsigned)(pair - self.pair);
    }
    cw_lock_release(&lock);
    if (pair == NULL)
        last.serial = 0;
    return pair != NULL;
}

/* The pair of these two blocks, or a new one, which replaces the oldest if there are too many. */
static struct pair *pair_locked(const struct end *small, const struct end *large)
{
    struct pair *oldest = &self.pair[0];

    for (struct pair *pair = self.pair; pair < self.pair + self.pairs; pair++) {
        if (pair->small.block == small->block && pair->large.block == large->block &&
            is_same_owner(&pair->small) && is_same_owner(&pair->large))
            return pair;
        if (pair->serial < oldest->serial)
            oldest = pair;
    }
    if (self.pairs < CW_REGROWTH_PAIRS)
        oldest = &self.pair[self.pairs++];
    *oldest = (struct pair){.small = *small, .large = *large, .serial = ++self.serial};
    mark(small->block, CW_BLOCK_PAIRED);
    mark(large->block, CW_BLOCK_PAIRED);
    return oldest;
}

void cw_regrowth_copied(uint64_t to, uint64_t from, uint64_t bytes)
{
    struct end small, large;
    struct pair *pair;

    if (cw_gate_is_capturing() || bytes == 0 || goes_on(to, from, bytes))
        return;
    if (!find_end(from, &small) || !find_end(to, &large) || !may_replace(&large, &small))
        return;
    last.from = from;
    last.from_end = from + small.bytes;
    last.to = to;
    last.to_end = to + large.bytes;
    cw_lock_acquire(&lock);
    pair = pair_locked(&small, &large);
    add_locked(pair, bytes);
    last.serial = pair->serial;
    last.place = (unsigned)(pair - self.pair);
    cw_lock_release(&lock);
}

/* ---- resizes ---- */

static uint32_t *head_of(const struct cw_live_site *site)
{
    uint64_t hash = site->stack * 0x9e3779b97f4a7c15ull;

    hash = (hash ^ site->api ^ (uint64_t)site->kind << 40 ^ (uint64_t)site->device << 48) *
           0x9e3779b97f4a7c15ull;
    return &self.head[hash >> 32 & (HEADS - 1)];
}

static struct cw_live_regrowth *at(uint32_t record)
{
    return cw_arena_at(self.arena, CW_TABLE_REGROWTH, record);
}

/* NULL: there are too many, or no memory. */
static struct cw_live_regrowth *record_locked(uint32_t site)
{
    uint32_t *head = head_of(cw_site_own(cw_site_at(site)));
    uint32_t record;

    for (record = *head; record != 0; record = cw_arena_older(record, at(record)->hash_next)) {
        uint32_t its = *(volatile const uint32_t *)&at(record)->site; /* once: others may write */

        if (its < cw_arena_count(self.arena, CW_TABLE_SITE) &&
            is_same_place(cw_site_own(cw_site_at(its)), cw_site_own(cw_site_at(site))))
            return at(record);
    }
    if (cw_arena_count(self.arena, CW_TABLE_REGROWTH) > CW_REGROWTH_RECORDS)
        return NULL;
    record = cw_arena_append(self.arena, CW_TABLE_REGROWTH);
    if (record == 0)
        return NULL;
    at(record)->site = site;
    at(record)->hash_next = *head;
    *head = record;
    return at(record);
}

static void count_locked(const struct pair *pair, int begins_chain, uint64_t now_ns)
{
    uint32_t site =
        atomic_load_explicit(&cw_tracker_at(pair->large.block)->site, memory_order_relaxed);
    struct cw_live_regrowth *record = record_locked(site);

    if (record == NULL)
        return;
    cw_tag_count_resize(cw_site_at(site), pair->copied);
    if (load(&record->resizes) == 0)
        store(&record->first_ns, now_ns);
    store(&record->last_ns, now_ns);
    store(&record->copied_bytes, load(&record->copied_bytes) + pair->copied);
    store(&record->factor_sum,
          load(&record->factor_sum) + pair->large.bytes * 1000 / pair->small.bytes);
    if (pair->large.bytes > load(&record->largest_bytes))
        store(&record->largest_bytes, pair->large.bytes);
    if (begins_chain) {
        store(&record->chains, load(&record->chains) + 1);
        if (load(&record->first_bytes) == 0 || pair->small.bytes < load(&record->first_bytes))
            store(&record->first_bytes, pair->small.bytes);
    }
    store(&record->resizes, load(&record->resizes) + 1);
}

void cw_regrowth_replaced(uint32_t block, uint64_t before, uint64_t copied, int begins_chain)
{
    uint64_t now_ns = cw_session_now();
    struct pair pair = {.small = {.bytes = before}, .large = {.block = block}, .copied = copied};

    if (!cw_regrowth_is_on() || block == 0 || before == 0)
        return;
    pair.large.bytes = load(&cw_tracker_at(block)->bytes);
    cw_lock_acquire(&lock);
    count_locked(&pair, begins_chain, now_ns);
    cw_lock_release(&lock);
}

/* The block's replacement, the youngest if there are several candidates; NULL: nothing. */
static const struct pair *replacement_locked(uint32_t block)
{
    const struct pair *best = NULL;

    for (const struct pair *pair = self.pair; pair < self.pair + self.pairs; pair++)
        if (pair->small.block == block && is_same_owner(&pair->small) &&
            pair->copied > pair->small.bytes / 2 && (best == NULL || pair->serial > best->serial) &&
            is_live(&pair->large) && !(flags_of(pair->large.block) & CW_BLOCK_REGROWN))
            best = pair;
    return best;
}

void cw_regrowth_gone_slowly(uint32_t block, int is_freed)
{
    uint64_t now_ns = cw_session_now();
    uint8_t flags = atomic_fetch_and_explicit(&cw_tracker_at(block)->flags,
                                              (uint8_t) ~(CW_BLOCK_PAIRED | CW_BLOCK_REGROWN),
                                              memory_order_relaxed);
    const struct pair *found;

    cw_lock_acquire(&lock);
    found = is_freed ? replacement_locked(block) : NULL;
    if (found != NULL) {
        count_locked(found, !(flags & CW_BLOCK_REGROWN), now_ns);
        mark(found->large.block, CW_BLOCK_REGROWN);
    }
    for (unsigned i = self.pairs; i-- > 0;)
        if (self.pair[i].small.block == block || self.pair[i].large.block == block)
            drop_locked(&self.pair[i]);
    cw_lock_release(&lock);
}
