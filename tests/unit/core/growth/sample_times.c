/* SPDX-License-Identifier: MIT */
/* Which moments stay: the first, the newest, and those evenly between. */
#include "core/growth/sample_times.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#define SLOTS  64
#define PERIOD UINT64_C(1000)

static struct cw_sample_times moments;
static uint64_t number[SLOTS], time_of[SLOTS], sorted[SLOTS];

static void setup(void)
{
    cw_sample_times_init(&moments, number, SLOTS, PERIOD);
}

TestSuite(moments, .init = setup);

static unsigned take(uint64_t t_ns)
{
    unsigned slot = cw_sample_times_take(&moments, t_ns);

    cr_assert(slot < SLOTS);
    time_of[slot] = t_ns;
    return slot;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The shortest and the longest gap. */
static void measure(uint64_t *out_least, uint64_t *out_most)
{
    *out_least = UINT64_MAX;
    *out_most = 0;
    for (int i = 0; i < SLOTS; i++)
        sorted[i] = time_of[i];
    qsort(sorted, SLOTS, sizeof(*sorted), compare);
    for (int i = 1; i < SLOTS; i++) {
        uint64_t gap = sorted[i] - sorted[i - 1];

        *out_least = gap < *out_least ? gap : *out_least;
        *out_most = gap > *out_most ? gap : *out_most;
    }
}

Test(moments, the_first_ones_take_a_slot_each)
{
    for (unsigned i = 0; i < SLOTS; i++)
        cr_expect_eq(take(PERIOD * (i + 1)), i);
    cr_expect_eq(moments.period_ns, PERIOD);
}

Test(moments, then_every_second_goes_the_oldest_first)
{
    for (unsigned i = 0; i < SLOTS; i++)
        take(PERIOD * (i + 1));
    for (unsigned i = 0; i < SLOTS / 2; i++) {
        cr_expect_eq(take(PERIOD * (SLOTS + 1 + 2 * i)), 2 * i + 1);
        cr_expect_eq(moments.period_ns, 2 * PERIOD);
    }
    cr_expect_eq(take(PERIOD * 2 * SLOTS + PERIOD), 2);
    cr_expect_eq(moments.period_ns, 4 * PERIOD);
}

/* At any time, over a million times the first period. */
Test(moments, span_the_whole_time_evenly)
{
    uint64_t next = PERIOD, least, most;

    for (uint64_t t = PERIOD; t <= 1000000 * PERIOD; t += PERIOD) {
        if (t < next)
            continue;
        take(t);
        next = t + moments.period_ns;
        if (moments.used < SLOTS)
            continue;
        measure(&least, &most);
        cr_assert_eq(sorted[0], PERIOD);
        cr_assert_eq(sorted[SLOTS - 1], t);
        cr_assert(most <= 2 * least && most <= moments.period_ns, "%ju %ju at %ju", least, most, t);
    }
    /* 64 gaps of half the period at least, and of the period at most. */
    cr_expect_leq(SLOTS * moments.period_ns, 2u * 1000000 * PERIOD);
    cr_expect_geq(SLOTS * moments.period_ns, 1000000 * PERIOD);
}

/* They come every thousandth period only. Thinned by the period alone, the old ones would be 256
 * times as far apart as the new. */
Test(moments, are_even_also_where_they_come_slowly)
{
    uint64_t t = 1, least, most;

    for (unsigned i = 0; i < 5 * SLOTS; i++) {
        take(t);
        t += moments.period_ns > 1000 * PERIOD ? moments.period_ns : 1000 * PERIOD;
    }
    measure(&least, &most);
    cr_expect_eq(sorted[0], 1);
    cr_expect(most <= 4 * least, "%ju %ju", least, most);
}

Test(moments, while_the_clock_stands_still_it_is_one_moment)
{
    unsigned slot = take(7);

    cr_expect_eq(take(7), slot);
    cr_expect_eq(moments.taken, 1);
    cr_expect_neq(take(8), slot);
    for (unsigned i = 0; i < 10 * SLOTS; i++)
        take(9);
    cr_expect_eq(moments.taken, 3);
    cr_expect_eq(moments.period_ns, PERIOD);
}
