/* SPDX-License-Identifier: MIT */
/* The ways in which a context begins and ends. */
#ifndef EDGES_WAYS_H
#define EDGES_WAYS_H

#include "edges.h"

struct way {
    CUcontext handle;
    int device;
    bool is_primary, is_of_runtime; /* the runtime's is a primary one */
    unsigned retains;
};

void ways_prepare(void);
/* Makes a context, and leaves it to the caller to make it current. */
CUcontext way_begin(struct way *out, int device, bool is_primary, bool is_of_runtime);
/* Ends it, by a function that the dice choose among those there are for its kind, a primary one by
 * a reset or by as many releases as it needs; on the calling thread, or on another, which has
 * `current` made current before. */
void way_end(struct way *way, CUcontext current, bool is_reset, bool is_elsewhere);

#endif
