/* SPDX-License-Identifier: MIT */
/* Injected out of memory. See inject.h. */
#include "core/limits/inject.h"

#include <stdatomic.h>

static struct cw_fail_plan plan;
static _Atomic uint64_t matched; /* calls so far */

void cw_inject_init(const struct cw_fail_plan *of)
{
    plan = *of;
    atomic_store(&matched, 0);
    cw_guard_set(CW_GUARD_INJECT, (plan.nth | plan.every | plan.above | plan.millionths) != 0);
}

void cw_inject_reset(void)
{
    cw_guard_set(CW_GUARD_INJECT, 0);
}

/* splitmix64 (Steele, Lea, Flood 2014): the n-th draw follows from seed and n alone, so that the
 * order in which threads come does not change how many calls fail. */
static uint64_t draw(uint64_t n)
{
    uint64_t z = plan.seed + n * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int cw_inject_fails(uint64_t bytes)
{
    uint64_t n;

    if (bytes <= plan.above && plan.above != 0)
        return 0;
    n = atomic_fetch_add(&matched, 1) + 1;
    if (plan.nth != 0)
        return n == plan.nth;
    if (plan.every != 0)
        return n % plan.every == 0;
    if (plan.millionths != 0)
        return draw(n) % 1000000 < plan.millionths;
    return 1;
}
