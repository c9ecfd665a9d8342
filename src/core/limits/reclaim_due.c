/* SPDX-License-Identifier: MIT */
/* The bits of what is due to go back. See reclaim_due.h. */
#include "core/limits/reclaim_due.h"

CW_HOT_DATA _Atomic uint32_t cw_reclaim_due_any;
CW_HOT_DATA _Atomic uint8_t cw_reclaim_due_on[CW_DEVICES];
