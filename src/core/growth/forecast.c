/* SPDX-License-Identifier: MIT */
/* Whether, and when, the room is used up. See forecast.h. */
#include "core/growth/forecast.h"

#include <stddef.h>

#include "base/compiler.h"
#include "base/float_env.h"
#include "base/sort.h"

#define BINS         16
#define PAIRS        (BINS * (BINS - 1) / 2)
#define POINTS_LEAST 32
#define RISES_CLEAR  0.96 /* of all pairs: of floors or peaks, */
#define RISES_BOTH   0.5  /* and of both */
#define SLOWS_TO     0.90 /* of the slope of the first half */
#define LOOKS_AHEAD  1.7  /* times the window */
#define FALLS_LEAST  12   /* bins */
#define FALL_SHARE   2.0  /* times what a bin adds */
#define STEPS_LEAST  16
#define CHURN_NS     UINT64_C(60000000000)
#define LOADING_NS   UINT64_C(900000000000)
#define WINDOW_PARTS 8

/* Where windows begin, in eighths of the life. */
static const uint8_t windows[] = {0, 1, 2, 4, 6};

struct window {
    uint64_t from_ns, bin_ns;
    int is_life;   /* all of it */
    double before; /* the highest before it */
    double peak[BINS], floor[BINS], fall[BINS];
};

static double highest(const double *value, unsigned count)
{
    double most = value[0];

    for (unsigned i = 1; i < count; i++)
        most = value[i] > most ? value[i] : most;
    return most;
}

static void raise_to(double *value, uint64_t to)
{
    if ((double)to > *value)
        *value = (double)to;
}

static void lower_to(double *value, uint64_t to)
{
    if ((double)to < *value)
        *value = (double)to;
}

static unsigned bin_of(const struct window *window, uint64_t t_ns)
{
    uint64_t at = t_ns > window->from_ns ? (t_ns - window->from_ns) / window->bin_ns : 0;

    return at < BINS ? (unsigned)at : BINS - 1;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* How far the need fell since the point before, as far as was noticed. */
static uint64_t fall_at(const struct cw_forecast_point *point, uint64_t before)
{
    uint64_t since_most = minus(point->most, point->need);
    uint64_t to_least =
        minus(point->most_ns <= point->least_ns && point->most > before ? point->most : before,
              point->least);

    return since_most > to_least ? since_most : to_least;
}

/* A bin begins with what there was at the end of the one before. */
static void fill(struct window *window, const struct cw_forecast_point *point, uint32_t count)
{
    uint64_t need = 0;
    unsigned begun = 0; /* bins */

    for (uint32_t i = 0; i < count; i++) {
        if (point[i].t_ns < window->from_ns) {
            raise_to(&window->before, point[i].most);
            need = point[i].need;
            continue;
        }
        for (; begun <= bin_of(window, point[i].t_ns); begun++)
            window->peak[begun] = window->floor[begun] = (double)need;
        raise_to(&window->peak[bin_of(window, point[i].most_ns)], point[i].most);
        raise_to(&window->peak[bin_of(window, point[i].t_ns)], point[i].need);
        lower_to(&window->floor[bin_of(window, point[i].least_ns)], point[i].least);
        lower_to(&window->floor[bin_of(window, point[i].t_ns)], point[i].need);
        raise_to(&window->fall[bin_of(window, point[i].t_ns)], fall_at(&point[i], need));
        need = point[i].need;
    }
}

/* From -1 to 1. */
static double rises_of(const double *value)
{
    int rises = 0;

    for (unsigned i = 0; i < BINS; i++)
        for (unsigned k = i + 1; k < BINS; k++)
            rises += (value[k] > value[i]) - (value[k] < value[i]);
    return (double)rises / PAIRS;
}

/* The peaks or the floors, whichever rise more clearly; NULL: neither does, or one does not. */
static const double *rising_of(const struct window *window)
{
    double peaks = rises_of(window->peak), floors = rises_of(window->floor);
    double more = floors > peaks ? floors : peaks, less = floors > peaks ? peaks : floors;

    if (more < RISES_CLEAR || less < RISES_BOTH)
        return NULL;
    return floors > peaks ? window->floor : window->peak;
}

static int is_before(const void *a, const void *b, const void *unused)
{
    (void)unused;
    return *(const double *)a < *(const double *)b;
}

/* Theil and Sen's, in bytes a bin. */
static double slope_of(const double *peak, unsigned count)
{
    double slope[PAIRS];
    unsigned pairs = 0;

    for (unsigned i = 0; i < count; i++)
        for (unsigned k = i + 1; k < count; k++)
            slope[pairs++] = (peak[k] - peak[i]) / (k - i);
    cw_sort(slope, pairs, sizeof(slope[0]), is_before, NULL);
    return (slope[(pairs - 1) / 2] + slope[pairs / 2]) / 2;
}

static int is_more_than_loading(const struct window *window, double slope, uint64_t step_ns)
{
    uint64_t window_ns = window->bin_ns * BINS;
    unsigned falls = 0;

    if (window_ns >= LOADING_NS || (step_ns != 0 && step_ns <= window_ns / STEPS_LEAST))
        return 1;
    if (window_ns < CHURN_NS || !window->is_life)
        return 0;
    for (unsigned i = 0; i < BINS; i++)
        falls += window->fall[i] >= FALL_SHARE * slope;
    return falls >= FALLS_LEAST;
}

static int is_highest_at_the_end(const struct window *window, double peak)
{
    return peak >= window->before && highest(window->peak + BINS * 3 / 4, BINS / 4) >= peak;
}

static int judge(const struct window *window, double room, uint64_t step_ns,
                 struct cw_forecast *out)
{
    double peak = highest(window->peak, BINS), slope, later, bins;
    const double *line = rising_of(window);

    if (line == NULL || peak > room || !is_highest_at_the_end(window, peak))
        return 0;
    slope = slope_of(line, BINS);
    later = slope_of(line + BINS / 2, BINS / 2);
    if (!(slope >= 1) || later < SLOWS_TO * slope_of(line, BINS / 2) ||
        !is_more_than_loading(window, slope, step_ns))
        return 0;
    slope = later > slope ? later : slope;
    bins = (room - peak) / slope;
    if (bins > LOOKS_AHEAD * BINS)
        return 0;
    *out = (struct cw_forecast){.left_ns = cw_float_times(bins, window->bin_ns),
                                .slope = cw_float_times(slope / (double)window->bin_ns, 1000000000),
                                .peak = cw_float_times(peak, 1)};
    return 1;
}

int cw_forecast_find(const struct cw_forecast_point *point, uint32_t count, uint64_t room,
                     uint64_t step_ns, struct cw_forecast *out)
{
    uint64_t now_ns, life_ns;

    if (count < POINTS_LEAST)
        return 0;
    now_ns = point[count - 1].t_ns;
    life_ns = now_ns - point[0].t_ns;
    for (unsigned i = 0; i < CW_ARRAY_LEN(windows); i++) {
        struct window window = {.from_ns = point[0].t_ns + life_ns / WINDOW_PARTS * windows[i]};

        if (now_ns - window.from_ns < CW_FORECAST_LEAST_NS)
            return 0;
        window.is_life = i == 0;
        window.bin_ns = (now_ns - window.from_ns) / BINS + 1;
        fill(&window, point, count);
        if (judge(&window, (double)room, step_ns, out))
            return 1;
    }
    return 0;
}
