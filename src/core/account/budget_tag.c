/* SPDX-License-Identifier: MIT */
/* Rules of budgets, and the tags that they count. See budget_tag.h. */
#include "core/account/budget_tag.h"

#include <string.h>

#include "base/out.h"
#include "live/layout.h"

_Static_assert(CW_BUDGETS == CW_BUDGETS_MAX, "as many as the option may have");

CW_HOT_DATA _Atomic uint8_t cw_budget_tags[CW_TAGS_MAX + 1];

static struct cw_budget_rule rules[CW_BUDGETS];
static _Atomic uint8_t is_set[CW_BUDGETS];
static _Atomic unsigned count;
static int64_t pending[CW_TAGS_MAX + 1];
static unsigned claims;

unsigned cw_budget_rules(void)
{
    return atomic_load(&count);
}

const struct cw_budget_rule *cw_budget_rule_at(unsigned at)
{
    return &rules[at];
}

int cw_budget_rule_is_set(unsigned at)
{
    return atomic_load(&is_set[at]);
}

int cw_budget_rule_is_any_set(void)
{
    int any = 0;

    for (unsigned i = 0; i < CW_BUDGETS; i++)
        any |= cw_budget_rule_is_set(i);
    return any;
}

int cw_budget_rule_find(const char *pattern, int is_name)
{
    for (unsigned i = 0; i < cw_budget_rules(); i++)
        if (rules[i].is_name == is_name && strcmp(rules[i].pattern, pattern) == 0)
            return (int)i;
    return -1;
}

int cw_budget_rule_add(const struct cw_budget_rule *rule)
{
    int at = cw_budget_rule_find(rule->pattern, rule->is_name);
    unsigned end = cw_budget_rules();

    if (at >= 0 || end == CW_BUDGETS)
        return at;
    rules[end] = *rule;
    atomic_store(&count, end + 1); /* last: a child may be forked at any moment */
    return (int)end;
}

void cw_budget_rule_put(unsigned at, const struct cw_budget_rule *rule, int is_set_now)
{
    rules[at] = *rule;
    atomic_store(&is_set[at], (uint8_t)is_set_now);
    cw_budget_tag_forget();
}

/* ---- tags ---- */

void cw_budget_tag_own(const struct cw_budget_rule *rule)
{
    char name[CW_BUDGET_PATTERN_MAX];

    if (!cw_budget_rule_is_in_full(rule))
        return;
    cw_format(name, sizeof(name), "%.*s", (int)strlen(rule->pattern) - 2, rule->pattern + 1);
    cw_tag_name_own(name);
}

void cw_budget_tag_forget(void)
{
    for (unsigned i = 1; i <= CW_TAGS_MAX; i++)
        atomic_store_explicit(&cw_budget_tags[i], CW_BUDGET_UNKNOWN, memory_order_relaxed);
    atomic_store_explicit(&cw_budget_tags[0], CW_BUDGET_NONE, memory_order_relaxed);
}

uint8_t cw_budget_tag_find_name(const char *name)
{
    for (int in_full = 1; in_full >= 0; in_full--)
        for (unsigned i = 0; i < cw_budget_rules(); i++)
            if (cw_budget_rule_is_set(i) && cw_budget_rule_is_in_full(&rules[i]) == in_full &&
                cw_budget_rule_counts(&rules[i], name))
                return (uint8_t)(i + 1);
    return 0;
}

uint8_t cw_budget_tag_find(uint16_t tag)
{
    char label[CW_TAG_NAME_LABEL_MAX];
    uint8_t known = cw_budget_tag_known(tag), number;

    if (tag == 0)
        return 0;
    if (known != CW_BUDGET_UNKNOWN)
        return (uint8_t)(known - CW_BUDGET_NONE);
    number = cw_budget_tag_find_name(cw_tag_name_label(tag, label, sizeof(label)));
    cw_tag_name_show_budget(tag, number);
    atomic_store_explicit(&cw_budget_tags[tag], (uint8_t)(number + CW_BUDGET_NONE),
                          memory_order_release);
    return number;
}

/* ---- claims ---- */

void cw_budget_tag_claimed(uint16_t tag, uint64_t bytes)
{
    pending[tag] += (int64_t)bytes;
    claims++;
}

void cw_budget_tag_unclaimed(uint16_t tag, uint64_t bytes)
{
    pending[tag] -= (int64_t)bytes;
    claims--;
}

void cw_budget_tag_claim_grows(uint16_t tag, uint64_t bytes)
{
    pending[tag] += (int64_t)bytes;
}

int cw_budget_tag_has_claims(void)
{
    return claims != 0;
}

struct cw_budget_claims cw_budget_tag_claims(void)
{
    struct cw_budget_claims sums = {{0}};

    for (unsigned tag = 1; claims != 0 && tag <= CW_TAGS_MAX; tag++) {
        uint8_t number = pending[tag] != 0 ? cw_budget_tag_find((uint16_t)tag) : 0;

        if (number != 0)
            sums.bytes[number - 1] += pending[tag];
    }
    return sums;
}

void cw_budget_tag_forget_claims(void)
{
    memset(pending, 0, sizeof(pending));
    claims = 0;
}
