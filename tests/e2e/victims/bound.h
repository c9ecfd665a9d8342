/* SPDX-License-Identifier: MIT */
/* How much a library may make of one call of the program's: what it gives back on the occasion, and
 * nobody waits for, is at most 64 calls of the driver or five milliseconds, the rest comes later.
 * In calls, frees, waits and time as the simulated driver counts them; on a real one nothing is
 * asked.
 *
 * Exempt are the end of a context, and a call to which the driver, or a limit, has said that there
 * is no memory: these have to go on until they are done.
 */
#ifndef BOUND_H
#define BOUND_H

#include "cusim.h"

#include <stdbool.h>
#include <stdio.h>

enum {
    BOUND_FREES = 64,
    BOUND_OWN = 8,     /* what belongs to the call itself: its own free, and a wait or two */
    BOUND_CALLS = 400, /* of any kind: a free may need some others about it */
};
#define BOUND_NS 5000000ull

void cusim_here(struct cusim_here *out) __attribute__((weak));

static inline void bound_begin(struct cusim_here *before)
{
    if (cusim_here)
        cusim_here(before);
}

/* What is wrong with the call that began with `before`, in `out`, or false. */
static inline bool bound_is_broken(const struct cusim_here *before, char *out, size_t size)
{
    struct cusim_here now;
    unsigned long long calls, frees, waits, cost;

    if (!cusim_here)
        return false;
    cusim_here(&now);
    calls = now.calls - before->calls;
    frees = now.frees - before->frees;
    waits = now.waits - before->waits;
    cost = now.cost_ns - before->cost_ns;
    if (now.refused != before->refused)
        return false;
    /* The call that takes it over the five milliseconds has begun before. */
    if (frees <= BOUND_FREES + BOUND_OWN && waits <= BOUND_FREES + BOUND_OWN &&
        calls <= BOUND_CALLS && (frees <= 1 || cost <= BOUND_NS + 2 * (cost / frees + 1)))
        return false;
    snprintf(out, size, "made %llu calls of the driver, with %llu frees, %llu waits, and %llu us",
             calls, frees, waits, cost / 1000);
    return true;
}

#endif
