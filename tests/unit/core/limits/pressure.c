/* SPDX-License-Identifier: MIT */
/* Levels of pressure: where they begin and end, and what is recorded of them. */
#include "core/limits/pressure.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/device/device.h"
#include "core/account/event.h"
#include "core/limits/limit.h"
#include "core/limits/reclaim_due.h"
#include "core/request/request.h"
#include "core/process/session.h"

TestSuite(pressure);

/* So many hundredths of the device are in use by others, and that is looked at. */
static enum cw_level use(uint64_t percent)
{
    fake_driver.others = percent * (ASK_TOTAL / 100);
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
    return cw_pressure_level(0);
}

Test(pressure, begins_at_its_thresholds)
{
    ask_start("", "", ASK_TOTAL);
    cr_expect_eq(use(59), CW_LEVEL_LOW);
    cr_expect_eq(use(60), CW_LEVEL_MEDIUM);
    cr_expect_eq(use(79), CW_LEVEL_MEDIUM);
    cr_expect_eq(use(80), CW_LEVEL_HIGH);
    cr_expect_eq(use(94), CW_LEVEL_HIGH);
    cr_expect_eq(use(95), CW_LEVEL_CRITICAL);
    cr_expect_eq(use(100), CW_LEVEL_CRITICAL);
    cr_expect_eq(ask_memory()->highest_use, 10000);
    cr_expect_eq(ask_memory()->level, CW_LEVEL_CRITICAL);
}

Test(pressure, ends_five_points_below)
{
    ask_start("", "", ASK_TOTAL);
    use(95);
    cr_expect_eq(use(90), CW_LEVEL_CRITICAL);
    cr_expect_eq(use(89), CW_LEVEL_HIGH);
    cr_expect_eq(use(75), CW_LEVEL_HIGH);
    cr_expect_eq(use(74), CW_LEVEL_MEDIUM);
    cr_expect_eq(use(55), CW_LEVEL_MEDIUM);
    cr_expect_eq(use(54), CW_LEVEL_LOW);
    use(95);
    cr_expect_eq(use(10), CW_LEVEL_LOW);
}

Test(pressure, use_that_swings_around_a_threshold_changes_the_level_once)
{
    ask_start("", "", ASK_TOTAL);
    for (unsigned i = 0; i < 50; i++)
        cr_expect_eq(use(i % 2 ? 76 : 80), CW_LEVEL_HIGH);
    cr_expect_eq(ask_events(CW_EVENT_PRESSURE, NULL), 1);
    cr_expect_eq(ask_memory()->level_entered[CW_LEVEL_HIGH], 1);
}

Test(pressure, a_level_that_begins_near_nothing_ends_all_the_same)
{
    core_options()->pressure = (struct cw_levels){{1, 3, 5}};
    ask_start("", "", ASK_TOTAL);
    cr_expect_eq(use(5), CW_LEVEL_CRITICAL);
    cr_expect_eq(use(0), CW_LEVEL_LOW);
}

Test(pressure, follows_the_limit_where_that_is_scarcer)
{
    uint64_t key;

    ask_start("1000M", "", ASK_TOTAL);
    use(0);
    ask_get(590 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    key = ask_get(210 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_HIGH);
    pool_put(key);
    cw_limit_set(0, 8000 * MIB);
    cw_pressure_update(0, 0, cw_session_now());
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    cr_expect_eq(use(96), CW_LEVEL_CRITICAL);
    cr_expect_eq(cw_pressure_level(1), CW_LEVEL_LOW);
}

Test(pressure, is_recorded_with_what_was_before_and_how_much_is_in_use)
{
    const struct cw_live_event *event = NULL;

    ask_start("", "", ASK_TOTAL);
    use(61);
    use(96);
    cr_assert_eq(ask_events(CW_EVENT_PRESSURE, &event), 2);
    cr_expect_eq(event->level, CW_LEVEL_CRITICAL);
    cr_expect_eq(event->level_before, CW_LEVEL_MEDIUM);
    cr_expect_eq(event->bytes, ASK_TOTAL / 100 * 96);
    cr_expect_eq(event->device, 0);
    cr_expect_eq(event->total_bytes, ASK_TOTAL);
    cr_expect_eq(event, cw_event_at(ask_memory()->last_change));
    cr_expect_eq(ask_memory()->share, 9600);
    cw_pressure_relieved(0, 5 * MIB);
    cr_expect_eq(event->released, 5 * MIB);
    use(61);
    cr_expect_eq(ask_memory()->share, 6100);
    cr_expect_eq(ask_memory()->highest_use, 9600);
}

static uint64_t time_at_levels(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < CW_LEVEL_COUNT; i++)
        sum += ask_memory()->level_ns[i];
    return sum;
}

