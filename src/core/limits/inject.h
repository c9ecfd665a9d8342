/* SPDX-License-Identifier: MIT */
/*
 * Injected failures (FAIL): allocating calls that fail with out of memory although there is some,
 * so that users can test their program. Counts calls over all threads; no lock.
 */
#ifndef CW_CORE_INJECT_H
#define CW_CORE_INJECT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/option_values.h"

void cw_inject_init(const struct cw_fail_plan *plan);
void cw_inject_reset(void); /* in a forked child: the count starts over */

extern CW_HIDDEN _Atomic int cw_injecting;

static inline int cw_inject_is_on(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_injecting, memory_order_relaxed));
}

/* Counts a call of the program that asks for so many bytes. 1 if it must fail. */
int cw_inject_fails(uint64_t bytes);

#endif
