/* SPDX-License-Identifier: MIT */
/*
 * Steps of tags, and blocks that were replaced by larger ones. See growth_read.h.
 *
 * A tag's sums are changed together with its steps: they are read between two looks at these, a few
 * times over if need be, and what still changed then has no line.
 */
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/snapshot/growth_read.h"

#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define ACQUIRE(field) atomic_load_explicit(&(field), memory_order_acquire)

#define READS   4
#define STEP_R2 0.8 /* of a line that rises: a jump in the middle reaches 0.75 */

/* ---- steps ---- */

struct sums {
    uint64_t steps, first_ns, last_ns;
    double y, xy, yy;
};

static double from_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* 0, or -1 when they would not stand still. */
static int read_sums(const struct cw_live_tag *tag, struct sums *out)
{
    for (unsigned i = 0; i < READS; i++) {
        out->steps = ACQUIRE(tag->steps);
        out->first_ns = LOAD(tag->first_ns);
        out->last_ns = LOAD(tag->last_ns);
        out->y = from_bits(LOAD(tag->sum_y));
        out->xy = from_bits(LOAD(tag->sum_xy));
        out->yy = from_bits(LOAD(tag->sum_yy));
        atomic_thread_fence(memory_order_acquire);
        if (LOAD(tag->steps) == out->steps)
            return 0;
    }
    return -1;
}

static int is_number(double value)
{
    return value - value == 0; /* neither infinite nor NaN */
}

/* The line through (1, y1), ..., (n, yn): its sums of x and x*x are known. */
static void fit_steps(const struct sums *sums, struct cw_growth_step *step)
{
    double n = (double)sums->steps;
    double xx = n * n * (n * n - 1) / 12;
    double xy = n * sums->xy - n * (n + 1) / 2 * sums->y;
    double yy = n * sums->yy - sums->y * sums->y;
    double r2 = yy > 0 ? xy / xx * (xy / yy) : 0;

    if (!is_number(xy / xx) || !is_number(yy) || !is_number(r2) || sums->y < 0)
        return;
    step->has_line = 1;
    step->slope = cw_trend_to_decimal(xy / xx);
    step->r2 = cw_trend_to_decimal(r2 > 1 ? 1 : r2); /* by rounding */
    step->growth = step->slope * (n - 1);
    step->is_rising = cw_trend_is_large(step->growth, sums->y / n) && step->r2 >= STEP_R2 &&
                      cw_trend_is_certain(step->r2, sums->steps);
}

static void read_step(const struct cw_live_tag *tag, struct cw_growth_step *step)
{
    struct sums sums;
    int whole = read_sums(tag, &sums) == 0;

    step->steps = sums.steps;
    step->first_bytes = LOAD(tag->first_bytes);
    step->last_bytes = LOAD(tag->last_bytes);
    if (!whole || sums.steps < CW_STEPS_MIN || sums.last_ns <= sums.first_ns)
        return;
    step->mean_ns = (double)(sums.last_ns - sums.first_ns) / (double)(sums.steps - 1);
    fit_steps(&sums, step);
}

void cw_snapshot_read_steps(struct cw_snapshot *snapshot)
{
    struct cw_snapshot_growth *growth = &snapshot->growth;
    uint32_t count = cw_view_count(snapshot->view, CW_TABLE_TAG);

    if (count <= 1)
        return;
    growth->steps_limit = count;
    growth->step = cw_mem_alloc(count * sizeof(*growth->step));
    for (uint32_t i = 1; growth->step && i < count; i++) {
        const struct cw_live_tag *tag = cw_view_tag(snapshot->view, i);

        if (!tag || LOAD(tag->steps) == 0)
            continue;
        growth->step[growth->steps] = (struct cw_growth_step){.tag = i};
        read_step(tag, &growth->step[growth->steps++]);
        if (growth->step[growth->steps - 1].is_rising)
            cw_snapshot_note_rising(growth, growth->steps - 1);
    }
}

/* ---- regrowth ---- */

static void add_regrowth(struct cw_growth_regrowth *to, const struct cw_growth_regrowth *from)
{
    to->resizes = cw_add_capped(to->resizes, from->resizes);
    to->copied_bytes = cw_add_capped(to->copied_bytes, from->copied_bytes);
    to->chains = cw_add_capped(to->chains, from->chains);
    to->factor_sum = cw_add_capped(to->factor_sum, from->factor_sum);
    if (from->first_bytes < to->first_bytes)
        to->first_bytes = from->first_bytes;
    if (from->largest_bytes > to->largest_bytes)
        to->largest_bytes = from->largest_bytes;
}

static int is_site_before(const void *a, const void *b, const void *arg)
{
    (void)arg;
    return ((const struct cw_growth_regrowth *)a)->site <
           ((const struct cw_growth_regrowth *)b)->site;
}

static int copied_more(const void *a, const void *b, const void *arg)
{
    const struct cw_growth_regrowth *left = a;
    const struct cw_growth_regrowth *right = b;

    if (left->copied_bytes != right->copied_bytes)
        return left->copied_bytes > right->copied_bytes;
    return is_site_before(a, b, arg);
}

/* Records of sites that are one here become one. */
static uint32_t merge(struct cw_growth_regrowth *regrowth, uint32_t count)
{
    uint32_t kept = 0;

    cw_sort(regrowth, count, sizeof(*regrowth), is_site_before, NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (kept > 0 && regrowth[kept - 1].site == regrowth[i].site)
            add_regrowth(&regrowth[kept - 1], &regrowth[i]);
        else
            regrowth[kept++] = regrowth[i];
    }
    return kept;
}

static uint32_t collect(const struct cw_snapshot *snapshot, struct cw_growth_regrowth *regrowth,
                        uint32_t limit)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < limit; i++) {
        const struct cw_live_regrowth *live = cw_view_regrowth(snapshot->view, i);
        const struct cw_snapshot_site *site = live ? cw_snapshot_find(snapshot, live->site) : NULL;

        if (!site || LOAD(live->resizes) == 0)
            continue;
        regrowth[count++] = (struct cw_growth_regrowth){.site = (uint32_t)(site - snapshot->site),
                                                        .resizes = LOAD(live->resizes),
                                                        .copied_bytes = LOAD(live->copied_bytes),
                                                        .chains = LOAD(live->chains),
                                                        .factor_sum = LOAD(live->factor_sum),
                                                        .first_bytes = LOAD(live->first_bytes),
                                                        .largest_bytes = LOAD(live->largest_bytes)};
    }
    return count;
}

void cw_snapshot_read_regrowth(struct cw_snapshot *snapshot)
{
    struct cw_snapshot_growth *growth = &snapshot->growth;
    uint32_t limit = cw_view_count(snapshot->view, CW_TABLE_REGROWTH);

    if (limit <= 1)
        return;
    growth->regrowths_limit = limit;
    growth->regrowth = cw_mem_alloc(limit * sizeof(*growth->regrowth));
    if (!growth->regrowth)
        return;
    growth->regrowths = merge(growth->regrowth, collect(snapshot, growth->regrowth, limit));
    for (uint32_t i = 0; i < growth->regrowths; i++)
        growth->regrowth[i].factor = cw_trend_to_decimal(
            (double)growth->regrowth[i].factor_sum / 1000 / (double)growth->regrowth[i].resizes);
    cw_sort(growth->regrowth, growth->regrowths, sizeof(*growth->regrowth), copied_more, NULL);
}
