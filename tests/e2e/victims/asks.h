/* SPDX-License-Identifier: MIT */
/* What the victims share that ask cuwarden (include/cuwarden/cuwarden.h) and check the answers. */
#ifndef VICTIM_ASKS_H
#define VICTIM_ASKS_H

#include "victim.h"

#include <cuwarden/cuwarden.h>

#define CHECK(condition)                                                                           \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(99)))
/* Without the library each function must say so. */
#define GIVES(error, call) CHECK((call) == (is_active ? (error) : CUWARDEN_NOT_ACTIVE))

static int is_active;

static inline CUdeviceptr take(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
    return block;
}

#endif
