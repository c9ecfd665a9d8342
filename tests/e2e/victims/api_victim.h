/* SPDX-License-Identifier: MIT */
/* What victims that check the answers of cuwarden.h share; main sets is_active first. */
#ifndef API_VICTIM_H
#define API_VICTIM_H

#include "victim.h"

#include <cuwarden/cuwarden.h>

#include <stdlib.h>

static int is_active;

#define CHECK(condition)                                                                           \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(99)))
/* Without the library every answer is that there is none. */
#define GIVES(error, call) CHECK((call) == (is_active ? (error) : CUWARDEN_NOT_ACTIVE))

static inline CUdeviceptr take(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
    return block;
}

#endif
