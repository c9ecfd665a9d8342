/* SPDX-License-Identifier: MIT */
/* Sums of budgets, pending claims, and the blocks that each budget counts. See budget.h. */
#include "core/account/budget.h"

#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "core/account/budget_mark.h"
#include "core/account/budget_tag.h"
#include "core/account/budget_warn.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "core/account/usage.h"
#include "core/process/session.h"
#include "core/process/slot.h"
#include "core/tags/tag.h"

struct budget {
    _Atomic uint8_t refuses;
    _Atomic uint8_t is_beyond, has_warned;
    _Atomic int64_t bytes;
    _Atomic int64_t taken; /* by marked blocks and pending claims */
    _Atomic int64_t peak;  /* as shown, and so are: */
    _Atomic uint64_t refused, exceeded;
    uint32_t text; /* of the pattern, as shown; under the lock */
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_BUDGET);
static struct cw_arena *arena; /* NULL: not armed */
static CW_HOT_DATA struct budget budgets[CW_BUDGETS];

#define LOAD(word)         atomic_load_explicit(&(word), memory_order_relaxed)
#define STORE(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)
#define COUNT(at, what)                                                                            \
    (atomic_fetch_add(&budgets[at].what, 1), atomic_fetch_add(&shown(at)->what, 1))

static struct cw_live_budget *shown(unsigned at)
{
    return &arena->header->budget[at];
}

/* No device has so much, and sums of what all threads claim at once do not overflow. */
#define MOST (INT64_C(1) << 52)

static int64_t room(const struct budget *budget)
{
    return LOAD(budget->bytes) - LOAD(budget->taken);
}

/* ---- which budget counts a tag ---- */

CW_HOT uint8_t cw_budget_of(uint16_t tag)
{
    uint8_t known = cw_budget_tag_known(tag), number;

    if (CW_LIKELY(known != CW_BUDGET_UNKNOWN))
        return (uint8_t)(known - CW_BUDGET_NONE);
    cw_lock_acquire(&lock);
    number = cw_budget_tag_find(tag);
    cw_lock_release(&lock);
    return number;
}

uint8_t cw_budget_of_name(const char *name)
{
    uint8_t number;

    cw_lock_acquire(&lock);
    number = cw_budget_tag_find_name(name);
    cw_lock_release(&lock);
    return number;
}

/* ---- sums ---- */

/* Returns the sum. */
static int64_t take(unsigned at, int64_t bytes)
{
    return atomic_fetch_add_explicit(&budgets[at].taken, bytes, memory_order_relaxed) + bytes;
}

