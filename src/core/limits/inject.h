/* SPDX-License-Identifier: MIT */
/*
 * Injected failures (FAIL): allocating calls that fail with out of memory although there is some,
 * so that users can test their program. Counts calls over all threads; no lock.
 */
#ifndef CW_CORE_INJECT_H
#define CW_CORE_INJECT_H

#include <stdint.h>

#include "base/options/option_values.h"
#include "core/process/guard.h"

void cw_inject_init(const struct cw_fail_plan *plan);
void cw_inject_reset(void); /* in a forked child: the count starts over */

static inline int cw_inject_is_on(void)
{
    return cw_guard_is_on(CW_GUARD_INJECT);
}

/* Counts a call of the program that asks for so many bytes. 1 if it must fail. */
int cw_inject_fails(uint64_t bytes);

#endif
