/* SPDX-License-Identifier: MIT */
/* What goes back to the driver when memory is short. See relief.h. */
#include "core/relief.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/hoard.h"
#include "core/keep.h"
#include "core/pending.h"
#include "core/pressure.h"
#include "core/session.h"
#include "core/tally.h"
#include "core/tracker.h"

#define OTHERS_TURNS 20000u /* of cw_lock_relax: about a second */
#define GO           256u   /* blocks that are taken out of a bucket at a time */
/* So little is not worth giving back before it is asked for: a context costs ten times as much. */
#define EMPTY_LEAST ((uint64_t)32 << 20)
/* Nearly nothing is live: less than one part in so many of what lies idle. */
#define EMPTY_SHARE 16
/* Such a release comes at most so many times in POOL_IDLE: a loop that frees everything each time
 * loses little by it, and a program that sleeps from its second emptying on has given its memory
 * back. */
#define EMPTY_TIMES 8
/* A bucket is unused when nothing left it for so many looks at the device, of 100 ms and more each:
 * steps of a slow loop come again. */
#define UNUSED_LOOKS 20u

static struct {
    const struct cw_options *options;
    _Atomic uint64_t
        emptied_ns[CW_DEVICES]; /* when all was given back last because little was live */
    /* Of the thread that looks whether the program sleeps, which is one: */
    uint64_t moves[CW_DEVICES], moved_ns[CW_DEVICES];
    uint64_t gathered[CW_DEVICES]; /* moves when open batches were taken over last */
} self;

void cw_relief_init(const struct cw_options *options)
{
    self.options = options;
    cw_relief_reset();
}

void cw_relief_reset(void)
{
    for (int i = 0; i < CW_DEVICES; i++) {
        atomic_store_explicit(&self.emptied_ns[i], 0, memory_order_relaxed);
        self.moves[i] = self.moved_ns[i] = self.gathered[i] = 0;
    }
}

/* ---- realms and pools of a device --------------------------------------------------------------
 */

/* The next realm after context *at whose device this is and which can be worked with. */
static struct cw_realm *next_realm(uint8_t device, uint32_t *at)
{
    uint32_t contexts = atomic_load_explicit(
        &cw_session.arena.header->table[CW_TABLE_CONTEXT].count, memory_order_acquire);

    while (++*at < contexts) {
        struct cw_realm *realm = cw_realm_of(*at);

        if (realm != NULL && realm->device == device && cw_realm_is_usable(realm))
            return realm;
    }
    return NULL;
}

/* Pools of device memory come first. */
_Static_assert(CW_POOL_DEVICE == 0 && CW_POOL_PITCHED == 1 && CW_POOL_HOST == 2,
               "classes below CW_POOL_HOST are those of the device");

static struct cw_pool *pool_of(struct cw_realm *realm, unsigned class)
{
    return atomic_load_explicit(&realm->pool[class], memory_order_acquire);
}

static uint64_t release_pools(struct cw_realm *realm, unsigned classes, enum cw_release why)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < classes; i++) {
        struct cw_pool *pool = pool_of(realm, i);

        if (pool == NULL)
            continue;
        bytes += cw_keep_release(realm, cw_hoard_seize(pool, CW_SIZE_CLASSES), why);
        bytes += cw_keep_release(realm, cw_bucket_take_all(pool), why);
    }
    return bytes;
}

static uint64_t release_ready(uint8_t device, unsigned classes, enum cw_release why)
{
    uint64_t bytes = 0;
    uint32_t at = 0;

    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;)
        bytes += release_pools(realm, classes, why);
    return bytes;
}

/* ---- a request that found no memory ------------------------------------------------------------
 */

/* One block of the class that has so many bytes, given back; 0: there is none. */
static uint64_t release_one(uint8_t device, unsigned size_class, uint64_t need, enum cw_release why)
{
    uint32_t at = 0;

    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;) {
        for (unsigned i = 0; i < CW_POOL_HOST; i++) {
            struct cw_pool *pool = pool_of(realm, i);
            uint32_t block = pool != NULL ? cw_bucket_take_least(pool, size_class, need) : 0;

            if (block != 0)
                return cw_keep_release(realm, block, why);
        }
    }
    return 0;
}

static uint64_t release_largest(uint8_t device, uint64_t need, enum cw_release why)
{
    uint64_t bytes = 0, more;

    for (unsigned c = CW_SIZE_CLASSES; c-- > 0 && bytes < need;)
        do {
            more = release_one(device, c, 0, why);
            bytes += more;
        } while (more != 0 && bytes < need);
    return bytes;
}

