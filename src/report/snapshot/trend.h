/* SPDX-License-Identifier: MIT */
/*
 * Whether a line of values over time grew steadily, or only moved.
 *
 * Glossary
 *   span     from the beginning to the last point that counts.
 *   floor    the least value in a quarter of the span, top the largest. Of a quarter without
 *            points they are those of the quarter before it.
 *   rise     of a quarter: its floor is above that of the quarter before by at least a fifth of
 *            what the floors rose by on average.
 *   clean-up what falls below half, in the last tenth of the span, of what was there before that
 *            tenth: a program that frees all it has before it ends. It does not count, and the span
 *            ends before it.
 *
 * Steady is what meets all of these:
 *   - 8 points at least, over 20 ms at least: less tells nothing;
 *   - the line's growth over the span is 64 KiB and 5 % of the mean at least;
 *   - all three rises: what warms up and then stays flat, or takes one large block, has fewer;
 *   - the last top is above the one before by as much as makes a rise: what warmed up for as long
 * as two thirds of the span is flat in the end;
 *   - the slope is three times its standard error at least, r2 (n - 2) >= 9 (1 - r2): the floors of
 *     a level sawtooth differ by where in it the moments fell.
 * What warmed up for longer than three quarters of its life is taken for growth.
 */
#ifndef CW_REPORT_TREND_H
#define CW_REPORT_TREND_H

#include <stdint.h>

#define CW_TREND_QUARTERS   4
#define CW_TREND_POINTS_MIN 8
#define CW_TREND_SPAN_MIN   UINT64_C(20000000) /* ns */
#define CW_TREND_BYTES_MIN  UINT64_C(65536)

struct cw_trend_point {
    uint64_t t_ns, value;
};

struct cw_trend {
    double slope; /* a second, by least squares */
    double r2;    /* 0 to 1; 0 of what never moved */
    double mean;
    double growth; /* of the line over the span */
    uint64_t span_ns;
    uint64_t floor[CW_TREND_QUARTERS];
    uint32_t n;    /* points that count */
    uint8_t rises; /* 0 to 3 */
    uint8_t is_steady;
};

/* The points are in the order of their times, which differ. Those before `begin_ns` do not count.
 */
void cw_trend_fit(const struct cw_trend_point *point, uint32_t count, uint64_t begin_ns,
                  struct cw_trend *out);

/* Whether a growth is large enough, beside a mean, to be spoken of. */
int cw_trend_is_large(double growth, double mean);
/* Whether a slope found in n points is three times its standard error at least. */
int cw_trend_is_certain(double r2, uint64_t n);

/* As a report in JSON has it, to nine decimals: what is worked out from the one is worked out from
 * the other. */
double cw_trend_to_decimal(double value);

/* Rounded; 0 below 0, UINT64_MAX beyond it. */
uint64_t cw_trend_to_bytes(double value);

#define CW_SLOPE_MAX 32
/* "+37.4 MiB/min" in CW_SLOPE_MAX bytes, of a process that has run for end_ns: per second only if
 * that is less than a minute, and in a unit of time that makes it at least a KiB, if there is one.
 * Returns buf. */
char *cw_trend_format_slope(char *buf, double per_second, uint64_t end_ns);

#endif
