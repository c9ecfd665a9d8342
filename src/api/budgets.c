/* SPDX-License-Identifier: MIT */
/* Budgets of tags. See api.h and core/account/budget.h. */
#include "api/budgets.h"

#include <string.h>

#include "base/out.h"
#include "base/utf8.h"
#include "core/account/budget.h"
#include "core/account/budget_warn.h"
#include "core/tags/tag_name.h"

/* Budgets are kept before the first call of CUDA, and after the end of the account nobody reads
 * them. */
static int check(const char *tag)
{
    int error = cw_api_check_active();

    if (error == CUWARDEN_OK && (tag == NULL || tag[0] == '\0'))
        error = cw_api_fail(CUWARDEN_INVALID,
                            "a budget is that of a tag, and needs its name; this one is %s",
                            tag == NULL ? "NULL" : "empty");
    return error;
}

/* The pattern of a tag's name, as long as names are; 1 if it holds what patterns take for
 * something else. */
static int make_pattern(const char *tag, char out[CW_BUDGET_PATTERN_MAX])
{
    cw_format(out, CW_BUDGET_PATTERN_MAX, "^%.*s$", (int)cw_utf8_cut(tag, CW_TAG_NAME_MAX), tag);
    return strchr(out, '*') != NULL;
}

/* It is no error: what is live stays. */
static void tell_if_less(const char *tag, const struct cw_budget_rule *rule)
{
    struct cw_budget_view view;

    if (cw_budget_read(cw_budget_of_name(tag), &view) == 0 && view.used_bytes > rule->bytes)
        cw_budget_warn_of_old(rule, view.used_bytes);
}

uint64_t cw_api_budget_room(struct cw_budget_view *out)
{
    uint8_t number = cw_session_is_armed() && cw_budget_is_on() ? cw_budget_of(cw_tag_here()) : 0;

    if (number == 0 || cw_budget_read(number, out) != 0 || !out->rule.refuses)
        return UINT64_MAX;
    return out->used_bytes < out->rule.bytes ? out->rule.bytes - out->used_bytes : 0;
}

int cw_api_budget_set(const char *tag, uint64_t bytes, int how)
{
    struct cw_budget_rule rule = {.bytes = bytes, .refuses = how == CUWARDEN_REFUSE};
    int error = check(tag);

    if (error != CUWARDEN_OK)
        return error;
    if (how != CUWARDEN_WARN && how != CUWARDEN_REFUSE)
        return cw_api_fail(CUWARDEN_INVALID, "a budget cannot do %d: it warns (%d) or refuses (%d)",
                           how, CUWARDEN_WARN, CUWARDEN_REFUSE);
    rule.is_name = (uint8_t)make_pattern(tag, rule.pattern);
    if (cw_budget_set(&rule) == 0) {
        tell_if_less(tag, &rule);
        return CUWARDEN_OK;
    }
    return cw_api_fail(CUWARDEN_OUT_OF_HOST,
                       "no room for a budget of '%s': there are %d of others already", tag,
                       CW_BUDGETS_MAX);
}

int cw_api_budget_clear(const char *tag)
{
    char pattern[CW_BUDGET_PATTERN_MAX];
    int error = check(tag), is_name;

    if (error != CUWARDEN_OK)
        return error;
    is_name = make_pattern(tag, pattern);
    if (cw_budget_unset(pattern, is_name) == 0)
        return CUWARDEN_OK;
    return cw_api_fail(CUWARDEN_NOT_FOUND,
                       "'%s' has no budget of its own (a pattern of CUWARDEN_BUDGET may count it)",
                       tag);
}

int cw_api_budget_now(const char *tag, struct cuwarden_budget *out, size_t size)
{
    char name[CW_TAG_NAME_MAX];
    struct cuwarden_budget now;
    struct cw_budget_view view;
    int error = check(tag);

    if (error != CUWARDEN_OK)
        return error;
    cw_format(name, sizeof(name), "%.*s", (int)cw_utf8_cut(tag, sizeof(name)), tag);
    if (cw_budget_read(cw_budget_of_name(name), &view) != 0)
        return cw_api_fail(CUWARDEN_NOT_FOUND, "no budget counts '%s'", tag);
    now = (struct cuwarden_budget){.bytes = view.rule.bytes,
                                   .used_bytes = view.used_bytes,
                                   .peak_bytes = view.peak_bytes,
                                   .refused = view.refused,
                                   .exceeded = view.exceeded,
                                   .how = view.rule.refuses ? CUWARDEN_REFUSE : CUWARDEN_WARN};
    cw_api_give(out, size, &now, sizeof(now));
    return CUWARDEN_OK;
}