uint64_t cw_relief_sufficient(uint8_t device, uint64_t need)
{
    uint64_t bytes = 0;

    if (need == 0 || need > CW_SIZE_MOST || cw_bucket_idle(device) < need)
        return 0;
    cw_keep_reclaim_begins();
    for (unsigned c = need < CW_SIZE_LEAST ? 0 : cw_size_class_down(need);
         bytes == 0 && c < CW_SIZE_CLASSES; c++)
        bytes = release_one(device, c, need, CW_RELEASE_OOM);
    if (bytes == 0)
        bytes = release_largest(device, need, CW_RELEASE_OOM);
    return cw_keep_reclaim_ends(bytes);
}

uint64_t cw_relief_all(uint8_t device)
{
    cw_keep_reclaim_begins();
    return cw_keep_reclaim_ends(release_ready(device, CW_POOL_CLASSES, CW_RELEASE_OOM));
}

/* Waiting first lets the blocks become ready, and the frees that follow wait for nothing; where the
 * context cannot be waited for, the driver's own free waits, as the program's would have. */
static uint64_t release_rest(uint8_t device, enum cw_release why)
{
    uint64_t bytes = 0;
    uint32_t at = 0;
    int code;

    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;) {
        uint32_t list;

        if (cw_pending_is_any())
            cw_pending_wait(realm, &code);
        list = cw_pending_seize(realm);
        bytes += cw_keep_release(realm, list, why);
        bytes += release_pools(realm, CW_POOL_CLASSES, why);
    }
    return bytes;
}

uint64_t cw_relief_rest(uint8_t device)
{
    cw_keep_reclaim_begins();
    return cw_keep_reclaim_ends(release_rest(device, CW_RELEASE_OOM));
}

uint32_t cw_relief_harvest(uint8_t device)
{
    uint32_t blocks = 0, at = 0;

    if (!cw_pending_is_any())
        return 0;
    cw_pending_close(0);
    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;)
        blocks += cw_pending_harvest(realm, UINT32_MAX, 0);
    return blocks;
}

int cw_relief_wait_for_others(uint32_t since)
{
    unsigned turns = 0;

    while (atomic_load(&cw_keep_reclaims_done) == since &&
           atomic_load(&cw_keep_reclaims_running) != 0 && turns < OTHERS_TURNS)
        cw_lock_relax(&turns);
    return atomic_load(&cw_keep_reclaims_done) != since;
}

/* ---- pressure ----------------------------------------------------------------------------------
 */

static uint64_t drop_excess(struct cw_realm *realm, struct cw_pool *pool)
{
    uint64_t bytes = 0;
    uint32_t list;

    for (unsigned c = 0; c < CW_SIZE_CLASSES; c++)
        while ((list = cw_bucket_take_excess(pool, c, self.options->pool_bucket_max, 1, GO)) != 0)
            bytes += cw_keep_release(realm, list, CW_RELEASE_PRESSURE);
    return bytes;
}

static uint64_t halve(uint8_t device)
{
    uint64_t bytes = 0;
    uint32_t at = 0;

    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;)
        for (unsigned i = 0; i < CW_POOL_HOST; i++)
            if (pool_of(realm, i) != NULL)
                bytes += drop_excess(realm, pool_of(realm, i));
    return bytes;
}

struct choice {
    struct cw_realm *realm;
    struct cw_pool *pool; /* NULL: none was found */
    unsigned size_class;
    uint32_t unused_for; /* looks */
};

/* The bucket with blocks that has gone unused longest. */
static struct choice find_unused(uint8_t device)
{
    struct choice best = {.unused_for = UNUSED_LOOKS};
    uint32_t at = 0;

    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;) {
        for (unsigned i = 0; i < CW_POOL_HOST; i++) {
            struct cw_pool *pool = pool_of(realm, i);

            for (unsigned c = 0; pool != NULL && c < CW_SIZE_CLASSES; c++) {
                uint32_t unused = cw_bucket_unused_for(pool, c);

                if (unused > best.unused_for && cw_bucket_has_blocks(pool, c))
                    best = (struct choice){
                        .realm = realm, .pool = pool, .size_class = c, .unused_for = unused};
            }
        }
    }
    return best;
}

/* At most `want` bytes, or one block more. */
static uint64_t drop_unused(uint8_t device, uint64_t want)
{
    struct choice choice;
    uint32_t list, count;
    uint64_t bytes, sum = 0;

    while (sum < want && (choice = find_unused(device)).pool != NULL) {
        list = cw_bucket_take_some(choice.pool, choice.size_class,
                                   cw_bucket_blocks_for(choice.size_class, want - sum, GO), &count);
        bytes = cw_keep_release(choice.realm, list, CW_RELEASE_PRESSURE);
        if (bytes == 0) /* a capture has begun */
            break;
        sum += bytes;
    }
    return sum;
}

static uint64_t relieve(uint8_t device)
{
    uint64_t bytes = 0;

    switch (cw_pressure_level(device)) {
    case CW_LEVEL_CRITICAL:
        bytes = release_ready(device, CW_POOL_HOST, CW_RELEASE_PRESSURE);
        break;
    case CW_LEVEL_HIGH:
        bytes = halve(device);
        bytes += drop_unused(device, cw_pressure_excess(device));
        break;
    case CW_LEVEL_MEDIUM:
        bytes = halve(device);
        break;
    default:
        break;
    }
    cw_bucket_look();
    return bytes;
}

