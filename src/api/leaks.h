/* SPDX-License-Identifier: MIT */
/* A leak check while the program runs. */
#ifndef CW_API_LEAKS_H
#define CW_API_LEAKS_H

#include "api/api.h"

int cw_api_leaks(uint64_t since, cuwarden_block_fn fn, void *arg, struct cuwarden_leaks *out,
                 size_t size);

#endif
