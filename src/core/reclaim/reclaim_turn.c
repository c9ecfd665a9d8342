/* SPDX-License-Identifier: MIT */
/* What nobody waits for, in turns. See reclaim.h. Owns whose turn it is, and when contexts with
 * work are asked again: atomics, no lock. */
#include "core/reclaim/reclaim.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/account/tracker.h"
#include "core/account/usage.h"
#include "core/cache/retention.h"
#include "core/cache/thread_cache.h"
#include "core/limits/demand.h"
#include "core/limits/lending.h"
#include "core/limits/pressure.h"
#include "core/pending/patience.h"
#include "core/pending/ready.h"
#include "core/pending/release.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/reclaim/pool_walk.h"
#include "core/reclaim/quiet.h"

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

/* ---- a turn ---- */

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

    cw_reclaim_gather_ready(device);
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

static int is_beyond_cap_with(uint8_t device, uint64_t bytes)
{
    return cw_usage_device(device).held + bytes > cw_demand_cap(device);
}

static int drop_beyond_cap_with(uint8_t device, uint64_t more, struct turn *turn)
{
    while (is_beyond_cap_with(device, more)) {
        struct choice choice = choose(device, &turn->quiet);

        if (choice.pool == NULL)
            return 1;
        if (release_chosen(&choice, CW_RELEASE_FULL, turn) == 0 || is_over(turn))
            return 0;
    }
    return 1;
}

static int drop_while(uint64_t (*excess)(uint8_t device), enum cw_release why, uint8_t device,
                      struct turn *turn)
{
    while (excess(device) != 0) {
        struct choice choice = choose(device, &turn->quiet);

        if (choice.pool == NULL)
            return 1;
        if (release_chosen(&choice, why, turn) == 0 || is_over(turn))
            return 0;
    }
    return 1;
}

static int drop_beyond_cap(uint8_t device, struct turn *turn)
{
    return drop_beyond_cap_with(device, 0, turn) &&
           drop_while(cw_retention_surplus, CW_RELEASE_FULL, device, turn);
}

static int drop_for_level(uint8_t device, struct turn *turn)
{
    return drop_while(cw_pressure_excess, CW_RELEASE_PRESSURE, device, turn);
}

/* What is pending is looked at again when the device has had time to be done with it. */
static int drop_beyond_most(uint8_t device, struct turn *turn)
{
    int is_done;

    cw_reclaim_harvest(device);
    is_done = drop_while(cw_retention_excess, CW_RELEASE_ASKED, device, turn);
    turn->quiet.has_skipped |= is_done && cw_retention_is_exceeded(device);
    return is_done;
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

    cw_reclaim_gather_ready(device);
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

/* ---- what is due ---- */

static const struct {
    enum cw_reclaim_reason reason;
    step_fn step;
} steps[] = {
    {CW_RECLAIM_LEVEL, relieve_level}, {CW_RECLAIM_LENT, drop_lent},
    {CW_RECLAIM_COUNT, drop_excess},   {CW_RECLAIM_MOST, drop_beyond_most},
    {CW_RECLAIM_CAP, drop_beyond_cap}, {CW_RECLAIM_AGE, drop_doomed},
};

/* A neighbour waits: it gets memory also of a program that always has work, in its strict frees,
 * which have waited or are about to. With FREE_SYNC=deferred none may wait, and it gets some once
 * the program has synchronised. */
static int may_wait(enum cw_reclaim_reason reason)
{
    return reason == CW_RECLAIM_LENT && self.options->free_sync == CW_FREE_STRICT;
}

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
        turn->quiet.own = may_wait(steps[i].reason) ? cw_quiet_own() : NULL;
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

/* Contexts with work were met a moment ago. */
static int is_any_busy(void)
{
    uint64_t until_ns = atomic_load_explicit(&self.busy_until_ns, memory_order_relaxed);

    return until_ns != 0 && cw_session_now() < until_ns;
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
    uint8_t device = pool->device;
    int is_most = (cw_reclaim_due_of(device) & CW_RECLAIM_MOST) != 0;
    struct turn turn;

    cw_demand_note(device, bytes);
    if (cw_retention_counted(device) == 0 || (!is_most && !is_beyond_cap_with(device, bytes)))
        return;
    /* A later free does what this turn leaves. */
    cw_reclaim_due_set(device, CW_RECLAIM_CAP);
    if (!cw_quiet_is_idle(pool->pool_context) || atomic_exchange(&self.working, 1))
        return;
    if (take_turn(&turn)) {
        cw_retention_reclaim_begins();
        if (!is_most || drop_while(cw_retention_excess, CW_RELEASE_ASKED, device, &turn))
            drop_beyond_cap_with(device, bytes, &turn);
        cw_retention_reclaim_ends(CW_RELIEF_CALLS - turn.calls);
    }
    atomic_store(&self.working, 0);
}
