/* SPDX-License-Identifier: MIT */
/* A thread beside those of a family, which does what keeps the library from calling the driver: it
 * ends contexts of its own, or captures a stream in a mode that leaves other threads alone. What
 * the driver owes the others meanwhile is what it owes them without.
 */
#ifndef EDGES_BYSTANDER_H
#define EDGES_BYSTANDER_H

#include "edges.h"

enum bystander { ENDS, CAPTURES, BYSTANDERS };

/* ENDS: on that device. CAPTURES: a stream of `context`, or, if it is NULL, of a context of its own
 * there. Its contexts are made before this returns. */
void bystander_begin(enum bystander what, int device, CUcontext context);
void bystander_end(void);

#endif
