/* SPDX-License-Identifier: MIT */
/* The lock of what is interned. See intern.h. */
#include "core/process/intern.h"

struct cw_lock cw_intern_lock = CW_LOCK_INIT(CW_RANK_SITE);

void cw_intern_reset(void)
{
    cw_lock_reset(&cw_intern_lock);
}
