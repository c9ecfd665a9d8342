/* SPDX-License-Identifier: MIT */
/* Statistics of devices and tags. */
#ifndef CW_API_STATS_H
#define CW_API_STATS_H

#include "api/api.h"

int cw_api_stats(int device, const char *tag, struct cuwarden_stats *out, size_t size);

#endif