/* What is on its way back a request that finds no memory waits for (cw_relief_wait_for_others). */
void cw_relief_pressure(void)
{
    uint64_t due = atomic_load(&cw_pressure_due_mask), bytes = 0;

    for (; due != 0; due &= due - 1) {
        uint8_t device = (uint8_t)__builtin_ctzll(due);

        if (!cw_pressure_take_due(device))
            continue;
        cw_keep_reclaim_begins();
        bytes = relieve(device);
        cw_keep_reclaim_ends(bytes);
    }
}

/* ---- nothing to do any more --------------------------------------------------------------------
 */

void cw_relief_emptied(uint8_t device, uint64_t now)
{
    uint64_t idle = cw_bucket_idle(device), last = atomic_load(&self.emptied_ns[device]);

    /* Who has the pool filled ahead wants it full. */
    if (CW_LIKELY(idle < EMPTY_LEAST) || self.options->prewarm.count != 0 ||
        cw_tally_device(device).live > idle / EMPTY_SHARE ||
        (last != 0 && now < last + self.options->pool_idle / EMPTY_TIMES) ||
        !atomic_compare_exchange_strong(&self.emptied_ns[device], &last, now))
        return;
    cw_keep_reclaim_begins();
    cw_keep_reclaim_ends(release_ready(device, CW_POOL_HOST, CW_RELEASE_EMPTY));
}

void cw_relief_old(uint8_t device, uint64_t now)
{
    uint32_t at = 0;

    cw_relief_harvest(device);
    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;)
        cw_keep_trim(realm, now);
}

/* Hits, misses and kept frees: whatever the program does with the pool changes their sum. Pinned
 * memory counts to no device, and a program that uses it is awake. */
static uint64_t count_moves(uint8_t device)
{
    uint64_t moves = 0;
    struct cw_view view;
    uint32_t count;

    cw_arena_view(&cw_session.arena, &view);
    count = cw_view_count(&view, CW_TABLE_BUCKET);
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_bucket *bucket = cw_view_bucket(&view, i);

        if (bucket != NULL && (bucket->device == device || bucket->device == CW_DEVICE_HOST))
            moves += atomic_load_explicit(&bucket->hits, memory_order_relaxed) +
                     atomic_load_explicit(&bucket->misses, memory_order_relaxed) +
                     atomic_load_explicit(&bucket->kept, memory_order_relaxed);
    }
    return moves;
}

/* What threads freed last is in batches that only they see, and they may not come any more. */
static void gather(uint8_t device)
{
    uint32_t at = 0;

    for (struct cw_realm *realm; (realm = next_realm(device, &at)) != NULL;) {
        uint32_t list = cw_pending_seize(realm);

        if (list != 0)
            cw_pending_add_list(realm, list);
    }
}

/* Once in a sleep: what is gathered has to wait anew. */
static void gather_open(uint8_t device, uint64_t moves)
{
    if (moves == self.gathered[device])
        return;
    self.gathered[device] = moves;
    gather(device);
}

void cw_relief_asleep(uint8_t device, uint64_t now)
{
    uint64_t moves = count_moves(device);

    if (moves != self.moves[device]) {
        self.moves[device] = moves;
        self.moved_ns[device] = now;
        return;
    }
    if (moves == 0 || now < self.moved_ns[device] + self.options->pool_idle)
        return;
    gather_open(device, moves);
    cw_relief_harvest(device);
    cw_keep_reclaim_begins();
    cw_keep_reclaim_ends(release_ready(device, CW_POOL_CLASSES, CW_RELEASE_IDLE));
}

/* ---- another process asks ----------------------------------------------------------------------
 */

uint64_t cw_relief_asked(uint8_t device, int gathers, int may_wait)
{
    uint64_t bytes;

    if (gathers)
        gather(device);
    cw_relief_harvest(device);
    cw_keep_reclaim_begins();
    bytes = release_ready(device, CW_POOL_CLASSES, CW_RELEASE_IDLE);
    if (may_wait)
        bytes += release_rest(device, CW_RELEASE_IDLE);
    return cw_keep_reclaim_ends(bytes);
}

uint64_t cw_relief_surplus(uint8_t device, uint64_t most)
{
    uint64_t idle, bytes;

    cw_relief_harvest(device);
    idle = cw_bucket_idle(device);
    cw_keep_reclaim_begins();
    if (most == 0) /* what threads keep to themselves, too */
        bytes = release_ready(device, CW_POOL_HOST, CW_RELEASE_FULL);
    else
        bytes = idle > most ? release_largest(device, idle - most, CW_RELEASE_FULL) : 0;
    return cw_keep_reclaim_ends(bytes);
}
