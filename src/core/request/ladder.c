/* SPDX-License-Identifier: MIT */
/* The rungs of the ladder. See ladder.h. */
#include "core/request/ladder.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/lock.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/device/graph.h"
#include "core/account/event.h"
#include "core/request/fallback.h"
#include "core/request/neighbours.h"
#include "core/process/gate.h"
#include "core/cache/retention.h"
#include "core/limits/limit.h"
#include "core/pending/pending.h"
#include "core/reclaim/reclaim.h"
#include "core/pool/search.h"
#include "core/process/session.h"
#include "core/process/slot.h"
#include "core/account/usage.h"
#include "core/account/idle.h"

/* Without us the program's free would have waited for the device: polling for ready blocks for this
 * long costs nothing extra. */
#define POLL_NS UINT64_C(10000000)
/* How many rounds a ladder makes because other threads took what was given back; and how many of
 * these because memory only seems to be free: the device counts it but it may be fragmented, or we
 * count it but its context may be unusable. */
#define ROUNDS_MAX  64
#define GUESSES_MAX 16
/* With a limit in the way, an idle block up to so many times as large may serve, within the bound
 * of excess; a larger one is better released to make room for the request. With a full device, only
 * a block serves that any hit might get. */
#define LARGER_TIMES 2
/* Events of the same kind within this time are one. */
#define ONE_EVENT_NS UINT64_C(1000000000)

void cw_ladder_begin(struct cw_ladder *out, uint8_t device, uint64_t bytes)
{
    *out = (struct cw_ladder){.bytes = bytes,
                              .neighbours_ns = CW_NEIGHBOURS_WAIT_NS,
                              .reclaims = cw_reclaim_reclaims(),
                              .device = device,
                              .last = CW_RUNG_COUNT};
}

/* ---- the rungs: each says what to do next, or CW_LADDER_END if it had nothing to do ---- */

static enum cw_ladder_step serve(struct cw_ladder *ladder, uint32_t *out_block)
{
    *out_block = cw_search_take(ladder->pool, ladder->bytes);
    return *out_block != 0 ? CW_LADDER_SERVED : CW_LADDER_END;
}

static enum cw_ladder_step harvest(struct cw_ladder *ladder, uint32_t *out_block)
{
    if (ladder->pool == NULL || cw_reclaim_harvest(ladder->device) == 0)
        return CW_LADDER_END;
    return serve(ladder, out_block);
}

static enum cw_ladder_step larger(struct cw_ladder *ladder, uint32_t *out_block)
{
    uint64_t most = ladder->bytes + ladder->bytes / 8;

    if (ladder->pool == NULL || ladder->bytes > CW_SIZE_MOST / LARGER_TIMES)
        return CW_LADDER_END;
    if (ladder->cause != CW_CAUSE_DRIVER)
        most = ladder->bytes * LARGER_TIMES;
    *out_block = cw_search_take_larger(ladder->pool, ladder->bytes, most);
    return *out_block != 0 ? CW_LADDER_SERVED : CW_LADDER_END;
}

static enum cw_ladder_step exact(struct cw_ladder *ladder, uint32_t *out_block)
{
    (void)out_block;
    if (!ladder->is_rounded)
        return CW_LADDER_END;
    ladder->is_rounded = 0;
    return CW_LADDER_EXACT;
}

static enum cw_ladder_step ask_if(struct cw_ladder *ladder, uint64_t bytes)
{
    atomic_fetch_add(&cw_device_at(ladder->device)->memory.rung[ladder->rungs - 1].released, bytes);
    ladder->released += bytes;
    if (bytes == 0)
        return CW_LADDER_END;
    atomic_fetch_add(&cw_device_at(ladder->device)->pool.oom_retries, 1);
    return CW_LADDER_ASK;
}

/* Another thread may be giving back the blocks that this one did not find. */
static enum cw_ladder_step ask_or_wait(struct cw_ladder *ladder, uint64_t bytes)
{
    if (bytes == 0 && cw_reclaim_wait_for_others(ladder->reclaims))
        return CW_LADDER_ASK;
    return ask_if(ladder, bytes);
}

static int is_pinned(const struct cw_ladder *ladder)
{
    return ladder->pool != NULL && ladder->pool->device != ladder->device;
}

/* As far as the sums say, which other threads are changing: all that is idle would not be enough.
 * To give it back is no reason to wait for work, then. */
static int may_wait(const struct cw_ladder *ladder)
{
    uint64_t left = cw_driver_pool_spare(ladder->device), free_bytes;

    if (ladder->bytes == 0 || is_pinned(ladder))
        return 1;
    left += cw_idle_most(ladder->device);
    if (ladder->cause != CW_CAUSE_DRIVER)
        return cw_limit_shortfall(ladder->device, ladder->bytes) <= left;
    return cw_device_state(ladder->device)->shares_host ||
           cw_device_ask_free(ladder->device, &free_bytes) != 0 ||
           left + free_bytes >= ladder->bytes;
}

