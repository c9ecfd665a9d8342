/* SPDX-License-Identifier: MIT */
/*
 * Budgets for tags: the value of the option BUDGET, from text and back.
 *
 * An item is tag:PATTERN=SIZE, with :warn or :refuse after it; warn is what it does without. The
 * next item begins at ",tag:", and the size after an item's last =, so that a name may have
 * commas, equal signs and colons in it. Owns nothing; no lock.
 */
#ifndef CW_BASE_BUDGET_RULES_H
#define CW_BASE_BUDGET_RULES_H

#include <stdint.h>

#include "base/out.h"

#define CW_BUDGETS_MAX        16
#define CW_BUDGET_PATTERN_MAX 128 /* bytes, with the NUL; a longer one is rejected */

struct cw_budget_rule {
    uint64_t bytes;
    uint8_t refuses;                     /* else it warns */
    uint8_t is_name;                     /* the pattern is "^NAME$", and nothing in NAME is special;
                                            never so if it was read from text */
    char pattern[CW_BUDGET_PATTERN_MAX]; /* base/pattern.h */
};

struct cw_budget_rules {
    unsigned count;
    struct cw_budget_rule rule[CW_BUDGETS_MAX];
};

/* "none", or a list of items with different patterns. 0, or -1 with *out unchanged. */
int cw_budget_rules_parse(const char *text, struct cw_budget_rules *out);
void cw_budget_rules_print(const struct cw_budget_rules *rules, struct cw_out *out);

/* One item; where takes_none is set also tag:PATTERN=none, which sets *out_is_none. 0, or -1. */
int cw_budget_rule_parse(const char *text, int takes_none, struct cw_budget_rule *out,
                         int *out_is_none);
/* 1 if only one name matches, written out: such rules go before others. */
int cw_budget_rule_is_in_full(const struct cw_budget_rule *rule);
int cw_budget_rule_counts(const struct cw_budget_rule *rule, const char *name);
void cw_budget_rule_print(const struct cw_budget_rule *rule, struct cw_out *out);

#endif
