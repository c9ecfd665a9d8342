/* SPDX-License-Identifier: MIT */
/* The reasons not to keep a freed block. See admission.h. */
#include "core/limits/admission.h"

CW_HOT_DATA _Atomic uint32_t cw_admission_reasons[CW_DEVICES];
