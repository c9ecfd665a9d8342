/* SPDX-License-Identifier: MIT */
/* What is said of a budget that is exceeded. Owns nothing; no lock. */
#ifndef CW_CORE_BUDGET_WARN_H
#define CW_CORE_BUDGET_WARN_H

#include <stdint.h>

#include "base/options/budget_rules.h"

/* An event, and where is_first is set a line. site: of the allocation after which so much is live.
 */
void cw_budget_warn(const struct cw_budget_rule *rule, uint32_t site, uint64_t live, int is_first);

/* A line: more is live than a budget that was just set allows. */
void cw_budget_warn_of_old(const struct cw_budget_rule *rule, uint64_t live);
/* A line: the process ends, and no allocation had a tag that it matches. */
void cw_budget_warn_of_unused(const struct cw_budget_rule *rule);

#endif
