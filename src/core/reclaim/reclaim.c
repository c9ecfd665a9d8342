/* SPDX-License-Identifier: MIT */
/* Releases when memory is short. See reclaim.h. */
#include "core/reclaim/reclaim.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/limits/demand.h"
#include "core/limits/lending.h"
#include "core/cache/retention.h"
#include "core/pending/patience.h"
#include "core/pending/pending.h"
#include "core/limits/pressure.h"
#include "core/process/gate.h"
#include "core/reclaim/pool_walk.h"
#include "core/reclaim/quiet.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/account/usage.h"
#include "core/cache/thread_cache.h"
#include "core/account/tracker.h"
#include "core/pending/ready.h"
#include "core/pending/release.h"

#define OTHERS_TURNS 20000u /* of cw_lock_relax: about a second */

#define BUSY_NS UINT64_C(1000000) /* after which contexts with work are asked again */

static struct {
    const struct cw_options *options;
    _Atomic int working; /* a thread has its turn */
    _Atomic uint64_t busy_until_ns;
} self;

void cw_reclaim_init(const struct cw_options *options)
{
    self.options = options;
    cw_reclaim_reset();
}

void cw_reclaim_reset(void)
{
    atomic_store(&self.working, 0);
    atomic_store(&self.busy_until_ns, 0);
}

/* ---- all that is idle ---- */

/* quiet NULL: whatever the context does. So below. */
static uint64_t release_ready(uint8_t device, struct cw_quiet *quiet, enum cw_release why)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;
    uint64_t bytes = 0;

    while ((pool = cw_quiet_next(device, &walk, quiet)) != NULL) {
        uint32_t own = cw_thread_cache_seize(pool, CW_SIZE_CLASSES);

        bytes += cw_release_list(pool->pool_context, own, why);
        bytes += cw_release_list(pool->pool_context, cw_bucket_take_all(pool), why);
    }
    return bytes;
}

/* Of the device, and pinned memory. */
static uint64_t release_all_ready(uint8_t device, struct cw_quiet *quiet, enum cw_release why)
{
    uint64_t bytes = release_ready(device, quiet, why);

    return bytes + release_ready(CW_DEVICE_HOST, quiet, why);
}

/* ---- a request that found no memory ---- */

static void gather_pools(uint8_t device)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;

    cw_retention_reclaim_begins();
    while ((pool = cw_pool_walk_next(device, &walk)) != NULL)
        cw_ready_share(pool->pool_context, cw_thread_cache_seize(pool, CW_SIZE_CLASSES));
    cw_retention_reclaim_ends(0);
}

void cw_reclaim_gather(uint8_t device)
{
    struct cw_pool_context *pool_context;
    uint32_t at = 0;

    gather_pools(device);
    gather_pools(CW_DEVICE_HOST);
    while ((pool_context = cw_pool_walk_context(device, &at)) != NULL)
        cw_pending_collect(pool_context);
}

/* Releases one block of the class with at least `need` bytes; 0: there is none. */
static uint64_t release_one(uint8_t device, unsigned size_class, uint64_t need,
                            struct cw_quiet *quiet, enum cw_release why)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;
    uint32_t block;

    while ((pool = cw_quiet_next(device, &walk, quiet)) != NULL) {
        block = cw_bucket_take_least(pool, size_class, need);
        if (block != 0)
            return cw_release_list(pool->pool_context, block, why);
    }
    return 0;
}

static uint64_t release_largest(uint8_t device, uint64_t need, struct cw_quiet *quiet,
                                enum cw_release why)
{
    uint64_t bytes = 0, more;

    for (unsigned c = CW_SIZE_CLASSES; c-- > 0 && bytes < need;)
        do {
            more = release_one(device, c, 0, quiet, why);
            bytes += more;
        } while (more != 0 && bytes < need);
    return bytes;
}

uint64_t cw_reclaim_sufficient(uint8_t device, uint64_t need)
{
    struct cw_quiet quiet;
    uint64_t bytes = 0;

    if (need == 0 || need > CW_SIZE_MOST || cw_bucket_idle(device) < need)
        return 0;
    cw_quiet_init(&quiet, cw_quiet_own());
    cw_retention_reclaim_begins();
    for (unsigned c = need < CW_SIZE_LEAST ? 0 : cw_size_class_down(need);
         bytes == 0 && c < CW_SIZE_CLASSES; c++)
        bytes = release_one(device, c, need, &quiet, CW_RELEASE_OOM);
    if (bytes == 0)
        bytes = release_largest(device, need, &quiet, CW_RELEASE_OOM);
    return cw_retention_reclaim_ends(bytes);
}