/* Takes so many bytes if the budget allows it. Inside the slot, or under the lock. */
static CW_INLINE int try_take(unsigned at, uint64_t bytes, int64_t *out_sum)
{
    struct budget *budget = &budgets[at];
    int64_t now = LOAD(budget->taken), most;

    if (CW_UNLIKELY(!LOAD(budget->refuses))) {
        *out_sum = take(at, (int64_t)bytes);
        return 0;
    }
    do {
        most = LOAD(budget->bytes) - now;
        if (CW_UNLIKELY(most < 0 || bytes > (uint64_t)most))
            return -1;
    } while (!atomic_compare_exchange_weak_explicit(&budget->taken, &now, now + (int64_t)bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    *out_sum = now + (int64_t)bytes;
    return 0;
}

static CW_INLINE void give(unsigned at, uint64_t bytes)
{
    if (CW_UNLIKELY(take(at, -(int64_t)bytes) <= LOAD(budgets[at].bytes) &&
                    LOAD(budgets[at].is_beyond)))
        STORE(budgets[at].is_beyond, 0);
}

/* ---- claims ---- */

static int claim_locked(uint64_t bytes, struct cw_budget_claim *out)
{
    int64_t sum;

    out->tag = cw_tag_here();
    out->budget = cw_budget_tag_find(out->tag);
    if (bytes >= MOST && out->budget != 0 && !LOAD(budgets[out->budget - 1].refuses))
        out->budget = 0; /* the driver refuses it */
    if (out->budget == 0)
        return 0;
    if (bytes >= MOST || try_take(out->budget - 1u, bytes, &sum) != 0)
        return -1;
    cw_budget_tag_claimed(out->tag, bytes);
    return 0;
}

int cw_budget_claim_slowly(uint64_t bytes, struct cw_budget_claim *out)
{
    int rc;

    cw_lock_acquire(&lock);
    rc = claim_locked(bytes, out);
    cw_lock_release(&lock);
    return rc;
}

void cw_budget_adjust(struct cw_budget_claim *claim, uint64_t bytes)
{
    uint64_t more = bytes - claim->bytes;
    uint8_t number;

    if (claim->budget == 0 || more == 0)
        return;
    cw_lock_acquire(&lock);
    number = cw_budget_tag_find(claim->tag);
    if (number != 0)
        take(number - 1u, (int64_t)more);
    cw_budget_tag_claim_grows(claim->tag, more);
    claim->bytes = bytes;
    cw_lock_release(&lock);
}

/* While a claim is pending the guard stays on: its block may go before it has taken the claim over.
 */
static int is_needed_locked(void)
{
    return cw_budget_tag_has_claims() || cw_budget_rule_is_any_set();
}

/* Ends a claim, in whose place the budget `by` (0: none) counts so many bytes. */
static void end_locked(struct cw_budget_claim *claim, uint8_t by, uint64_t bytes)
{
    uint8_t number = 0;

    if (claim->budget != 0) {
        number = cw_budget_tag_find(claim->tag);
        cw_budget_tag_unclaimed(claim->tag, claim->bytes);
        claim->budget = 0;
    }
    if (number == by && number != 0)
        bytes -= claim->bytes; /* in one step: hits of other threads must not see less meanwhile */
    else if (number != 0)
        give(number - 1u, claim->bytes);
    if (by != 0 && bytes != 0)
        take(by - 1u, (int64_t)bytes);
    if (!is_needed_locked())
        cw_guard_set(CW_GUARD_BUDGET, 0);
}

void cw_budget_give_back(struct cw_budget_claim *claim)
{
    if (claim->budget == 0)
        return;
    cw_lock_acquire(&lock);
    end_locked(claim, 0, 0);
    cw_lock_release(&lock);
}

void cw_budget_refused(const struct cw_budget_claim *claim)
{
    if (claim->budget != 0)
        COUNT(claim->budget - 1u, refused);
}

/* ---- peaks, and what is beyond ---- */

/* sum: when a block came, whose owner then waited for the lock. The time is from before the lock,
 * under which nobody outside is called. */
static void note_peak_locked(unsigned at, int64_t sum, uint64_t now_ns)
{
    int64_t live = LOAD(budgets[at].taken) - cw_budget_tag_claims().bytes[at];

    if (!cw_budget_tag_has_claims() && live < sum)
        live = sum;
    if (live <= LOAD(budgets[at].peak))
        return;
    STORE(budgets[at].peak, live);
    STORE(shown(at)->peak_bytes, (uint64_t)live);
    STORE(shown(at)->peak_ns, now_ns);
}

static void raise_peak(unsigned at, int64_t sum)
{
    uint64_t now_ns = cw_session_now();

    cw_lock_acquire(&lock);
    note_peak_locked(at, sum, now_ns);
    cw_lock_release(&lock);
}

static void warn(unsigned at, uint32_t site)
{
    uint64_t live = (uint64_t)LOAD(budgets[at].taken);
    int is_first = !atomic_exchange(&budgets[at].has_warned, 1);
    struct cw_budget_rule rule;

    cw_lock_acquire(&lock);
    rule = *cw_budget_rule_at(at);
    cw_lock_release(&lock);
    cw_budget_warn(&rule, site, live, is_first);
}

static CW_INLINE int is_news(unsigned at, int64_t sum)
{
    return sum > LOAD(budgets[at].peak) || sum > LOAD(budgets[at].bytes);
}

void cw_budget_look(uint32_t block, const struct cw_budget_taken *taken)
{
    unsigned at = taken->budget - 1u;

    if (taken->sum > LOAD(budgets[at].peak))
        raise_peak(at, taken->sum);
    if (room(&budgets[at]) >= 0 || atomic_load(&budgets[at].is_beyond) ||
        atomic_exchange(&budgets[at].is_beyond, 1))
        return;
    COUNT(at, exceeded);
    warn(at, LOAD(cw_tracker_at(block)->site));
}

/* ---- blocks ---- */

/* Bytes that the program asked for. */
static uint64_t bytes_of(uint32_t block)
{
    return LOAD(cw_tracker_at(block)->bytes);
}

CW_HOT int cw_budget_take_inside(uint32_t block, uint64_t bytes, struct cw_budget_taken *out)
{
    _Atomic uint8_t *mark = cw_budget_mark_at(block);
    uint8_t known;

    *out = (struct cw_budget_taken){.budget = 0};
    if (CW_UNLIKELY(cw_guard_is_on(CW_GUARD_CHANGING))) /* the slot may be too new to be stopped */
        return 0;
    known = cw_budget_tag_known(cw_tag_here());
    if (known == CW_BUDGET_NONE)
        return 1;
    if (CW_UNLIKELY(known == CW_BUDGET_UNKNOWN || mark == NULL || bytes >= MOST ||
                    try_take(known - CW_BUDGET_NONE - 1u, bytes, &out->sum) != 0))
        return 0;
    out->budget = known - CW_BUDGET_NONE;
    out->is_news = (uint8_t)is_news(out->budget - 1u, out->sum);
    STORE(*mark, out->budget);
    return 1;
}

static int is_device(const struct cw_live_site *site)
{
    return cw_kind_counted(site->kind) == CW_COUNTED_DEVICE;
}

static const struct cw_live_site *site_of(const struct cw_live_block *block)
{
    return cw_site_own(cw_site_at(LOAD(block->site)));
}

static uint8_t find_for_block_locked(const struct cw_live_block *block)
{
    const struct cw_live_site *site = site_of(block);

    return is_device(site) ? cw_budget_tag_find(site->tag) : 0;
}

/* The budget that counts a block from now on, which nobody counts; 0: none, or it has gone already,
 * or a change of the budgets has counted it. */
static uint8_t mark_locked(uint32_t index)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    _Atomic uint8_t *mark = cw_budget_mark_made(index);
    uint8_t by;

    if (mark == NULL || (LOAD(*mark) != 0 && LOAD(*mark) != CW_BUDGET_EXPECTED) ||
        atomic_load_explicit(&block->state, memory_order_acquire) != CW_BLOCK_LIVE)
        return 0;
    by = find_for_block_locked(block);
    STORE(*mark, by);
    return by;
}

static void settle(uint32_t block, struct cw_budget_claim *claim)
{
    struct cw_budget_taken taken = {.budget = 0};

    cw_lock_acquire(&lock);
    taken.budget = mark_locked(block);
    end_locked(claim, taken.budget, taken.budget != 0 ? bytes_of(block) : 0);
    if (taken.budget != 0)
        taken.sum = LOAD(budgets[taken.budget - 1u].taken);
    cw_lock_release(&lock);
    if (taken.budget != 0 && is_news(taken.budget - 1u, taken.sum))
        cw_budget_look(block, &taken);
}

void cw_budget_count(uint32_t index)
{
    uint32_t guards = atomic_load_explicit(&cw_guards, memory_order_acquire);
    const struct cw_live_site *site = site_of(cw_tracker_at(index));
    _Atomic uint8_t *mark = cw_budget_mark_at(index);

    if ((mark == NULL || LOAD(*mark) != CW_BUDGET_EXPECTED) && is_device(site) &&
        ((guards & CW_GUARD_CHANGING) != 0 || cw_budget_tag_known(site->tag) != CW_BUDGET_NONE))
        settle(index, &(struct cw_budget_claim){.budget = 0});
}

void cw_budget_settle(uint32_t block, struct cw_budget_claim *claim)
{
    if (block == 0)
        cw_budget_give_back(claim);
    else if (claim->budget == 0)
        cw_budget_count(block);
    else
        settle(block, claim);
}

static CW_NOINLINE void gone_slowly(uint32_t block)
{
    _Atomic uint8_t *mark;
    uint8_t number = 0;

    cw_lock_acquire(&lock);
    mark = cw_budget_mark_at(block);
    if (mark != NULL) {
        number = LOAD(*mark);
        STORE(*mark, 0);
    }
    if (number != 0 && number != CW_BUDGET_EXPECTED)
        give(number - 1u, bytes_of(block));
    cw_lock_release(&lock);
}

CW_HOT void cw_budget_gone(uint32_t block, uint32_t guards)
{
    _Atomic uint8_t *mark = cw_budget_mark_at(block);
    int is_changing = (guards & CW_GUARD_CHANGING) != 0;
    struct cw_slot *slot;
    uint8_t number;

    if (!is_changing && (mark == NULL || LOAD(*mark) == 0))
        return;
    slot = CW_LIKELY(!is_changing) ? cw_slot_enter() : NULL;
    if (CW_UNLIKELY(slot == NULL)) {
        gone_slowly(block);
        return;
    }
    number = LOAD(*mark);
    STORE(*mark, 0);
    if (CW_LIKELY(number != 0 && number != CW_BUDGET_EXPECTED))
        give(number - 1u, bytes_of(block));
    cw_slot_leave(slot);
}

/* ---- budgets ---- */

static void show(unsigned at)
{
    const struct cw_budget_rule *rule = cw_budget_rule_at(at);

    if (arena == NULL)
        return;
    STORE(shown(at)->bytes, rule->bytes);
    atomic_store(&shown(at)->refuses, rule->refuses);
    atomic_store(&shown(at)->is_set, cw_budget_rule_is_set(at));
    if (budgets[at].text == 0)
        budgets[at].text = cw_arena_text(arena, rule->pattern, strlen(rule->pattern));
    atomic_store(&shown(at)->pattern, budgets[at].text);
}

/* A budget that is set again after it was unset starts anew. */
static void begin(unsigned at)
{
    STORE(budgets[at].peak, 0);
    STORE(budgets[at].refused, 0);
    STORE(budgets[at].exceeded, 0);
    if (arena == NULL)
        return;
    STORE(shown(at)->peak_bytes, 0);
    STORE(shown(at)->peak_ns, 0);
    STORE(shown(at)->refused, 0);
    STORE(shown(at)->exceeded, 0);
}

static void put(unsigned at, const struct cw_budget_rule *rule, int is_set)
{
    struct budget *budget = &budgets[at];

    if (is_set && !cw_budget_rule_is_set(at))
        begin(at);
    cw_budget_rule_put(at, rule, is_set);
    atomic_store(&budget->bytes, rule->bytes < (uint64_t)MOST ? (int64_t)rule->bytes : MOST);
    atomic_store(&budget->refuses, rule->refuses);
    atomic_store(&budget->is_beyond, 0);
    atomic_store(&budget->has_warned, 0);
}

/* Takes the claims' bytes, or gives them back. */
static void count_claims(int sign)
{
    struct cw_budget_claims claims = cw_budget_tag_claims();

    for (unsigned i = 0; i < CW_BUDGETS; i++)
        take(i, sign * claims.bytes[i]);
}

/* A block that is expected counts with its claim. */
static void recount_block(uint32_t index)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    int is_live = atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE;
    _Atomic uint8_t *mark = cw_budget_mark_at(index);
    uint8_t with = mark != NULL ? LOAD(*mark) : 0, by;

    if (with == CW_BUDGET_EXPECTED || (with == 0 && !is_live))
        return;
    by = find_for_block_locked(block);
    if (by == with)
        return;
    mark = cw_budget_mark_made(index);
    if (mark == NULL)
        return;
    STORE(*mark, by);
    if (with != 0)
        take(with - 1u, -(int64_t)bytes_of(index));
    if (by != 0)
        take(by - 1u, (int64_t)bytes_of(index));
}

