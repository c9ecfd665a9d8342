/* SPDX-License-Identifier: MIT */
/*
 * Which allocations fail: the value of the option FAIL, from text and back.
 *
 * At most one of nth, every and millionths is not 0. If all three are 0, all allocations above
 * `above` fail, or none if that is 0 too. Owns nothing; no lock.
 */
#ifndef CW_BASE_FAIL_PLAN_H
#define CW_BASE_FAIL_PLAN_H

#include <stdint.h>

#include "base/out.h"

struct cw_fail_plan {
    uint64_t nth;        /* only this matching allocation */
    uint64_t every;      /* every Nth matching allocation */
    uint64_t above;      /* bytes; larger ones match */
    uint64_t seed;       /* seed for the chance; 0 without one */
    uint32_t millionths; /* chance of each */
};

#define CW_FAIL_CERTAIN      1000000 /* millionths */
#define CW_FAIL_DEFAULT_SEED 1

/*
 * "off", or a comma-separated list, each at most once: one of "nth=N", "every=N" and "prob=P", N
 * from 1, P above 0 and up to 1, at least a millionth; "seed=N" if there is a prob; and
 * "above=SIZE", from one byte. Returns 0, or -1 with *out unchanged.
 */
int cw_fail_plan_parse(const char *text, struct cw_fail_plan *out);
void cw_fail_plan_print(const struct cw_fail_plan *plan, struct cw_out *out);

#endif
