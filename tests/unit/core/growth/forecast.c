/* SPDX-License-Identifier: MIT */
/* What is a forecast, by its points, and what becomes of it in the live layout. */
#include "core/growth/forecast.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/account/usage.h"
#include "core/device/device.h"
#include "core/growth/growth.h"
#include "core/process/session.h"
#include "base/log.h"
#include "live/layout.h"

#define POINTS 128
#define SECOND UINT64_C(1000000000)

static struct cw_forecast_point point[POINTS];
static struct cw_forecast found;

/* A point each second with this need, and a step each that takes and frees so much on top. */
static void put(unsigned i, uint64_t need, uint64_t churn)
{
    uint64_t t_ns = (i + 1) * SECOND;

    point[i] = (struct cw_forecast_point){t_ns, need, need, t_ns - 2, need + churn, t_ns - 5};
}

static void put_at(unsigned i, uint64_t t_ns)
{
    point[i].t_ns = point[i].most_ns = point[i].least_ns = t_ns;
}

static void put_line(uint64_t from, uint64_t each, uint64_t churn)
{
    for (unsigned i = 0; i < POINTS; i++)
        put(i, from + i * each, churn);
}

static int find(uint64_t room, uint64_t step_ns)
{
    return cw_forecast_find(point, POINTS, room, step_ns, &found);
}

Test(forecast, tells_when_a_straight_line_is_at_its_end)
{
    put_line(GIB, MIB, 100 * MIB);
    cr_assert(find(1324 * MIB, 0)); /* 1024 + 127 + 100 are used */
    cr_expect_eq(found.peak, 1251 * MIB);
    cr_expect(found.left_ns > 70 * SECOND && found.left_ns < 76 * SECOND, "%ju",
              (uintmax_t)found.left_ns);
    cr_expect(found.slope > 1040000 && found.slope < 1060000, "%ju", (uintmax_t)found.slope);
}

Test(forecast, does_not_look_further_ahead_than_back_by_much)
{
    put_line(GIB, MIB, 100 * MIB);
    cr_expect(find((1251 + 190) * MIB, 0));
    cr_expect_not(find((1251 + 220) * MIB, 0));
}

Test(forecast, what_only_takes_has_none_for_a_quarter_of_an_hour_unless_steps_are_marked)
{
    put_line(GIB, MIB, 0);
    cr_expect_not(find(1200 * MIB, 0));
    cr_expect(find(1200 * MIB, SECOND));
    cr_expect_not(find(1200 * MIB, 60 * SECOND));
    for (unsigned i = 0; i < POINTS; i++)
        put_at(i, 8 * point[i].t_ns);
    cr_expect(find(1200 * MIB, 0));
}

Test(forecast, what_stays_or_slows_down_or_was_there_before_has_none)
{
    put_line(GIB, 0, 100 * MIB);
    cr_expect_not(find(1125 * MIB, SECOND));
    put_line(GIB, MIB, 0);
    for (unsigned i = POINTS / 2; i < POINTS; i++)
        put(i, GIB + POINTS / 2 * MIB + (i - POINTS / 2) * MIB / 2, 0);
    cr_expect_not(find(1200 * MIB, SECOND));
    put_line(GIB, MIB, 0);
    put(3, 1180 * MIB, 0);
    cr_expect_not(find(1200 * MIB, SECOND));
    put_line(GIB, MIB, 0);
    put(POINTS - 1, MIB, 0);
    cr_expect(find(1200 * MIB, SECOND)); /* one step that ended does not hide it */
}

Test(forecast, seconds_and_few_points_tell_nothing)
{
    put_line(GIB, MIB, 0);
    cr_expect_not(cw_forecast_find(point, 31, 1200 * MIB, SECOND, &found));
    cr_expect_not(cw_forecast_find(point, 0, 1200 * MIB, SECOND, &found));
    for (unsigned i = 0; i < POINTS; i++)
        put_at(i, point[i].t_ns / 30);
    cr_expect_not(find(1200 * MIB, SECOND / 30));
}

Test(forecast, beyond_its_room_a_process_has_none)
{
    put_line(GIB, MIB, 0);
    cr_expect_not(find(1100 * MIB, SECOND));
}

/* ---- in the live layout ---- */

/* Seconds of a step each that leaves a MiB. */
static void leak_for(unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        uint64_t now_ns = cw_session_now();

        cw_usage_add(0, 101 * MIB, 101 * MIB, now_ns);
        cw_usage_sub(0, 100 * MIB, 100 * MIB);
        fake_driver.now_ns += SECOND;
        cw_growth_serve();
    }
}

static void start(uint64_t limit, uint64_t min_free, uint64_t others)
{
    struct cw_live_device *device;

    ask_start("", "", 4 * GIB);
    device = cw_device_at(0);
    device->driver_total = 4 * GIB;
    device->driver_used = others;
    device->memory.limit = limit;
    device->memory.min_free = min_free;
}

static uint64_t left_s(void)
{
    return (ask_memory()->full_ns - cw_session_now()) / SECOND;
}

Test(forecast, is_published_by_the_limit)
{
    start(600 * MIB, 0, 0);
    leak_for(150);
    cr_expect_eq(ask_memory()->full_ns, 0);
    leak_for(150);
    cr_assert_neq(ask_memory()->full_ns, 0);
    cr_expect(left_s() > 180 && left_s() < 220, "%ju", (uintmax_t)left_s());
    cr_expect_gt(ask_memory()->full_until_ns, cw_session_now());
    cr_expect(ask_memory()->full_slope > 1000000 && ask_memory()->full_slope < 1100000);
}

Test(forecast, is_published_by_what_others_leave)
{
    start(0, 512 * MIB, 3 * GIB);
    leak_for(300); /* of 512 MiB */
    cr_assert_neq(ask_memory()->full_ns, 0);
    cr_expect(left_s() > 90 && left_s() < 130, "%ju", (uintmax_t)left_s());
}

Test(forecast, is_taken_back_when_the_growth_ends)
{
    start(600 * MIB, 0, 0);
    leak_for(300);
    cr_assert_neq(ask_memory()->full_ns, 0);
    for (unsigned i = 0; i < 300; i++) {
        cw_usage_add(0, MIB, MIB, cw_session_now());
        cw_usage_sub(0, MIB, MIB);
        fake_driver.now_ns += SECOND;
        cw_growth_serve();
    }
    cr_expect_eq(ask_memory()->full_ns, 0);
}

Test(forecast, is_said_once_to_those_who_ask_for_messages)
{
    start(600 * MIB, 0, 0);
    ask_keep_stderr();
    cw_log_set_level(CW_LOG_INFO);
    leak_for(400);
    cr_expect_eq(ask_said("out of memory in about"), 1);
}

Test(forecast, is_not_said_to_others)
{
    start(600 * MIB, 0, 0);
    ask_keep_stderr();
    leak_for(400);
    cr_expect_neq(ask_memory()->full_ns, 0);
    cr_expect_eq(ask_said("out of memory in"), 0);
}