/* A limit says how much is missing; the driver does not. */
static enum cw_ladder_step sufficient(struct cw_ladder *ladder, uint32_t *out_block)
{
    uint64_t need = ladder->bytes;

    (void)out_block;
    if (is_pinned(ladder))
        return CW_LADDER_END;
    if (ladder->cause != CW_CAUSE_DRIVER)
        need = cw_limit_shortfall(ladder->device, ladder->bytes);
    return ask_if(ladder, cw_reclaim_sufficient(ladder->device, need, may_wait(ladder)));
}

/* When the device is full, the driver reuses the unused memory of its stream-ordered pools by
 * itself; when a limit is in the way, it must be told to trim them. */
static enum cw_ladder_step all(struct cw_ladder *ladder, uint32_t *out_block)
{
    int has_more;
    uint64_t bytes = cw_reclaim_all(ladder->device, is_pinned(ladder), may_wait(ladder), &has_more);
    enum cw_ladder_step step;

    (void)out_block;
    if (ladder->cause != CW_CAUSE_DRIVER)
        bytes += cw_driver_pool_trim(ladder->device);
    step = ask_or_wait(ladder, bytes);
    ladder->rungs -= has_more; /* once more */
    return step;
}

/* Pending bytes of the memory that is short. */
static uint64_t pending(const struct cw_ladder *ladder)
{
    return cw_pending_bytes(ladder->device) + cw_pending_bytes(CW_DEVICE_HOST);
}

/* If contexts with work have more, what is ready by now is next again: nothing is pending any more.
 */
static enum cw_ladder_step ask_after_all(struct cw_ladder *ladder)
{
    int has_more;
    uint64_t bytes = cw_reclaim_all(ladder->device, is_pinned(ladder), may_wait(ladder), &has_more);
    enum cw_ladder_step step = ask_if(ladder, bytes);

    if (has_more)
        ladder->rungs = CW_RUNG_ALL;
    return step;
}

static enum cw_ladder_step poll(struct cw_ladder *ladder, uint32_t *out_block)
{
    unsigned turns = 0;

    if (pending(ladder) == 0)
        return CW_LADDER_END;
    if (ladder->poll_end_ns == 0) /* so long in all rounds together */
        ladder->poll_end_ns = cw_session_now() + POLL_NS;
    do {
        if (cw_reclaim_harvest(ladder->device) != 0) {
            if (ladder->pool != NULL && serve(ladder, out_block) == CW_LADDER_SERVED)
                return CW_LADDER_SERVED;
            return ask_after_all(ladder);
        }
        cw_lock_relax(&turns);
    } while (cw_session_now() < ladder->poll_end_ns && !cw_gate_is_over());
    return CW_LADDER_END;
}

static enum cw_ladder_step sync(struct cw_ladder *ladder, uint32_t *out_block)
{
    int has_more = 0;
    uint64_t bytes =
        pending(ladder) != 0 ? cw_reclaim_rest(ladder->device, may_wait(ladder), &has_more) : 0;
    enum cw_ladder_step step = ask_or_wait(ladder, bytes);

    (void)out_block;
    ladder->rungs -= has_more; /* once more */
    return step;
}

/* First for what is missing, then for all that they have: the pieces may have been too small. They
 * have nothing that a limit of this process counts. */
static enum cw_ladder_step neighbours(struct cw_ladder *ladder, uint32_t *out_block)
{
    uint64_t given;
    enum cw_ladder_step step;

    (void)out_block;
    if (ladder->cause == CW_CAUSE_LIMIT || ladder->asked_neighbours == 2 || is_pinned(ladder))
        return CW_LADDER_END;
    given = cw_neighbours_ask(ladder->device, ladder->bytes, ladder->asked_neighbours,
                              &ladder->neighbours_ns);
    step = ask_if(ladder, given);
    if (step != CW_LADDER_END && ladder->asked_neighbours == 0)
        ladder->rungs--; /* once more */
    ladder->asked_neighbours = step == CW_LADDER_END ? 2 : ladder->asked_neighbours + 1;
    return step;
}

static _Atomic(cw_ladder_ask_fn) ask_program;

void cw_ladder_set_ask(cw_ladder_ask_fn ask)
{
    atomic_store(&ask_program, ask);
}

/* What it frees goes to the driver, as everybody's frees do now. */
static enum cw_ladder_step program(struct cw_ladder *ladder, uint32_t *out_block)
{
    cw_ladder_ask_fn ask = atomic_load(&ask_program);

