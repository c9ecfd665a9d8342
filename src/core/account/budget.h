/* SPDX-License-Identifier: MIT */
/*
 * Budgets: how many bytes of device memory may be live with a tag (BUDGET, cuwarden_budget_set,
 * `ctl budget=`).
 *
 * A budget counts the blocks whose tag its pattern matches, on all devices together, by the bytes
 * requested, in one atomic sum. A hit in the thread's own cache checks and raises the sum, and
 * marks its block, in the slot visit that serves it. Any other request claims its bytes under the
 * lock before the pool is searched or the driver is called; its block takes the claim over, or the
 * claim is given back. So threads never overshoot together.
 *
 * A block's mark (budget_mark.h) is the number of the budget that counts it. It changes inside the
 * slot of the block's owner, before the block is live, or under the lock. The block of a pending
 * claim is marked as EXPECTED before it is live, so that nobody counts it beside its claim.
 *
 * A change of the budgets holds the lock and stops the slots. It moves pending claims, which are
 * added up by tag, and live blocks to the budget that counts their tag from then on. Always: a
 * budget's sum is what its tags have in marked blocks and in pending claims.
 *
 * Owns the budgets and the sums of claims, guarded by one lock (CW_RANK_BUDGET). Budgets exist from
 * before the session is armed, and a forked child keeps them, where nothing is counted yet. A
 * budget is never removed, only unset: its number stays that of its pattern.
 */
#ifndef CW_CORE_BUDGET_H
#define CW_CORE_BUDGET_H

#include <stdint.h>

#include "base/options/budget_rules.h"
#include "core/account/budget_mark.h"
#include "core/account/budget_tag.h"
#include "core/process/guard.h"
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

/* ---- of a call; none of these functions is called under a lock or inside a slot, but for
 * cw_budget_take_inside ---- */

/* 1: the calling thread has a tag that no budget counts, or none. */
static inline int cw_budget_is_free(void)
{
    return cw_budget_tag_known(cw_tag_here()) == CW_BUDGET_NONE;
}

/* What cw_budget_take_inside has changed. */
struct cw_budget_taken {
    int64_t sum;    /* of the budget, afterwards */
    uint8_t budget; /* its number; 0: none counts the tag */
    uint8_t is_news;
};

/* Inside the calling thread's slot, for an idle block that it is about to own: counts the bytes for
 * the thread's tag and marks the block. 0: nothing is changed; the caller claims the bytes. */
int cw_budget_take_inside(uint32_t block, uint64_t bytes, struct cw_budget_taken *out);
/* For is_news: the block is live, and the slot is left. Raises the peak, and warns. */
CW_NOINLINE void cw_budget_look(uint32_t block, const struct cw_budget_taken *taken);

CW_NOINLINE int cw_budget_claim_slowly(uint64_t bytes, struct cw_budget_claim *out);

/* Claims the bytes of a request of the calling thread for its tag. 0: *out is the claim, of no
 * budget if none counts the tag. -1: it is refused, by the budget in *out. */
static inline int cw_budget_claim(uint64_t bytes, struct cw_budget_claim *out)
{
    *out = (struct cw_budget_claim){.bytes = bytes};
    return cw_budget_is_free() ? 0 : cw_budget_claim_slowly(bytes, out);
}
/* Makes a claim one of so many bytes, whether they fit or not. */
void cw_budget_adjust(struct cw_budget_claim *claim, uint64_t bytes);
/* The request was not served. */
void cw_budget_give_back(struct cw_budget_claim *claim);
/* The call returns out of memory. */
void cw_budget_refused(const struct cw_budget_claim *claim);

/* Marks a block that will be live before it takes over a claim of the calling thread, or undoes
 * that. The caller owns the record, which is idle or free. 0: no block. */
static inline void cw_budget_expect(uint32_t block, const struct cw_budget_claim *claim)
{
    if (block != 0 && claim->budget != 0)
        cw_budget_mark_expect(block);
}

static inline void cw_budget_unexpect(uint32_t block)
{
    if (block != 0)
        cw_budget_mark_clear(block);
}

/* The block is live, the program does not have it yet, and it takes the claim over. 0: there is no
 * record of the block; the claim is given back. */
void cw_budget_settle(uint32_t block, struct cw_budget_claim *claim);
/* A block is live, which is counted now unless it is expected. */
void cw_budget_count(uint32_t block);
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
/* The budget with this number, from 1; used_bytes includes pending claims. 0, or -1: there is none.
 */
int cw_budget_read(uint8_t number, struct cw_budget_view *out);
/* The number of the one that counts a tag; 0: none does. */
uint8_t cw_budget_of(uint16_t tag);
/* The same of a name that nobody may have used yet. */
uint8_t cw_budget_of_name(const char *name);

#endif
