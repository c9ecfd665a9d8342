/* SPDX-License-Identifier: MIT */
/* Budgets, credit, and which block counts for which. See budget.h. */
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

/* After a thread was stopped for its credit, it counts so many frees in the shared sums at once
 * (core/account/usage.c). */
#define NO_SLACK_FREES 1024u

struct budget {
    _Atomic uint8_t refuses;
    _Atomic uint8_t is_beyond, has_warned;
    _Atomic int64_t bytes;
    _Atomic int64_t taken; /* by claims and marked blocks, and as credit */
    _Atomic int64_t peak;  /* as shown, and so are: */
    _Atomic uint64_t refused, exceeded;
    uint32_t text; /* of the pattern, as shown; under the lock */
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_BUDGET);
static struct cw_arena *arena; /* NULL: not armed */
static struct budget budgets[CW_BUDGETS];
CW_HOT_DATA struct cw_budget_credit cw_budget_credits[CW_SLOTS];

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

/* Credit included. */
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

/* ---- credit ---- */

/* The caller is inside the slot, has stopped it, or owns it and holds the lock. */
static void give_up(unsigned slot, unsigned at)
{
    _Atomic uint64_t *left = &cw_budget_credits[slot].left[at];

    atomic_fetch_sub_explicit(&budgets[at].taken, (int64_t)LOAD(*left), memory_order_relaxed);
    STORE(*left, 0);
}

static void give_up_all(uint64_t slots, unsigned first, unsigned end)
{
    for (uint64_t rest = slots; rest != 0; rest &= rest - 1)
        for (unsigned i = first; i < end; i++)
            if (LOAD(cw_budget_credits[__builtin_ctzll(rest)].left[i]) != 0)
                give_up((unsigned)__builtin_ctzll(rest), i);
}

/* Slots of other threads. */
static uint64_t others(void)
{
    return cw_slot_used() & ~((uint64_t)1 << cw_thread.slot) & ~UINT64_C(1);
}

static uint64_t have_credit(uint64_t slots, unsigned at)
{
    uint64_t found = 0;

    for (uint64_t rest = slots; rest != 0; rest &= rest - 1)
        if (LOAD(cw_budget_credits[__builtin_ctzll(rest)].left[at]) != 0)
            found |= rest & -rest;
    return found;
}

/* Takes back the credit of one budget. What other threads have first comes to light when they are
 * stopped: all of them, for an exact sum at one moment, else those that show some. */
static void settle_locked(unsigned at, int is_exact)
{
    uint64_t slots = is_exact ? others() : have_credit(others(), at);

    if (cw_thread.slot != 0)
        give_up_all((uint64_t)1 << cw_thread.slot, at, at + 1);
    if (slots == 0)
        return;
    cw_slot_stop(slots);
    for (uint64_t rest = have_credit(slots, at); rest != 0; rest &= rest - 1) {
        give_up((unsigned)__builtin_ctzll(rest), at);
        cw_slots[__builtin_ctzll(rest)].no_slack = NO_SLACK_FREES;
    }
    cw_slot_resume(slots);
}

/* ---- claims ---- */

