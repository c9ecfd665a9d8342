/* SPDX-License-Identifier: MIT */
/* See replay_curve.h. */
#include "cli/replay/replay_curve.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void halve(struct cw_curve *curve)
{
    uint32_t half = (curve->count + 1) / 2;

    for (uint32_t i = 0; i < half; i++) {
        uint32_t second = 2 * i + 1 < curve->count ? 2 * i + 1 : 2 * i;

        curve->point[i].live = larger(curve->point[2 * i].live, curve->point[second].live);
        curve->point[i].held = larger(curve->point[2 * i].held, curve->point[second].held);
    }
    curve->count = half;
    curve->span *= 2;
}

void cw_curve_add(struct cw_curve *curve, uint64_t x, uint64_t live, uint64_t held)
{
    uint64_t place;

    if (curve->span == 0)
        curve->span = 1;
    while ((place = x / curve->span) >= CW_CURVE_POINTS)
        halve(curve);
    /* Nothing happened in between: what was there stays. */
    while (curve->count <= place) {
        uint32_t i = curve->count++;

        curve->point[i].live = i > 0 && i < place ? curve->point[i - 1].live : 0;
        curve->point[i].held = i > 0 && i < place ? curve->point[i - 1].held : 0;
    }
    curve->point[place].live = larger(curve->point[place].live, live);
    curve->point[place].held = larger(curve->point[place].held, held);
}