/* Where the only memory left is that of contexts with work, waiting for it is better than none. */
uint64_t cw_reclaim_all(uint8_t device, int is_pinned, int *out_has_more)
{
    struct cw_quiet quiet;
    uint64_t bytes;

    cw_quiet_init(&quiet, cw_quiet_own());
    cw_retention_reclaim_begins();
    bytes = release_all_ready(device, &quiet, CW_RELEASE_OOM);
    *out_has_more = bytes != 0 && quiet.has_skipped;
    if (bytes == 0 && quiet.has_skipped)
        bytes = release_ready(is_pinned ? CW_DEVICE_HOST : device, NULL, CW_RELEASE_OOM);
    return cw_retention_reclaim_ends(bytes);
}

/* After one wait for the context the frees of its pending blocks need not wait. The outcome of that
 * wait is ignored: if it was in vain, each free waits by itself or does not, as the program's would
 * have. */
static uint64_t release_pending(struct cw_pool_context *pool_context, enum cw_release why)
{
    int code;

    if (cw_batch_is_any())
        cw_patience_wait(pool_context, &code, NULL);
    return cw_release_list(pool_context, cw_pending_seize(pool_context), why);
}

/* Pending blocks first: those that others make ready during the waits are among the ready ones. */
static uint64_t release_rest(uint8_t device, struct cw_quiet *quiet, enum cw_release why)
{
    struct cw_pool_context *pool_context;
    uint64_t bytes = 0;
    uint32_t at = 0;

    while ((pool_context = cw_pool_walk_context(device, &at)) != NULL)
        if (cw_quiet_may_free(quiet, pool_context))
            bytes += release_pending(pool_context, why);
    return bytes + release_all_ready(device, quiet, why);
}

uint64_t cw_reclaim_rest(uint8_t device, int *out_has_more)
{
    struct cw_quiet quiet;
    uint64_t bytes;

    cw_quiet_init(&quiet, cw_quiet_own());
    cw_retention_reclaim_begins();
    bytes = release_rest(device, &quiet, CW_RELEASE_OOM);
    *out_has_more = bytes != 0 && quiet.has_skipped;
    if (bytes == 0 && quiet.has_skipped)
        bytes = release_rest(device, NULL, CW_RELEASE_OOM);
    return cw_retention_reclaim_ends(bytes);
}

uint32_t cw_reclaim_harvest(uint8_t device)
{
    struct cw_pool_context *pool_context;
    uint32_t blocks = 0, at = 0;

    if (!cw_batch_is_any())
        return 0;
    cw_pending_close(0);
    while ((pool_context = cw_pool_walk_context(device, &at)) != NULL)
        blocks += cw_pending_harvest(pool_context, UINT32_MAX, UINT32_MAX, 1);
    return blocks;
}

int cw_reclaim_wait_for_others(uint32_t since)
{
    unsigned turns = 0;

    while (atomic_load(&cw_retention_reclaims_done) == since &&
           atomic_load(&cw_retention_reclaims_running) != 0 && turns < OTHERS_TURNS)
        cw_lock_relax(&turns);
    return atomic_load(&cw_retention_reclaims_done) != since;
}

/* ---- another process asks ---- */

uint64_t cw_reclaim_asked(uint8_t device, int gathers, int may_wait)
{
    struct cw_quiet own, *quiet = cw_quiet_for_helper(&own);
    uint64_t bytes;

    if (gathers)
        cw_reclaim_gather(device);
    cw_reclaim_harvest(device);
    cw_retention_reclaim_begins();
    bytes = release_all_ready(device, quiet, CW_RELEASE_ASKED);
    if (may_wait)
        bytes += release_rest(device, quiet, CW_RELEASE_ASKED);
    return cw_retention_reclaim_ends(bytes);
}

