/* SPDX-License-Identifier: MIT */
/* The word of what stands before the pool. See guard.h. */
#include "core/process/guard.h"

CW_HOT_DATA _Atomic uint32_t cw_guards;

void cw_guard_set(uint32_t guards, int is_on)
{
    if (is_on)
        atomic_fetch_or(&cw_guards, guards);
    else
        atomic_fetch_and(&cw_guards, ~guards);
}
