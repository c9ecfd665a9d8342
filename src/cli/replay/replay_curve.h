/* SPDX-License-Identifier: MIT */
/*
 * What was live and held over time, in a bounded number of points: each has the most of its span.
 * When all are in use two become one, and the span doubles.
 */
#ifndef CW_CLI_REPLAY_CURVE_H
#define CW_CLI_REPLAY_CURVE_H

#include <stdint.h>

#define CW_CURVE_POINTS 1024u

struct cw_curve {
    uint64_t span; /* of a point on the axis: ns, or events where the trace has no times */
    uint32_t count;
    struct {
        uint64_t live, held;
    } point[CW_CURVE_POINTS];
};

/* x never goes back. */
void cw_curve_add(struct cw_curve *curve, uint64_t x, uint64_t live, uint64_t held);

#endif