uint64_t cw_reclaim_surplus(uint8_t device, uint64_t most)
{
    struct cw_quiet own, *quiet = cw_quiet_for_helper(&own);
    uint64_t idle, bytes;

    gather_pools(device);
    cw_reclaim_harvest(device);
    idle = cw_bucket_idle(device);
    cw_retention_reclaim_begins();
    bytes = idle > most ? release_largest(device, idle - most, quiet, CW_RELEASE_ASKED) : 0;
    return cw_retention_reclaim_ends(bytes);
}

/* ---- what nobody waits for ---- */

/* How much more may be done now. */
struct turn {
    unsigned calls;
    uint64_t end_ns;
    struct cw_quiet quiet;
};

/* 0: this call of the program has had its turn, whatever it was for. */
static int take_turn(struct turn *out)
{
    if (cw_thread.depth != 0 && !cw_thread.is_helper) {
        if ((cw_thread.depth & CW_THREAD_RELIEVED) != 0)
            return 0;
        cw_thread.depth |= CW_THREAD_RELIEVED;
    }
    out->calls = CW_RELIEF_CALLS;
    out->end_ns = cw_session.ops->exact_ns() + CW_RELIEF_NS;
    cw_quiet_init(&out->quiet, NULL);
    return 1;
}

static int is_over(const struct turn *turn)
{
    return turn->calls == 0 || cw_session.ops->exact_ns() >= turn->end_ns;
}

/* One block at a time, because each call of the driver may take long. 0: a capture has begun. */
static uint64_t release_in_turn(struct cw_pool *pool, uint32_t list, enum cw_release why,
                                struct turn *turn)
{
    uint64_t bytes = 0, more = 1;

    while (list != 0 && more != 0 && (bytes == 0 || !is_over(turn))) {
        uint32_t next = cw_tracker_next(list);

        atomic_store_explicit(&cw_tracker_at(list)->link, 0, memory_order_relaxed);
        more = cw_release_list(pool->pool_context, list, why);
        bytes += more;
        turn->calls--;
        list = next;
    }
    if (list != 0)
        cw_ready_share(pool->pool_context, list);
    return bytes;
}

/* Each returns 1 when nothing of its kind is left to do. */
typedef int (*step_fn)(uint8_t device, struct turn *turn);

/* ---- the level ---- */

static int drop_all(uint8_t device, struct turn *turn)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;

    gather_pools(device);
    while ((pool = cw_quiet_next(device, &walk, &turn->quiet)) != NULL)
        for (unsigned c = CW_SIZE_CLASSES; c-- > 0;)
            while (cw_bucket_has_blocks(pool, c)) {
                uint32_t count, list = cw_bucket_take_some(pool, c, turn->calls, &count);

                if (release_in_turn(pool, list, CW_RELEASE_PRESSURE, turn) == 0 || is_over(turn))
                    return 0;
            }
    return 1;
}

/* Beyond POOL_BUCKET_MAX, or half of that. */
static int drop_excess(uint8_t device, struct turn *turn)
{
    int is_halved = device < CW_MAX_DEVICES && cw_pressure_level(device) >= CW_LEVEL_MEDIUM;
    enum cw_release why = is_halved ? CW_RELEASE_PRESSURE : CW_RELEASE_FULL;
    uint64_t most = self.options->pool_bucket_max;
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;

    while (most != CW_COUNT_AUTO && (pool = cw_quiet_next(device, &walk, &turn->quiet)) != NULL)
        for (unsigned c = 0; c < CW_SIZE_CLASSES; c++) {
            uint32_t list;

            while ((list = cw_bucket_take_excess(pool, c, most, is_halved, turn->calls)) != 0)
                if (release_in_turn(pool, list, why, turn) == 0 || is_over(turn))
                    return 0;
        }
    return 1;
}

/* ---- what the program has not needed lately ---- */

struct choice {
    struct cw_pool *pool; /* NULL: none was found */
    unsigned size_class;
    uint64_t value;
};

static int has_blocks(const struct cw_pool *pool, unsigned size_class)
{
    return cw_bucket_has_blocks(pool, size_class) || cw_thread_cache_has(pool, size_class);
}

