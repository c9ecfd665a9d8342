/* SPDX-License-Identifier: MIT */
/* Events and lines of budgets. See budget_warn.h. */
#include "core/account/budget_warn.h"

#include "base/log.h"
#include "base/out.h"
#include "core/account/event.h"
#include "core/account/site.h"
#include "core/tags/tag_name.h"

#define TEXT_MAX (CW_BUDGET_PATTERN_MAX + 48)

static const char *text_of(const struct cw_budget_rule *rule, char text[TEXT_MAX])
{
    struct cw_out out;

    cw_out_init(&out, -1, text, TEXT_MAX - 1);
    cw_budget_rule_print(rule, &out);
    text[out.len] = '\0';
    return text;
}

void cw_budget_warn(const struct cw_budget_rule *rule, uint32_t site, uint64_t live, int is_first)
{
    const struct cw_live_site *of = cw_site_own(cw_site_at(site));
    char size[24], more[24], text[TEXT_MAX], label[CW_TAG_NAME_LABEL_MAX];

    cw_event_add(&(struct cw_live_event){
        .type = CW_EVENT_BUDGET, .site = site, .device = of->device, .bytes = live});
    if (!is_first)
        return;
    cw_log(CW_LOG_WARN,
           "budget %s is exceeded: %s are live, %s more than it allows; the allocation was one of "
           "'%s' (once; the report counts how often)",
           text_of(rule, text), cw_format_size(size, sizeof(size), live),
           cw_format_size(more, sizeof(more), live > rule->bytes ? live - rule->bytes : 0),
           cw_tag_name_label(of->tag, label, sizeof(label)));
}

void cw_budget_warn_of_old(const struct cw_budget_rule *rule, uint64_t live)
{
    char size[24], text[TEXT_MAX];

    cw_log(CW_LOG_WARN,
           "budget %s is less than the %s that are live already: they stay, and what is asked for "
           "next is beyond it",
           text_of(rule, text), cw_format_size(size, sizeof(size), live));
}

void cw_budget_warn_of_unused(const struct cw_budget_rule *rule)
{
    char text[TEXT_MAX];

    cw_log(CW_LOG_WARN,
           "budget %s has counted nothing: no device memory was allocated with a tag that it "
           "matches (only *, a leading ^ and a trailing $ are special in it)",
           text_of(rule, text));
}
