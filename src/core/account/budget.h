/* SPDX-License-Identifier: MIT */
/*
 * Budgets: how many bytes of device memory may be live with a tag (BUDGET, cuwarden_budget_set,
 * `ctl budget=`).
 *
 * A budget counts the blocks whose tag its pattern matches, on all devices together, by the bytes
 * asked for. A call that allocates claims its bytes before anything can serve it; its block takes
 * the claim over, or the claim is given back. So threads never overshoot together. A block
 * remembers which budget counts it, whatever becomes of the budgets, and gives back to that one.
 *
 * What a thread frees it keeps as credit and uses at its next allocation, inside its slot, like the
 * slack of core/account/usage.h: a steady program writes to nothing shared. Credit counts as taken;
 * it is taken back before a request is refused, a peak is raised, or a budget is read. While a
 * budget is exceeded nothing becomes credit.
 *
 * A block's mark (budget_mark.h) says which budget counts it. It changes inside the slot of the
 * block's owner, or under the lock, so that a change of the budgets, which stops the slots, finds
 * no block halfway: it goes through all of them, and moves what is live to the budget that counts
 * it from now on. So all bytes that are taken are in claims, in marked blocks or in credit.
 *
 * Owns the budgets and the credit, guarded by one lock (CW_RANK_BUDGET); what changes for threads
 * at work changes while their slots are stopped. They are kept from before the session is armed,
 * and by a forked child, where nothing is taken yet. A budget is never removed, only unset: its
 * number stays that of its pattern.
 */
#ifndef CW_CORE_BUDGET_H
#define CW_CORE_BUDGET_H

#include <stdint.h>

#include "base/options/budget_rules.h"
#include "core/account/budget_tag.h"
#include "core/process/guard.h"
#include "core/process/slot.h"
#include "core/process/types.h"
#include "core/tags/tag.h"
#include "live/arena.h"

/* Before the session is armed, and again in a forked child, after the tags. */
void cw_budget_init(struct cw_arena *arena, const struct cw_budget_rules *rules);
/* In a forked child. */
void cw_budget_reset(void);
/* At the end: a line for each rule that has counted nothing. Takes no lock. */
void cw_budget_tell_unused(void);

/* 1 if there is any. */
static inline int cw_budget_is_on(void)
{
    return cw_guard_is_on(CW_GUARD_BUDGET);
}

/* ---- of a call; none of these functions is called under a lock or inside a slot ---- */

/* By slot; written inside it, or while it is stopped. */
struct cw_budget_credit {
    _Alignas(64) _Atomic uint64_t left[CW_BUDGETS];
};
extern CW_HIDDEN struct cw_budget_credit cw_budget_credits[CW_SLOTS];

CW_NOINLINE int cw_budget_claim_slowly(uint64_t bytes, struct cw_budget_claim *out);

/* 1: the calling thread has a tag that no budget counts, or none. */
static inline int cw_budget_is_free(void)
{
    return cw_budget_tag_known(cw_tag_here()) == CW_BUDGET_NONE;
}

/* For a request of the calling thread, by its tag. 0: *out is the claim, of no budget if nothing
 * counts the tag. -1: it is refused; *out says by which. */
static CW_INLINE int cw_budget_claim(uint64_t bytes, struct cw_budget_claim *out)
{
    uint8_t known = cw_budget_tag_known(cw_tag_here());
    struct cw_slot *slot = CW_LIKELY(known > CW_BUDGET_NONE) ? cw_slot_enter() : NULL;
    _Atomic uint64_t *left;
    uint64_t there;

    if (CW_UNLIKELY(slot == NULL))
        return cw_budget_claim_slowly(bytes, out);
    left = &cw_budget_credits[slot - cw_slots].left[known - CW_BUDGET_NONE - 1];
    there = atomic_load_explicit(left, memory_order_relaxed);
    if (CW_LIKELY(there >= bytes))
        atomic_store_explicit(left, there - bytes, memory_order_relaxed);
    cw_slot_leave(slot);
    if (CW_UNLIKELY(there < bytes))
        return cw_budget_claim_slowly(bytes, out);
    out->bytes = bytes;
    out->budget = (uint8_t)(known - CW_BUDGET_NONE);
    return 0;
}
/* Makes a claim one of so many bytes, whether they fit or not. */
void cw_budget_adjust(struct cw_budget_claim *claim, uint64_t bytes);
/* The memory did not come. */
void cw_budget_give_back(struct cw_budget_claim *claim);
/* The call returns out of memory. */
void cw_budget_refused(const struct cw_budget_claim *claim);

/* A block is live, and takes over the claim that was made of `claimed` for as many bytes, or counts
 * now if its tag has a budget and nobody claimed (0). The program does not have it yet. */
void cw_budget_count(uint32_t block, uint8_t claimed);
/* A block goes; its owner calls it, with the guards as they were after it became the owner. */
CW_NOINLINE void cw_budget_gone(uint32_t block, uint32_t guards);

/* ---- at run time ---- */

/* 0, or -1: there are CW_BUDGETS different ones already. */
int cw_budget_set(const struct cw_budget_rule *rule);
/* 0, or -1: there is none of this pattern. */
int cw_budget_unset(const char *pattern, int is_name);

struct cw_budget_view {
    struct cw_budget_rule rule;
    uint64_t used_bytes, peak_bytes, refused, exceeded;
};
/* Of the budget with this number, from 1. 0, or -1: there is none. Exact at one moment. */
int cw_budget_read(uint8_t number, struct cw_budget_view *out);
/* The number of the one that counts a tag; 0: none does. */
uint8_t cw_budget_of(uint16_t tag);
/* The same of a name that nobody may have used yet. */
uint8_t cw_budget_of_name(const char *name);

#endif