    (void)out_block;
    if (ask == NULL || ladder->has_asked)
        return CW_LADDER_END;
    ladder->has_asked = 1;
    return ask(ladder->device, ladder->bytes) ? CW_LADDER_ASK : CW_LADDER_END;
}

static enum cw_ladder_step fallback(struct cw_ladder *ladder, uint32_t *out_block)
{
    (void)out_block;
    return ladder->may_be_managed && cw_fallback_is_on() ? CW_LADDER_MANAGED : CW_LADDER_END;
}

typedef enum cw_ladder_step (*rung_fn)(struct cw_ladder *ladder, uint32_t *out_block);

static const rung_fn rungs[CW_RUNG_COUNT] = {
    [CW_RUNG_HARVEST] = harvest, [CW_RUNG_LARGER] = larger,
    [CW_RUNG_EXACT] = exact,     [CW_RUNG_SUFFICIENT] = sufficient,
    [CW_RUNG_ALL] = all,         [CW_RUNG_POLL] = poll,
    [CW_RUNG_SYNC] = sync,       [CW_RUNG_NEIGHBOURS] = neighbours,
    [CW_RUNG_PROGRAM] = program, [CW_RUNG_FALLBACK] = fallback,
};

/* ---- climbing ---- */

static struct cw_live_memory *memory_of(const struct cw_ladder *ladder)
{
    return &cw_device_at(ladder->device)->memory;
}

/* A thread that is alone has missed nothing. */
static int is_raced(void)
{
    return __builtin_popcountll(cw_slot_used()) > 1;
}

/* 1 if the rungs have something to find. */
static int is_within_reach(const struct cw_ladder *ladder)
{
    return cw_bucket_idle(ladder->device) != 0 || pending(ladder) != 0;
}

/* With all that is idle given back the driver would not have so much: it stays, and the frees of
 * it, which may wait for work, are not made. */
static int is_in_vain(const struct cw_ladder *ladder)
{
    uint64_t left;

    if (ladder->cause != CW_CAUSE_DRIVER || ladder->bytes == 0 || is_pinned(ladder) ||
        pending(ladder) != 0 || is_raced() || cw_device_state(ladder->device)->shares_host ||
        cw_device_ask_free(ladder->device, &left) != 0)
        return 0;
    left += cw_driver_pool_spare(ladder->device);
    return left + cw_idle_most(ladder->device) < ladder->bytes;
}

/* Another thread has taken the memory that was given back, or has freed some since we looked
 * through the buckets: into the pool or, as far as we can tell, to the driver. */
static int is_worth_a_round(struct cw_ladder *ladder)
{
    uint64_t left;

    if (is_in_vain(ladder))
        return 0;
    if (cw_reclaim_wait_for_others(ladder->reclaims) ||
        (is_within_reach(ladder) && may_wait(ladder)))
        return 1;
    if (ladder->cause != CW_CAUSE_DRIVER && cw_limit_shortfall(ladder->device, ladder->bytes) == 0)
        return 1;
    if (!is_raced() || ladder->bytes == 0 || ladder->guesses == GUESSES_MAX)
        return 0;
    ladder->guesses++;
    if (cw_idle_bytes(ladder->device) != 0 && may_wait(ladder))
        return 1;
    if (ladder->cause != CW_CAUSE_DRIVER || cw_device_ask_free(ladder->device, &left) != 0)
        return 0;
    return left >= ladder->bytes;
}

/* 1: the next climb starts at SUFFICIENT again, which is worth while. */
static int begin_round(struct cw_ladder *ladder)
{
    if (ladder->rounds >= ROUNDS_MAX || !is_worth_a_round(ladder))
        return 0;
    ladder->rounds++;
    ladder->rungs = CW_RUNG_SUFFICIENT;
    return 1;
}

static enum cw_ladder_step try_next_rung(struct cw_ladder *ladder, uint32_t *out_block)
{
    unsigned rung = ladder->rungs++;
    enum cw_ladder_step step = rungs[rung](ladder, out_block);

    if (step != CW_LADDER_END) {
        ladder->last = (uint8_t)rung;
        atomic_fetch_add(&memory_of(ladder)->rung[rung].tried, 1);
    }
    return step;
}

/* Up to the first rung that has something to do. The fallback, memory of another kind, is put off
 * as long as another round is worth while: then the driver is asked first. */
static enum cw_ladder_step next(struct cw_ladder *ladder, uint32_t *out_block)
{
    enum cw_ladder_step step = CW_LADDER_END;

