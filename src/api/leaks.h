/* SPDX-License-Identifier: MIT */
/* A leak check while the program runs. */
#ifndef CW_API_LEAKS_H
#define CW_API_LEAKS_H

#include "api/api.h"

/* Who owns the memory of each site below `sites` that has some: the program, which would have
 * leaked it, or else a library, a framework's cache, or whoever a suppression is about. A value of
 * enum cw_api_owner for each. 0, or -1 without memory. */
int cw_api_leaks_owners(uint8_t *of, uint32_t sites);

int cw_api_leaks(uint64_t since, cuwarden_block_fn fn, void *arg, struct cuwarden_leaks *out,
                 size_t size);

#endif