static void recount(void)
{
    uint32_t blocks = arena != NULL ? cw_arena_count(arena, CW_TABLE_BLOCK) : 0;

    for (uint32_t i = 1; i < blocks; i++)
        recount_block(i);
}

/* Slots of other threads. */
static uint64_t others(void)
{
    return cw_slot_used() & ~((uint64_t)1 << cw_thread.slot) & ~UINT64_C(1);
}

/* While the threads at work are stopped. A thread that frees a block and has not seen CHANGING has
 * claimed the block before the barrier in cw_slot_stop, and is seen to have; all others wait for
 * the lock, as do threads whose slot is newer than that. */
static void change_locked(unsigned at, const struct cw_budget_rule *rule, int is_set,
                          uint64_t now_ns)
{
    uint64_t slots = others();

    cw_guard_set(CW_GUARD_BUDGET | CW_GUARD_CHANGING, 1);
    cw_slot_stop(slots);
    count_claims(-1);
    put(at, rule, is_set);
    count_claims(1);
    recount();
    cw_slot_resume(slots);
    show(at);
    for (unsigned i = 0; i < cw_budget_rules(); i++) { /* blocks have come or gone with another */
        if (room(&budgets[i]) >= 0)
            STORE(budgets[i].is_beyond, 0);
        if (arena != NULL && cw_budget_rule_is_set(i))
            note_peak_locked(i, 0, now_ns);
    }
    cw_guard_set(CW_GUARD_CHANGING | (is_needed_locked() ? 0 : CW_GUARD_BUDGET), 0);
}