    while (step == CW_LADDER_END && ladder->rungs < CW_RUNG_COUNT) {
        if (ladder->rungs == CW_RUNG_FALLBACK && begin_round(ladder))
            return CW_LADDER_ASK;
        if (ladder->rungs == CW_RUNG_SUFFICIENT && is_in_vain(ladder))
            ladder->rungs = CW_RUNG_NEIGHBOURS;
        step = try_next_rung(ladder, out_block);
    }
    return step;
}

/* The request exceeds the device or the limit even with nothing in use: idle blocks stay. */
static int is_hopeless(const struct cw_ladder *ladder)
{
    uint64_t total = atomic_load(&cw_device_state(ladder->device)->driver_total);
    int by_limit = ladder->cause == CW_CAUSE_LIMIT || ladder->cause == CW_CAUSE_PLATFORM;
    uint64_t limit = by_limit ? cw_limit_of(ladder->device) : 0;

    return (total != 0 && ladder->bytes > total) || (limit != 0 && ladder->bytes > limit);
}

/* From now on all frees go to the driver, and the idle blocks of all threads move to where the
 * rungs look. */
static void want(struct cw_ladder *ladder)
{
    if (ladder->is_wanting || is_hopeless(ladder))
        return;
    ladder->is_wanting = 1;
    cw_retention_want(ladder->device);
    cw_retention_want(CW_DEVICE_HOST);
    cw_reclaim_gather(ladder->device);
}

void cw_ladder_end(struct cw_ladder *ladder)
{
    if (!ladder->is_wanting)
        return;
    ladder->is_wanting = 0;
    cw_retention_unwant(ladder->device);
    cw_retention_unwant(CW_DEVICE_HOST);
}

/* Nothing that is idle counts for a budget: only the program can help. */
static enum cw_ladder_step climb_for_budget(struct cw_ladder *ladder, uint32_t *out_block)
{
    if (ladder->rungs > CW_RUNG_PROGRAM || cw_gate_is_capturing())
        return CW_LADDER_END;
    ladder->rungs = CW_RUNG_PROGRAM;
    return try_next_rung(ladder, out_block);
}

enum cw_ladder_step cw_ladder_climb(struct cw_ladder *ladder, enum cw_cause cause,
                                    uint32_t *out_block)
{
    enum cw_ladder_step step;

    *out_block = 0;
    if (cause == CW_CAUSE_BUDGET) {
        ladder->cause = (uint8_t)cause;
        return climb_for_budget(ladder, out_block);
    }
    if (!ladder->is_counted && ladder->rungs == 0 &&
        (cause == CW_CAUSE_LIMIT || cause == CW_CAUSE_PLATFORM || cause == CW_CAUSE_MIN_FREE)) {
        ladder->is_counted = 1;
        atomic_fetch_add(&memory_of(ladder)->limited, 1);
    }
    ladder->cause = (uint8_t)cause;
    want(ladder);
    if (cw_gate_is_over() || !cw_capture_allows_help()) {
        step = exact(ladder, out_block); /* the program's own call, at the size that it asked for */
        if (step == CW_LADDER_END)
            cw_ladder_end(ladder);
        return step;
    }
    if (is_hopeless(ladder) && ladder->rungs < CW_RUNG_FALLBACK)
        ladder->rungs = CW_RUNG_FALLBACK;
    step = next(ladder, out_block);
    ladder->reclaims = cw_reclaim_reclaims(); /* what has ended by now the driver knows of */
    if (step == CW_LADDER_END)
        cw_ladder_end(ladder);
    return step;
}

/* ---- the outcome ---- */

/* Adds to the last event of the device if that says the same and is fresh. */
static int add_to_last(const struct cw_ladder *ladder, uint64_t now)
{
    uint32_t index = atomic_load(&memory_of(ladder)->last_trim);
    struct cw_live_event *event;

    if (index == 0)
        return 0;
    event = cw_event_at(index);
    if (event->cause != ladder->cause || event->rung != ladder->last ||
        now > event->t_ns + ONE_EVENT_NS)
        return 0;
    atomic_fetch_add(&event->count, 1);
    atomic_fetch_add(&event->released, ladder->released);
    return 1;
}

void cw_ladder_helped(struct cw_ladder *ladder, uint32_t site)
{
    struct cw_live_event event = {.type = CW_EVENT_TRIM,
                                  .device = ladder->device,
                                  .site = site,
                                  .bytes = ladder->bytes,
                                  .cause = ladder->cause,
                                  .rung = ladder->last};

    cw_ladder_end(ladder);
    if (ladder->last == CW_RUNG_COUNT)
        return;
    atomic_fetch_add(&memory_of(ladder)->rung[ladder->last].helped, 1);
    if (ladder->released == 0 || add_to_last(ladder, cw_session_now()))
        return;
    atomic_store(&event.released, ladder->released);
    atomic_store(&memory_of(ladder)->last_trim, cw_event_add(&event));
}
