/* SPDX-License-Identifier: MIT */
/* A body for each row PLAIN of hooks.def. See observe.h. */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/observe.h"

#define PLAIN(symbol, base, since, stream) CW_OBSERVED(symbol)
#include "hook/hooks.def"
