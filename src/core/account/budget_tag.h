/* SPDX-License-Identifier: MIT */
/*
 * Which budget counts a tag: the rules, by the number of their budget less one, and what follows
 * from them for each tag that was asked for; and the pending claims of each tag.
 *
 * Guarded by the lock of core/account/budget.c, which every caller holds, or the session is not
 * armed yet; but for cw_budget_tag_known, cw_budget_tag_own and cw_budget_rule_is_set. A rule is
 * never removed, only unset.
 */
#ifndef CW_CORE_BUDGET_TAG_H
#define CW_CORE_BUDGET_TAG_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/budget_rules.h"
#include "core/tags/tag_name.h"

/* What is known of a tag: a budget's number + NONE. */
enum { CW_BUDGET_UNKNOWN, CW_BUDGET_NONE };

extern CW_HIDDEN _Atomic uint8_t cw_budget_tags[CW_TAGS_MAX + 1];

static inline uint8_t cw_budget_tag_known(uint16_t tag)
{
    return CW_LIKELY(tag <= CW_TAGS_MAX)
               ? atomic_load_explicit(&cw_budget_tags[tag], memory_order_acquire)
               : (uint8_t)CW_BUDGET_NONE;
}

/* The number of the budget; 0: none counts it. */
uint8_t cw_budget_tag_find(uint16_t tag);
uint8_t cw_budget_tag_find_name(const char *name);
/* A rule for one name: the name gets a tag of its own, so that what counts is not that of all names
 * of its form (core/tags/tag_name.h). Not under the lock. */
void cw_budget_tag_own(const struct cw_budget_rule *rule);
/* Nothing is known of any tag any more. */
void cw_budget_tag_forget(void);

/* ---- claims that no block has taken over (core/account/budget.h) ---- */

/* One more claim of a request with this tag, one less, and more bytes for one of them. */
void cw_budget_tag_claimed(uint16_t tag, uint64_t bytes);
void cw_budget_tag_unclaimed(uint16_t tag, uint64_t bytes);
void cw_budget_tag_claim_grows(uint16_t tag, uint64_t bytes);
int cw_budget_tag_has_claims(void);
/* Their bytes, by the budget that counts them. */
struct cw_budget_claims {
    int64_t bytes[CW_BUDGETS_MAX];
};
struct cw_budget_claims cw_budget_tag_claims(void);
/* In a forked child. */
void cw_budget_tag_forget_claims(void);

/* ---- rules ---- */

/* How many there are, set or not. */
unsigned cw_budget_rules(void);
const struct cw_budget_rule *cw_budget_rule_at(unsigned at);
int cw_budget_rule_is_set(unsigned at);
int cw_budget_rule_is_any_set(void);
/* -1: there is none of this pattern. */
int cw_budget_rule_find(const char *pattern, int is_name);
/* Finds it, or adds it, unset; -1: there are CW_BUDGETS_MAX others. */
int cw_budget_rule_add(const struct cw_budget_rule *rule);
/* Forgets all tags. */
void cw_budget_rule_put(unsigned at, const struct cw_budget_rule *rule, int is_set);

#endif
