/* SPDX-License-Identifier: MIT */
/*
 * The forecast: when a device will have no room left for what this process takes, if what it takes
 * goes on growing as it does. Worked out from the points of the timeline, which have the exact
 * peak and about the lowest value of each stretch of time: what lives within one step of the
 * program's is not taken for growth, however much it is.
 *
 * Glossary
 *   need     what the process holds and the pool cannot give back: held less idle bytes.
 *   room     how much it may need: the limit, or what others leave of the device less MIN_FREE.
 *   window   the process's life, or its last 7/8, 3/4, 1/2 or 1/4, in 16 bins of equal length.
 *   envelope the peaks of the bins, and their floors: of a bin without points, in which the program
 *            took nothing, what it had.
 *
 * There is a forecast by the first window of which all of this is so:
 *   - it rises: of all pairs of bins, those in which the later one is higher outnumber those in
 *     which it is lower by half of all pairs (Mann and Kendall's statistic), for peaks and floors;
 *     for one of the two, which is the line from then on, by 96 %;
 *   - it does not slow down: the slope of the line's second half is 90 % of that of its first half
 *     at least (Theil and Sen's: the median of the slopes of all pairs);
 *   - it is highest in its last quarter, and nothing before it was higher: what comes back every
 *     epoch was there before;
 *   - it is no loading at the start, which only takes: the window is a quarter of an hour long; or
 * the program marks steps, 16 or more in it; or it is the whole life, a minute at least, and in
 *     three quarters of the bins the need falls again by twice what a bin adds;
 *   - at the slope of the window, or of its second half if that is steeper, the rest of the room is
 *     used up within 1.7 times the window.
 * Each window looks about as far ahead as it looks back, so minutes and days are judged alike; less
 * than five seconds tell nothing.
 *
 * A cache that fills exponentially slows down to 90 % over a window of a fifth of its time
 * constant, and what it lacks to a room in which the full cache fits would then take longer than a
 * time constant: so it is not forecast. A climb as straight as a leak that ends is, once it has
 * taken more than 2/5 of the room that was left when it began: nothing tells that it will end.
 * tests/unit/core/growth/forecast_programs.c measures how often what is forecast.
 *
 * Pure, and no state: what becomes of a forecast is up to core/growth/timeline.h.
 */
#ifndef CW_CORE_FORECAST_H
#define CW_CORE_FORECAST_H

#include <stdint.h>

#define CW_FORECAST_LEAST_NS UINT64_C(5000000000)

/* What a process needed since the point before. */
struct cw_forecast_point {
    uint64_t t_ns, need; /* at its moment */
    uint64_t least, least_ns;
    uint64_t most, most_ns;
};

struct cw_forecast {
    uint64_t left_ns; /* until the room is used up */
    uint64_t slope;   /* bytes a second */
    uint64_t peak;    /* the highest so far */
};

/* The points in the order of their times, the last at the present. step_ns: how long the shortest
 * steps take that the program marks, on average; 0: there are none. 1, or 0 if there is no
 * forecast.
 */
int cw_forecast_find(const struct cw_forecast_point *point, uint32_t count, uint64_t room,
                     uint64_t step_ns, struct cw_forecast *out);

#endif