int cw_budget_set(const struct cw_budget_rule *rule)
{
    uint64_t now_ns = arena != NULL ? cw_session_now() : 0;
    int at;

    cw_budget_tag_own(rule);
    cw_lock_acquire(&lock);
    at = cw_budget_rule_add(rule);
    if (at >= 0)
        change_locked((unsigned)at, rule, 1, now_ns);
    cw_lock_release(&lock);
    return at >= 0 ? 0 : -1;
}

int cw_budget_unset(const char *pattern, int is_name)
{
    uint64_t now_ns = arena != NULL ? cw_session_now() : 0;
    struct cw_budget_rule rule;
    int at, was_set;

    cw_lock_acquire(&lock);
    at = cw_budget_rule_find(pattern, is_name);
    was_set = at >= 0 && cw_budget_rule_is_set((unsigned)at);
    if (was_set) {
        rule = *cw_budget_rule_at((unsigned)at);
        change_locked((unsigned)at, &rule, 0, now_ns);
    }
    cw_lock_release(&lock);
    return was_set ? 0 : -1;
}

int cw_budget_read(uint8_t number, struct cw_budget_view *out)
{
    unsigned at = number - 1u;
    int64_t now;

    if (number == 0 || number > cw_budget_rules())
        return -1;
    cw_lock_acquire(&lock);
    now = LOAD(budgets[at].taken);
    *out = (struct cw_budget_view){.rule = *cw_budget_rule_at(at),
                                   .used_bytes = now > 0 ? (uint64_t)now : 0};
    out->peak_bytes = (uint64_t)LOAD(budgets[at].peak);
    out->refused = LOAD(budgets[at].refused);
    out->exceeded = LOAD(budgets[at].exceeded);
    cw_lock_release(&lock);
    return 0;
}

