/* SPDX-License-Identifier: MIT */
/*
 * Fitting a line and judging it. See trend.h.
 *
 * Values may be anything: doubles hold the squares of all 64-bit numbers and their sums, and each
 * division is by what was found to be above zero. Linear in the points.
 */
#include "report/snapshot/trend.h"

#include "base/compiler.h"
#include "base/out.h"

#define NS_PER_SECOND 1e9
#define MEAN_SHARE    0.05 /* of the mean that a growth must reach */
#define RISE_SHARE    0.2  /* of the average rise */
#define ERRORS_MIN    9.0  /* the square of how many standard errors */

struct quarters {
    uint64_t floor[CW_TREND_QUARTERS], top[CW_TREND_QUARTERS];
    uint8_t has[CW_TREND_QUARTERS];
};

uint64_t cw_trend_to_bytes(double value)
{
    if (!(value > 0)) /* NaN too */
        return 0;
    if (value >= 18446744073709549568.0)
        return UINT64_MAX;
    return (uint64_t)(value + 0.5);
}

int cw_trend_is_large(double growth, double mean)
{
    return growth >= (double)CW_TREND_BYTES_MIN && growth >= MEAN_SHARE * mean;
}

int cw_trend_is_certain(double r2, uint64_t n)
{
    return n > 2 && r2 * (double)(n - 2) >= ERRORS_MIN * (1 - r2);
}

/* The number of points without those of the clean-up. */
static uint32_t count_without_cleanup(const struct cw_trend_point *point, uint32_t count)
{
    uint64_t tail_ns = (point[count - 1].t_ns - point[0].t_ns) / 10;
    uint64_t tail_from = point[count - 1].t_ns - tail_ns;
    uint32_t before = count - 1;

    while (before > 0 && point[before].t_ns >= tail_from)
        before--;
    while (count > before + 1 && point[count - 1].value < point[before].value / 2)
        count--;
    return count;
}

/* Values are taken from the first one on, so that of what never moved all are exactly 0. */
static void fit_line(const struct cw_trend_point *point, struct cw_trend *out)
{
    double first = (double)point[0].value, mean_t = 0, mean_y = 0, tt = 0, ty = 0, yy = 0;

    for (uint32_t i = 0; i < out->n; i++) {
        mean_t += (double)(point[i].t_ns - point[0].t_ns) / NS_PER_SECOND / out->n;
        mean_y += ((double)point[i].value - first) / out->n;
    }
    for (uint32_t i = 0; i < out->n; i++) {
        double t = (double)(point[i].t_ns - point[0].t_ns) / NS_PER_SECOND - mean_t;
        double y = (double)point[i].value - first - mean_y;

        tt += t * t;
        ty += t * y;
        yy += y * y;
    }
    out->mean = first + mean_y;
    if (!(tt > 0))
        return;
    out->slope = ty / tt;
    out->growth = out->slope * ((double)out->span_ns / NS_PER_SECOND);
    if (yy > 0)
        out->r2 = ty * ty / tt / yy;
    if (out->r2 > 1) /* by rounding */
        out->r2 = 1;
}

static void note_point(struct quarters *quarters, unsigned at, uint64_t value)
{
    if (!quarters->has[at] || value < quarters->floor[at])
        quarters->floor[at] = value;
    if (!quarters->has[at] || value > quarters->top[at])
        quarters->top[at] = value;
    quarters->has[at] = 1;
}

static void find_quarters(const struct cw_trend_point *point, uint64_t begin_ns,
                          const struct cw_trend *trend, struct quarters *out)
{
    uint64_t quarter_ns = trend->span_ns / CW_TREND_QUARTERS + 1;

    *out = (struct quarters){0};
    out->floor[0] = out->top[0] = point[0].value; /* of a first quarter without points */
    for (uint32_t i = 0; i < trend->n; i++)
        note_point(out, (unsigned)((point[i].t_ns - begin_ns) / quarter_ns), point[i].value);
    for (unsigned i = 1; i < CW_TREND_QUARTERS; i++) {
        if (out->has[i])
            continue;
        out->floor[i] = out->floor[i - 1];
        out->top[i] = out->top[i - 1];
    }
}

/* The least that makes a rise, above 0. */
static double least_rise(const struct quarters *quarters)
{
    uint64_t first = quarters->floor[0], last = quarters->floor[CW_TREND_QUARTERS - 1];
    double rise = last > first ? RISE_SHARE * (double)(last - first) / (CW_TREND_QUARTERS - 1) : 0;

    return rise >= 1 ? rise : 1;
}

static int is_above(uint64_t later, uint64_t earlier, double by)
{
    return later > earlier && (double)(later - earlier) >= by;
}

static int is_steady(const struct cw_trend *trend, const struct quarters *quarters)
{
    const uint64_t *top = quarters->top;
    unsigned last = CW_TREND_QUARTERS - 1;

    return trend->n >= CW_TREND_POINTS_MIN && trend->span_ns >= CW_TREND_SPAN_MIN &&
           cw_trend_is_large(trend->growth, trend->mean) && trend->rises == last &&
           is_above(top[last], top[last - 1], least_rise(quarters)) &&
           cw_trend_is_certain(trend->r2, trend->n);
}

void cw_trend_fit(const struct cw_trend_point *point, uint32_t count, uint64_t begin_ns,
                  struct cw_trend *out)
{
    struct quarters quarters;
    double rise;

    *out = (struct cw_trend){0};
    while (count > 0 && point[0].t_ns < begin_ns) {
        point++;
        count--;
    }
    if (count == 0)
        return;
    out->n = count_without_cleanup(point, count);
    out->span_ns = point[out->n - 1].t_ns - begin_ns;
    fit_line(point, out);
    find_quarters(point, begin_ns, out, &quarters);
    rise = least_rise(&quarters);
    for (unsigned i = 0; i < CW_TREND_QUARTERS; i++) {
        out->floor[i] = quarters.floor[i];
        if (i > 0 && is_above(quarters.floor[i], quarters.floor[i - 1], rise))
            out->rises++;
    }
    out->is_steady = (uint8_t)is_steady(out, &quarters);
    out->slope = cw_trend_to_decimal(out->slope);
    out->r2 = cw_trend_to_decimal(out->r2);
}

double cw_trend_to_decimal(double value)
{
    const double parts = 1e9;
    double magnitude = value < 0 ? -value : value;
    double rounded;

    if (!(magnitude < 9e6)) /* beyond it a double has hardly more decimals */
        return value;
    rounded = (double)(uint64_t)(magnitude * parts + 0.5) / parts;
    return value < 0 ? -rounded : rounded;
}

char *cw_trend_format_slope(char *buf, double per_second, uint64_t end_ns)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"day", 86400}};
    unsigned at = end_ns >= UINT64_C(60000000000) ? 1 : 0;
    char size[24];

    while (at + 1 < CW_ARRAY_LEN(units) && per_second * units[at].seconds < 1024)
        at++;
    cw_format_size(size, sizeof(size), cw_trend_to_bytes(per_second * units[at].seconds));
    cw_format(buf, CW_SLOPE_MAX, "+%s/%s", size, units[at].name);
    return buf;
}