static int try_take(struct budget *budget, uint64_t bytes)
{
    int64_t now = LOAD(budget->taken), most;

    do {
        most = LOAD(budget->bytes) - now;
        if (most < 0 || bytes > (uint64_t)most)
            return -1;
    } while (!atomic_compare_exchange_weak_explicit(&budget->taken, &now, now + (int64_t)bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 0;
}

static int take_slowly(unsigned at, uint64_t bytes)
{
    struct budget *budget = &budgets[at];
    struct cw_slot *slot = cw_slot_enter();

    if (slot != NULL) {
        give_up((unsigned)(slot - cw_slots), at);
        cw_slot_leave(slot);
    }
    if (try_take(budget, bytes) == 0)
        return 0;
    if (!atomic_load_explicit(&budget->refuses, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&budget->taken, (int64_t)bytes, memory_order_relaxed);
        return 0;
    }
    cw_lock_acquire(&lock);
    settle_locked(at, 1);
    cw_lock_release(&lock);
    return try_take(budget, bytes);
}

/* The driver refuses it, unless the budget does. */
static int claim_the_impossible(struct cw_budget_claim *out)
{
    int refuses = atomic_load(&budgets[out->budget - 1].refuses);

    out->bytes = 0;
    if (!refuses)
        out->budget = 0;
    return refuses ? -1 : 0;
}

int cw_budget_claim_slowly(uint64_t bytes, struct cw_budget_claim *out)
{
    *out = (struct cw_budget_claim){.bytes = bytes, .budget = cw_budget_of(cw_tag_here())};
    if (out->budget == 0)
        return 0;
    return bytes < MOST ? take_slowly(out->budget - 1u, bytes) : claim_the_impossible(out);
}

static void take(unsigned at, int64_t bytes)
{
    atomic_fetch_add_explicit(&budgets[at].taken, bytes, memory_order_relaxed);
}

static void give_to_all(unsigned at, uint64_t bytes)
{
    take(at, -(int64_t)bytes);
    if (room(&budgets[at]) >= 0)
        STORE(budgets[at].is_beyond, 0);
}

/* Inside the slot, which may be NULL. 1: it is credit now. Not while the budget is exceeded: it
 * would serve a request that must be refused. */
static CW_INLINE int give_inside(struct cw_slot *slot, unsigned at, uint64_t bytes)
{
    if (CW_UNLIKELY(slot == NULL || slot->no_slack != 0 || room(&budgets[at]) < 0))
        return 0;
    cw_slot_add(&cw_budget_credits[slot - cw_slots].left[at], bytes);
    return 1;
}

static void give(unsigned at, uint64_t bytes)
{
    struct cw_slot *slot = cw_slot_enter();
    int is_credit = give_inside(slot, at, bytes);

    if (slot != NULL)
        cw_slot_leave(slot);
    if (!is_credit)
        give_to_all(at, bytes);
}

void cw_budget_adjust(struct cw_budget_claim *claim, uint64_t bytes)
{
    if (claim->budget == 0 || claim->bytes == bytes)
        return;
    take(claim->budget - 1u, (int64_t)(bytes - claim->bytes));
    claim->bytes = bytes;
}

void cw_budget_give_back(struct cw_budget_claim *claim)
{
    if (claim->budget != 0)
        give(claim->budget - 1u, claim->bytes);
    claim->budget = 0;
}

void cw_budget_refused(const struct cw_budget_claim *claim)
{
    if (claim->budget != 0)
        COUNT(claim->budget - 1u, refused);
}

/* ---- blocks ---- */

/* No credit is left. The time is from before the lock, under which nobody outside is called. */
static void note_peak_locked(unsigned at, uint64_t now_ns)
{
    int64_t now = LOAD(budgets[at].taken);

    if (now <= LOAD(budgets[at].peak))
        return;
    STORE(budgets[at].peak, now);
    STORE(shown(at)->peak_bytes, (uint64_t)now);
    STORE(shown(at)->peak_ns, now_ns);
}

/* Claims of other threads count, too, as with usage. */
static void raise_peak(unsigned at)
{
    uint64_t now_ns = cw_session_now();

    cw_lock_acquire(&lock);
    settle_locked(at, 0);
    note_peak_locked(at, now_ns);
    cw_lock_release(&lock);
}

/* 1 if it is so, with all credit taken back. */
static int is_really_beyond(unsigned at)
{
    int is_beyond;

    cw_lock_acquire(&lock);
    settle_locked(at, 1);
    is_beyond = room(&budgets[at]) < 0;
    cw_lock_release(&lock);
    return is_beyond;
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

/* A block of this budget has come, and its peak is higher or it is beyond: raises the peak, warns.
 */
static CW_NOINLINE void look(unsigned at, uint32_t block)
{
    if (LOAD(budgets[at].taken) > LOAD(budgets[at].peak))
        raise_peak(at);
    if (room(&budgets[at]) >= 0 || atomic_load(&budgets[at].is_beyond) || !is_really_beyond(at) ||
        atomic_exchange(&budgets[at].is_beyond, 1))
        return;
    COUNT(at, exceeded);
    warn(at, LOAD(cw_tracker_at(block)->site));
}

/* The budget of a block, as that of its tag is known (budget_tag.h). */
static CW_INLINE uint8_t known_of(const struct cw_live_block *block)
{
    const struct cw_live_site *site = cw_site_own(cw_site_at(LOAD(block->site)));

    return cw_kind_counted(site->kind) == CW_COUNTED_DEVICE ? cw_budget_tag_known(site->tag)
                                                            : (uint8_t)CW_BUDGET_NONE;
}

static uint8_t find_for_block_locked(const struct cw_live_block *block)
{
    const struct cw_live_site *site = cw_site_own(cw_site_at(LOAD(block->site)));

    return cw_kind_counted(site->kind) == CW_COUNTED_DEVICE ? cw_budget_tag_find(site->tag) : 0;
}

/* Any block; returns who counts it. */
static CW_NOINLINE uint8_t count_slowly(uint32_t index, uint8_t claimed)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    int64_t bytes = (int64_t)LOAD(block->bytes);
    _Atomic uint8_t *mark;
    uint8_t number = 0;

    if (claimed == 0 && known_of(block) == CW_BUDGET_NONE && !cw_guard_is_on(CW_GUARD_CHANGING))
        return 0;
    cw_lock_acquire(&lock);
    mark = cw_budget_mark_made(index);
    if (mark != NULL && LOAD(*mark) == 0 &&
        atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE) {
        number = find_for_block_locked(block);
        STORE(*mark, number);
    }
    if (number != claimed) { /* nobody counts it any more, or a change of the budgets has done so */
        if (claimed != 0)
            take(claimed - 1u, -bytes);
        if (number != 0)
            take(number - 1u, bytes);
    }
    cw_lock_release(&lock);
    return number;
}

CW_HOT void cw_budget_count(uint32_t block, uint8_t claimed)
{
    _Atomic uint8_t *mark = cw_budget_mark_at(block);
    struct cw_slot *slot = CW_LIKELY(mark != NULL && claimed != 0) ? cw_slot_enter() : NULL;
    int is_usual = slot != NULL && !cw_guard_is_on(CW_GUARD_CHANGING) && LOAD(*mark) == 0 &&
                   cw_budget_tag_known(cw_tag_here()) == claimed + CW_BUDGET_NONE;
    int64_t taken;

    if (CW_LIKELY(is_usual))
        STORE(*mark, claimed);
    if (CW_LIKELY(slot != NULL))
        cw_slot_leave(slot);
    if (CW_UNLIKELY(!is_usual))
        claimed = count_slowly(block, claimed);
    if (CW_UNLIKELY(claimed == 0))
        return;
    taken = LOAD(budgets[claimed - 1].taken);
    if (CW_UNLIKELY(taken > LOAD(budgets[claimed - 1].peak) ||
                    taken > LOAD(budgets[claimed - 1].bytes)))
        look(claimed - 1u, block);
}

static CW_NOINLINE void gone_slowly(uint32_t block, uint64_t bytes)
{
    _Atomic uint8_t *mark;
    uint8_t number = 0;

    cw_lock_acquire(&lock);
    mark = cw_budget_mark_at(block);
    if (mark != NULL) {
        number = LOAD(*mark);
        STORE(*mark, 0);
    }
    if (number != 0)
        give_to_all(number - 1u, bytes);
    cw_lock_release(&lock);
}

CW_HOT void cw_budget_gone(uint32_t block, uint32_t guards)
{
    _Atomic uint8_t *mark = cw_budget_mark_at(block);
    int is_changing = (guards & CW_GUARD_CHANGING) != 0, is_credit;
    struct cw_slot *slot;
    uint64_t bytes;
    uint8_t number;

    if (!is_changing && (mark == NULL || LOAD(*mark) == 0))
        return;
    bytes = LOAD(cw_tracker_at(block)->bytes);
    slot = CW_LIKELY(!is_changing) ? cw_slot_enter() : NULL;
    if (CW_UNLIKELY(slot == NULL)) {
        gone_slowly(block, bytes);
        return;
    }
    number = LOAD(*mark);
    STORE(*mark, 0);
    is_credit = number == 0 || give_inside(slot, number - 1u, bytes);
    cw_slot_leave(slot);
    if (CW_UNLIKELY(!is_credit))
        give_to_all(number - 1u, bytes);
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

static void put(unsigned at, const struct cw_budget_rule *rule, int is_set)
{
    struct budget *budget = &budgets[at];

    cw_budget_rule_put(at, rule, is_set);
    atomic_store(&budget->bytes, rule->bytes < (uint64_t)MOST ? (int64_t)rule->bytes : MOST);
    atomic_store(&budget->refuses, rule->refuses);
    atomic_store(&budget->is_beyond, 0);
    atomic_store(&budget->has_warned, 0);
}

/* Which budget counts a block may have changed. It is still claimed as before; a block whose owner
 * is about to take a claim over is left to the owner. */
static void recount_block(uint32_t index)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    int is_live = atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE;
    _Atomic uint8_t *mark = cw_budget_mark_at(index);
    uint8_t with = mark != NULL ? LOAD(*mark) : 0, by;

    if (with == 0 && !is_live)
        return;
    by = find_for_block_locked(block);
    if (by == with)
        return;
    mark = cw_budget_mark_made(index);
    if (mark == NULL)
        return;
    STORE(*mark, by);
    if (with != 0)
        take(with - 1u, -(int64_t)LOAD(block->bytes));
    if (by != 0)
        take(by - 1u, (int64_t)LOAD(block->bytes));
}

static void recount(void)
{
    uint32_t blocks = arena != NULL ? cw_arena_count(arena, CW_TABLE_BLOCK) : 0;

    for (uint32_t i = 1; i < blocks; i++)
        recount_block(i);
}

/* While the threads at work are stopped, and have no credit of any budget. Who frees a block and
 * has not seen CHANGING has claimed the block before the barrier in cw_slot_stop, and is seen to
 * have; all others wait for the lock, as do threads whose slot is newer than that. */
static void change_locked(unsigned at, const struct cw_budget_rule *rule, int is_set,
                          uint64_t now_ns)
{
    uint64_t slots = others();

    cw_guard_set(CW_GUARD_BUDGET | CW_GUARD_CHANGING, 1);
    cw_slot_stop(slots);
    give_up_all(slots | (uint64_t)1 << cw_thread.slot, 0, CW_BUDGETS);
    put(at, rule, is_set);
    recount();
    cw_slot_resume(slots);
    show(at);
    for (unsigned i = 0; i < cw_budget_rules(); i++) { /* blocks have come or gone with another */
        if (room(&budgets[i]) >= 0)
            STORE(budgets[i].is_beyond, 0);
        if (arena != NULL && cw_budget_rule_is_set(i))
            note_peak_locked(i, now_ns);
    }
    cw_guard_set(CW_GUARD_CHANGING | (cw_budget_rule_is_any_set() ? 0 : CW_GUARD_BUDGET), 0);
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
    settle_locked(at, 1);
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
    memset(cw_budget_credits, 0, sizeof(cw_budget_credits));
    for (unsigned i = 0; i < CW_BUDGETS; i++) {
        atomic_store(&budgets[i].taken, 0);
        atomic_store(&budgets[i].peak, 0);
        atomic_store(&budgets[i].refused, 0);
        atomic_store(&budgets[i].exceeded, 0);
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