/* ---- the session ---- */

static void forget(void)
{
    cw_budget_tag_forget_claims();
    for (unsigned i = 0; i < CW_BUDGETS; i++) {
        begin(i);
        atomic_store(&budgets[i].taken, 0);
        atomic_store(&budgets[i].is_beyond, 0);
        atomic_store(&budgets[i].has_warned, 0);
        budgets[i].text = 0;
    }
}

void cw_budget_init(struct cw_arena *in, const struct cw_budget_rules *rules)
{
    arena = in;
    forget();
    for (unsigned i = 0; i < rules->count; i++) {
        const struct cw_budget_rule *rule = &rules->rule[i];
        int at = cw_budget_rule_find(rule->pattern, 0) < 0 ? cw_budget_rule_add(rule) : -1;

        if (at < 0) /* the program has set it meanwhile */
            continue;
        cw_budget_tag_own(rule);
        put((unsigned)at, rule, 1);
    }
    for (unsigned i = 0; i < cw_budget_rules(); i++)
        show(i);
    cw_budget_tag_forget();
    cw_guard_set(CW_GUARD_BUDGET, cw_budget_rule_is_any_set());
}

void cw_budget_tell_unused(void)
{
    /* A process that only looks at a device is not the one that was meant. */
    unsigned count = cw_usage_is_any_used() ? cw_budget_rules() : 0;

    for (unsigned i = 0; i < count; i++)
        if (cw_budget_rule_is_set(i) && !cw_budget_rule_at(i)->is_name &&
            LOAD(budgets[i].peak) == 0 && LOAD(budgets[i].refused) == 0)
            cw_budget_warn_of_unused(cw_budget_rule_at(i));
}

void cw_budget_reset(void)
{
    cw_lock_reset(&lock);
    arena = NULL;
    forget();
    cw_budget_mark_reset();
    cw_guard_set(CW_GUARD_BUDGET | CW_GUARD_CHANGING, 0);
}
