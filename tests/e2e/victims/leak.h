/* SPDX-License-Identifier: MIT */
/* A block that its victim forgets, in a frame that reports name. */
#ifndef LEAK_H
#define LEAK_H

#include "victim.h"

static NOINLINE void leak(size_t bytes)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
}

#endif