/* How long nobody has asked for this size, in ticks. */
static uint64_t age_of(const struct cw_pool *pool, unsigned size_class, uint32_t now)
{
    uint32_t last = cw_bucket_stamp(pool, size_class);
    uint32_t own = cw_thread_cache_stamp(pool, size_class);

    if (own > last)
        last = own;
    return now > last ? now - last : 0;
}

/* The bucket whose next block is worth least for its size: the one with the largest age times size.
 * In a study of ten programs' traces that kept 99 % of the hits of an unbounded cache; releasing
 * the oldest block kept 69 %. */
static struct choice choose(uint8_t device, struct cw_quiet *quiet)
{
    uint32_t now = cw_session_tick(cw_session_now());
    struct choice best = {0};
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;

    while ((pool = cw_quiet_next(device, &walk, quiet)) != NULL) {
        for (unsigned c = 0; c < CW_SIZE_CLASSES; c++) {
            uint64_t value;

            if (!has_blocks(pool, c))
                continue;
            value = (age_of(pool, c, now) + 1) * cw_size_class_bytes(c);
            if (value > best.value)
                best = (struct choice){.pool = pool, .size_class = c, .value = value};
        }
    }
    return best;
}

static uint64_t release_chosen(const struct choice *choice, enum cw_release why, struct turn *turn)
{
    uint32_t block = cw_bucket_take_oldest(choice->pool, choice->size_class, 1);

    if (block == 0) {
        cw_ready_share(choice->pool->pool_context,
                       cw_thread_cache_seize(choice->pool, choice->size_class));
        block = cw_bucket_take_oldest(choice->pool, choice->size_class, 1);
    }
    return release_in_turn(choice->pool, block, why, turn);
}

static int drop_beyond_cap_with(uint8_t device, uint64_t more, struct turn *turn)
{
    while (cw_usage_device(device).held + more > cw_demand_cap(device)) {
        struct choice choice = choose(device, &turn->quiet);

        if (choice.pool == NULL)
            return 1;
        if (release_chosen(&choice, CW_RELEASE_FULL, turn) == 0 || is_over(turn))
            return 0;
    }
    return 1;
}

static int drop_beyond_cap(uint8_t device, struct turn *turn)
{
    return drop_beyond_cap_with(device, 0, turn);
}

static int drop_for_level(uint8_t device, struct turn *turn)
{
    while (cw_pressure_excess(device) != 0) {
        struct choice choice = choose(device, &turn->quiet);

        if (choice.pool == NULL)
            return 1;
        if (release_chosen(&choice, CW_RELEASE_PRESSURE, turn) == 0 || is_over(turn))
            return 0;
    }
    return 1;
}

static int relieve_level(uint8_t device, struct turn *turn)
{
    switch (device < CW_MAX_DEVICES ? cw_pressure_level(device) : CW_LEVEL_LOW) {
    case CW_LEVEL_CRITICAL:
        return drop_all(device, turn);
    case CW_LEVEL_HIGH:
        return drop_excess(device, turn) && drop_for_level(device, turn);
    case CW_LEVEL_MEDIUM:
        return drop_excess(device, turn);
    default:
        return 1;
    }
}

/* What the program has needed least goes first. */
static int drop_lent(uint8_t device, struct turn *turn)
{
    uint64_t bytes;

    gather_pools(device);
    while (cw_lending_wanted(device, cw_session_now()) != 0) {
        struct choice choice = choose(device, &turn->quiet);

        if (choice.pool == NULL)
            return 1;
        bytes = release_chosen(&choice, CW_RELEASE_NEIGHBOUR, turn);
        cw_lending_given(device, bytes);
        if (bytes == 0 || is_over(turn))
            return 0;
    }
    return 1;
}

static int drop_doomed(uint8_t device, struct turn *turn)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;

    while ((pool = cw_quiet_next(device, &walk, &turn->quiet)) != NULL)
        for (unsigned c = CW_SIZE_CLASSES; c-- > 0;) {
            uint32_t block;

            /* One at a time: a block put back into its bucket would look as if it had been
             * needed. */
            while ((block = cw_bucket_take_doomed(pool, c, 1)) != 0)
                if (release_in_turn(pool, block, CW_RELEASE_IDLE, turn) == 0 || is_over(turn))
                    return 0;
        }
    return 1;
}

/* ---- a turn ---- */

