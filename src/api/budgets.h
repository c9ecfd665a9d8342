/* SPDX-License-Identifier: MIT */
/* Budgets of tags at the program's request. */
#ifndef CW_API_BUDGETS_H
#define CW_API_BUDGETS_H

#include "api/api.h"

int cw_api_budget_set(const char *tag, uint64_t bytes, int how);
int cw_api_budget_clear(const char *tag);
int cw_api_budget_now(const char *tag, struct cuwarden_budget *out, size_t size);

#endif