Test(pressure, time_at_each_level_sums_up)
{
    static const uint64_t uses[] = {10, 61, 50, 81, 96, 20, 99, 85, 0};

    ask_start("", "", ASK_TOTAL);
    for (unsigned i = 0; i < 9; i++) {
        use(uses[i]);
        cr_expect_eq(time_at_levels(), ask_memory()->level_since_ns);
        cr_expect_leq(time_at_levels(), cw_session_now());
    }
    cr_expect_eq(ask_memory()->level_ns[CW_LEVEL_MEDIUM], 200 * FAKE_MS);
}

Test(pressure, a_thread_that_read_the_clock_earlier_takes_no_time_back)
{
    uint64_t before;

    ask_start("", "", ASK_TOTAL);
    use(10);
    before = cw_session_now();
    use(70);
    fake_driver.others = 0;
    cw_device_at(0)->driver_used = 0;
    fake_driver.now_ns -= 150 * FAKE_MS;
    cw_device_sample_now(0, 0);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    for (int i = 0; i < CW_LEVEL_COUNT; i++)
        cr_expect_leq(ask_memory()->level_ns[i], before + 200 * FAKE_MS, "level %d", i);
}

/* 1 once for each time that it was set. */
static int take_due(uint8_t device)
{
    return cw_reclaim_due_take(device, CW_RECLAIM_LEVEL);
}

Test(pressure, relief_is_due_when_it_gets_worse_and_with_each_look_while_it_is_bad)
{
    ask_start("", "", ASK_TOTAL);
    use(10);
    cr_expect_not(take_due(0));
    use(60);
    cr_expect(cw_reclaim_is_due());
    cr_expect_eq(take_due(0), 1);
    cr_expect_eq(take_due(0), 0);
    cr_expect_eq(take_due(1), 0);
    use(61);
    cr_expect_not(take_due(0));
    use(81);
    cr_expect_eq(take_due(0), 1);
    use(81);
    cr_expect_eq(take_due(0), 1);
    use(61);
    cr_expect_not(take_due(0));
}

/* What was given back is no more in use. */
Test(pressure, giving_back_the_excess_ends_the_level)
{
    uint64_t excess;

    ask_start("", "", ASK_TOTAL);
    use(70);
    cr_expect_eq(cw_pressure_excess(0), 0);
    for (uint64_t percent = 80; percent < 95; percent++) {
        cr_assert_eq(use(percent), CW_LEVEL_HIGH);
        excess = cw_pressure_excess(0);
        cr_expect_leq(excess, (percent - 74) * (ASK_TOTAL / 100));
        fake_driver.others -= excess;
        fake_driver.now_ns += 200 * FAKE_MS;
        cw_device_sample(0);
        cr_expect_eq(cw_pressure_level(0), CW_LEVEL_MEDIUM, "from %ju", (uintmax_t)percent);
    }
}

/* Managed memory that nobody touched counts as held, and takes nothing of the device. */
Test(pressure, more_held_than_the_device_has_given_is_no_pressure)
{
    struct cw_request request = core_request(CW_KIND_MANAGED, 0, 0x5000, 20000 * MIB);
    struct cw_request_free freed;

    ask_start("", "", ASK_TOTAL);
    cw_request_granted(&request, 0);
    use(5);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    cw_request_free_begin(CW_SPACE_ADDRESS, 0x5000, &freed);
    cw_request_free_end(&freed, 0, CW_FREE_DONE, 0);
    cw_pressure_update(0, 0, cw_session_now());
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    cr_expect_leq(ask_memory()->highest_use, 500);
}

Test(pressure, nothing_is_known_of_devices_that_are_none)
{
    ask_start("", "", ASK_TOTAL);
    cw_pressure_update(CW_DEVICE_HOST, 0, 1);
    cr_expect_eq(cw_reclaim_due_of(CW_DEVICE_HOST), 0);
    cr_expect_eq(ask_events(CW_EVENT_PRESSURE, NULL), 0);
}
