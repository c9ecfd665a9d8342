/* SPDX-License-Identifier: MIT */
/* The value of the option BUDGET. See budget_rules.h. */
#include "base/options/budget_rules.h"

#include <string.h>

#include "base/options/number.h"
#include "base/pattern.h"

#define NONE "none"
#define TAG  "tag:"
#define NEXT "," TAG

/* ---- one item, from `at` to `end` ---- */

static int is_word(const char *at, const char *end, const char *word)
{
    return strlen(word) == (size_t)(end - at) && memcmp(at, word, (size_t)(end - at)) == 0;
}

/* SIZE, :warn and :refuse. */
static int read_amount(const char *at, const char *end, struct cw_budget_rule *rule)
{
    struct cw_decimal number;

    at = cw_number_read_decimal(at, &number);
    if (at)
        at = cw_number_read_bytes(at, &number, &rule->bytes);
    if (!at || at > end)
        return -1;
    rule->refuses = (uint8_t)is_word(at, end, ":refuse");
    return at == end || rule->refuses || is_word(at, end, ":warn") ? 0 : -1;
}

/* A pattern that matches any name must say so: *. */
static int read_pattern(const char *at, const char *end, struct cw_budget_rule *rule)
{
    size_t len = (size_t)(end - at);

    if (len == 0 || len >= sizeof(rule->pattern) || is_word(at, end, "^") || is_word(at, end, "$"))
        return -1;
    memcpy(rule->pattern, at, len);
    rule->pattern[len] = '\0';
    return 0;
}

static int read_item(const char *at, const char *end, int takes_none, struct cw_budget_rule *out,
                     int *out_is_none)
{
    struct cw_budget_rule rule = {.bytes = 0};
    const char *equal = end;

    while (equal > at && *equal != '=')
        equal--;
    if (strncmp(at, TAG, strlen(TAG)) != 0 || *equal != '=' ||
        read_pattern(at + strlen(TAG), equal, &rule) != 0)
        return -1;
    *out_is_none = takes_none && is_word(equal + 1, end, NONE);
    if (!*out_is_none && read_amount(equal + 1, end, &rule) != 0)
        return -1;
    *out = rule;
    return 0;
}

int cw_budget_rule_parse(const char *text, int takes_none, struct cw_budget_rule *out,
                         int *out_is_none)
{
    return strstr(text, NEXT) != NULL
               ? -1
               : read_item(text, text + strlen(text), takes_none, out, out_is_none);
}

/* ---- the list ---- */

static int has(const struct cw_budget_rules *rules, const char *pattern)
{
    for (unsigned i = 0; i < rules->count; i++)
        if (strcmp(rules->rule[i].pattern, pattern) == 0)
            return 1;
    return 0;
}

int cw_budget_rules_parse(const char *text, struct cw_budget_rules *out)
{
    struct cw_budget_rules rules = {.count = 0};
    const char *next = strcmp(text, NONE) != 0 ? text : NULL;
    int is_none;

    while (next != NULL) {
        struct cw_budget_rule rule;
        const char *at = next, *end;

        next = strstr(at, NEXT);
        end = next != NULL ? next++ : at + strlen(at);
        if (rules.count == CW_BUDGETS_MAX || read_item(at, end, 0, &rule, &is_none) != 0 ||
            has(&rules, rule.pattern))
            return -1;
        rules.rule[rules.count++] = rule;
    }
    *out = rules;
    return 0;
}

int cw_budget_rule_is_in_full(const struct cw_budget_rule *rule)
{
    size_t len = strlen(rule->pattern);

    return rule->is_name || (len > 2 && rule->pattern[0] == '^' && rule->pattern[len - 1] == '$' &&
                             strchr(rule->pattern, '*') == NULL);
}

int cw_budget_rule_counts(const struct cw_budget_rule *rule, const char *name)
{
    size_t len = strlen(name);

    if (!rule->is_name)
        return cw_pattern_matches(rule->pattern, name);
    return strlen(rule->pattern) == len + 2 && memcmp(rule->pattern + 1, name, len) == 0;
}

void cw_budget_rule_print(const struct cw_budget_rule *rule, struct cw_out *out)
{
    cw_out_printf(out, TAG "%s=", rule->pattern);
    cw_number_print_bytes(rule->bytes, out);
    cw_out_string(out, rule->refuses ? ":refuse" : ":warn");
}

void cw_budget_rules_print(const struct cw_budget_rules *rules, struct cw_out *out)
{
    if (rules->count == 0)
        cw_out_string(out, NONE);
    for (unsigned i = 0; i < rules->count; i++) {
        if (i != 0)
            cw_out_char(out, ',');
        cw_budget_rule_print(&rules->rule[i], out);
    }
}
