/* SPDX-License-Identifier: MIT */
/* Budgets of tags at the program's request. */
#ifndef CW_API_BUDGETS_H
#define CW_API_BUDGETS_H

#include "api/api.h"
#include "core/account/budget.h"

/* What the tag of the calling thread may still have; UINT64_MAX: no budget refuses it anything.
 * Else *out is that budget. */
uint64_t cw_api_budget_room(struct cw_budget_view *out);

int cw_api_budget_set(const char *tag, uint64_t bytes, int how);
int cw_api_budget_clear(const char *tag);
int cw_api_budget_now(const char *tag, struct cuwarden_budget *out, size_t size);

#endif