static const struct {
    enum cw_reclaim_reason reason;
    step_fn step;
} steps[] = {
    {CW_RECLAIM_LEVEL, relieve_level}, {CW_RECLAIM_LENT, drop_lent},
    {CW_RECLAIM_COUNT, drop_excess},   {CW_RECLAIM_CAP, drop_beyond_cap},
    {CW_RECLAIM_AGE, drop_doomed},
};

/* 0: the turn was over before all was done. */
static int work_on(uint8_t device, struct turn *turn)
{
    int is_done;

    for (size_t i = 0; i < CW_ARRAY_LEN(steps); i++) {
        if ((cw_reclaim_due_of(device) & steps[i].reason) == 0)
            continue;
        /* Cleared first: what becomes due meanwhile gets another look. */
        cw_reclaim_due_take(device, steps[i].reason);
        turn->quiet.has_skipped = 0;
        /* A neighbour waits: it gets memory also of a program that always has work. */
        turn->quiet.own = steps[i].reason == CW_RECLAIM_LENT ? cw_quiet_own() : NULL;
        is_done = steps[i].step(device, turn);
        if (!is_done || turn->quiet.has_skipped)
            cw_reclaim_due_set(device, steps[i].reason);
        if (turn->quiet.has_skipped)
            atomic_store(&self.busy_until_ns, cw_session_now() + BUSY_NS);
        if (!is_done)
            return 0;
    }
    return 1;
}

/* Without asking the driver. A context that has failed does not count: it has no work. */
static int is_any_busy(void)
{
    struct cw_pool_context *pool_context;
    uint64_t until_ns = atomic_load_explicit(&self.busy_until_ns, memory_order_relaxed);
    uint32_t at = 0;

    if (until_ns != 0 && cw_session_now() < until_ns)
        return 1;
    if (CW_LIKELY(atomic_load(&cw_patience_busy) == 0))
        return 0;
    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL)
        if (cw_patience_is_over(pool_context))
            return 1;
    return 0;
}

void cw_reclaim_work(void)
{
    struct turn turn;

    if (!cw_gate_is_open() || is_any_busy() || atomic_exchange(&self.working, 1))
        return;
    if (!take_turn(&turn)) {
        atomic_store(&self.working, 0);
        return;
    }
    atomic_store(&cw_reclaim_due_any, 0);
    cw_retention_reclaim_begins();
    for (unsigned d = 0; d < CW_DEVICES; d++)
        if (cw_reclaim_due_of((uint8_t)d) != 0 && !work_on((uint8_t)d, &turn))
            break;
    cw_retention_reclaim_ends(CW_RELIEF_CALLS - turn.calls);
    for (unsigned d = 0; d < CW_DEVICES; d++)
        if (cw_reclaim_due_of((uint8_t)d) != 0)
            atomic_store(&cw_reclaim_due_any, 1);
    atomic_store(&self.working, 0);
}

/* ---- inside an allocation ---- */

void cw_reclaim_before_miss(struct cw_pool *pool, uint64_t bytes)
{
    struct turn turn;

    cw_demand_note(pool->device, bytes);
    if (CW_LIKELY(cw_usage_device(pool->device).held + bytes <= cw_demand_cap(pool->device)) ||
        cw_retention_counted(pool->device) == 0 || !cw_quiet_is_idle(pool->pool_context) ||
        atomic_exchange(&self.working, 1))
        return;
    if (take_turn(&turn)) {
        cw_retention_reclaim_begins();
        drop_beyond_cap_with(pool->device, bytes, &turn);
        cw_retention_reclaim_ends(CW_RELIEF_CALLS - turn.calls);
    }
    atomic_store(&self.working, 0);
}

int cw_reclaim_is_calm(void)
{
    struct cw_pool_context *pool_context;
    uint32_t at = 0;

    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL) {
        if (cw_session.ops->has_context_events() && !cw_quiet_is_idle(pool_context))
            return 0;
        cw_patience_renew(pool_context);
    }
    return 1;
}

void cw_reclaim_settle(void)
{
    struct cw_pool_context *pool_context;
    uint32_t at = 0;

    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL) {
        cw_pending_collect(pool_context);
        cw_pending_harvest(pool_context, UINT32_MAX, UINT32_MAX, 1);
    }
}
