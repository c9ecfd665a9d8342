/* SPDX-License-Identifier: MIT */
/* Points of devices: who has a record, what stands in it, and how it is thinned. */
#include "core/growth/timeline.h"

#include <criterion/criterion.h>

#include "core/control/lifecycle.h"
#include "ask_fixture.h"
#include "core/process/due.h"
#include "core/growth/growth.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "core/request/request.h"

static void start(void)
{
    ask_start("", "", 4 * GIB);
    fake_driver.now_ns += FAKE_MS;
}

TestSuite(timeline, .init = start);

static uint32_t records(void)
{
    return core_count(CW_TABLE_TIMELINE);
}

static const struct cw_live_timeline *record_of(unsigned device)
{
    for (uint32_t i = 1; i <= records(); i++) {
        const struct cw_live_timeline *record = core_at(CW_TABLE_TIMELINE, i);

        if (record->device == device)
            return record;
    }
    return NULL;
}

static const struct cw_live_point *newest(unsigned device)
{
    const struct cw_live_timeline *record = record_of(device);
    const struct cw_live_point *point;

    cr_assert_not_null(record);
    point = record->point;
    for (unsigned i = 1; i < CW_POINTS; i++)
        if (record->point[i].t_ns > point->t_ns)
            point = &record->point[i];
    return point;
}

static void pass(uint64_t ms)
{
    fake_driver.now_ns += ms * FAKE_MS;
    cw_growth_serve();
}

static uint32_t grant(enum cw_kind kind, uint8_t device, uint64_t key, uint64_t bytes)
{
    struct cw_request request = core_request(kind, device, key, bytes);

    return cw_request_granted(&request, cw_site_text("cuMemAlloc"));
}

Test(timeline, begins_when_a_device_holds_something)
{
    pass(1);
    cr_expect_eq(records(), 0);
    ask_get(MIB);
    pass(1);
    cr_expect_eq(records(), 1);
    cr_expect_not_null(record_of(0));
    grant(CW_KIND_PINNED, CW_DEVICE_HOST, 0x1000, 4096);
    pass(1);
    cr_expect_eq(records(), 2);
    cr_expect_not_null(record_of(CW_DEVICE_HOST));
    cr_expect_eq(record_of(0)->taken, 2);
    cr_expect_eq(record_of(CW_DEVICE_HOST)->taken, 1);
    pass(1);
    cr_expect_eq(record_of(CW_DEVICE_HOST)->taken, 2);
}

Test(timeline, says_what_is_live_held_idle_and_used)
{
    uint64_t key = ask_get(16 * MIB);

    ask_get(8 * MIB);
    fake_driver.others = GIB;
    pool_put(key);
    fake_driver.now_ns += 200 * FAKE_MS;
    ask_get(4 * MIB);
    pass(1);
    cr_expect_eq(newest(0)->live, 12 * MIB);
    cr_expect_eq(newest(0)->held, 28 * MIB);
    cr_expect_eq(newest(0)->idle, 16 * MIB);
    cr_expect_eq(newest(0)->used, GIB + 28 * MIB);
    cr_expect_eq(newest(0)->t_ns, cw_session_now());
}

Test(timeline, says_what_the_pool_keeps_of_pinned_memory)
{
    uint64_t key = pool_alloc(CW_POOL_HOST, MIB, NULL);

    pool_alloc(CW_POOL_HOST, MIB, NULL);
    pool_free(CW_POOL_HOST, key, NULL);
    pass(1);
    cr_expect_eq(newest(CW_DEVICE_HOST)->live, MIB);
    cr_expect_eq(newest(CW_DEVICE_HOST)->held, 2 * MIB);
    cr_expect_eq(newest(CW_DEVICE_HOST)->idle, MIB);
    cr_expect_eq(newest(CW_DEVICE_HOST)->used, 0);
}

/* A row of a million milliseconds, in which the live bytes are those of the millisecond. */
Test(timeline, spans_a_million_milliseconds_evenly_with_true_values)
{
    const struct cw_live_timeline *record;
    uint64_t first = UINT64_MAX, last = 0, most = 0;

    for (uint64_t ms = 1; ms <= 1000000; ms++) {
        cw_usage_sums[1].live = ms;
        cw_usage_sums[1].held = 2 * ms;
        pass(ms != 1);
    }
    record = record_of(1);
    cr_assert_not_null(record);
    for (unsigned i = 0; i < CW_POINTS; i++) {
        const struct cw_live_point *point = &record->point[i];
        uint64_t next = UINT64_MAX;

        cr_expect_eq(point->live, point->t_ns / FAKE_MS);
        cr_expect_eq(point->held, 2 * point->live);
        first = point->t_ns < first ? point->t_ns : first;
        last = point->t_ns > last ? point->t_ns : last;
        for (unsigned k = 0; k < CW_POINTS; k++)
            if (record->point[k].t_ns > point->t_ns && record->point[k].t_ns < next)
                next = record->point[k].t_ns;
        if (next != UINT64_MAX && next - point->t_ns > most)
            most = next - point->t_ns;
    }
    cr_expect_eq(first, FAKE_MS);
    cr_expect_geq(last + record->period_ns, 1000000 * FAKE_MS);
    cr_expect_eq(record->period_ns, 4096 * FAKE_MS);
    cr_expect_eq(most, record->period_ns);
    cr_expect_lt(record->taken, 4000);
}

/* What is live for less than a millisecond, when nothing is sampled. */
static void spike(uint64_t bytes)
{
    pool_put(ask_get(bytes));
}

Test(timeline, what_comes_and_goes_between_two_points_is_kept)
{
    ask_get(MIB);
    pass(1);
    spike(64 * MIB);
    spike(16 * MIB);
    pass(1);
    cr_expect_eq(newest(0)->live, MIB);
    cr_expect_eq(newest(0)->least.live, MIB);
    cr_expect_eq(newest(0)->most.live, 65 * MIB);
    cr_expect_eq(newest(0)->most.t_ns, cw_session_now() - FAKE_MS);
    spike(16 * MIB); /* in what the first one left */
    pass(1);
    cr_expect_eq(newest(0)->most.live, 17 * MIB);
    cr_expect_geq(newest(0)->most.held, 81 * MIB);
    cr_expect_eq(newest(0)->most.idle, newest(0)->most.held - 17 * MIB);
}

/* A spike a hundred milliseconds, each higher than the one before, while points are thinned to one
 * every 64: every interval with a spike has it. */
Test(timeline, thinning_out_keeps_what_was_seen)
{
    uint64_t most = 0;
    unsigned intervals = 0;

    ask_get(MIB);
    for (unsigned i = 0; i < 10000; i++) {
        if (i % 100 == 50)
            spike((i / 100 + 1) * MIB);
        pass(1);
    }
    for (unsigned i = 0; i < CW_POINTS; i++) {
        const struct cw_live_point *point = &record_of(0)->point[i];

        if (point->t_ns == 0 || point->most.live <= MIB)
            continue;
        intervals++;
        cr_expect_leq(point->most.t_ns, point->t_ns);
        cr_expect_eq(point->most.live, (point->most.t_ns / FAKE_MS / 100 + 2) * MIB);
        most = point->most.live > most ? point->most.live : most;
    }
    cr_expect_eq(most, core_header()->device[0].peak_bytes);
    cr_expect_eq(most, 101 * MIB);
    cr_expect_geq(intervals, 95);
}

static unsigned due(void)
{
    return cw_due_take(CW_DUE_GROWTH);
}

/* After a week the next point is an hour away. */
Test(timeline, a_device_that_comes_late_need_not_wait)
{
    ask_get(MIB);
    for (unsigned i = 0; i < 1000000; i++)
        pass(600);
    due();
    cr_expect_gt(record_of(0)->period_ns, 1000000 * FAKE_MS);
    grant(CW_KIND_PINNED, CW_DEVICE_HOST, 0x1000, 4096);
    cr_expect_neq(due(), 0);
    cw_growth_serve();
    cr_expect_eq(newest(CW_DEVICE_HOST)->live, 4096);
    grant(CW_KIND_PINNED, CW_DEVICE_HOST, 0x2000, 4096);
    cr_expect_eq(due(), 0);
}

Test(timeline, what_is_in_no_sum_hurries_nobody)
{
    ask_get(MIB);
    pass(1);
    due();
    grant(CW_KIND_IPC, 1, 0x1000, 4096);
    cr_expect_eq(due(), 0);
    pass(1);
    cr_expect_eq(records(), 1);
}

Test(timeline, a_point_takes_at_most_a_thousandth_of_the_time)
{
    uint64_t taken;

    ask_get(MIB);
    fake_driver.work_step = FAKE_MS;
    for (unsigned i = 0; i < 4; i++)
        pass(1);
    fake_driver.work_step = 0;
    taken = record_of(0)->taken;
    pass(900);
    cr_expect_eq(record_of(0)->taken, taken);
    pass(200);
    cr_expect_eq(record_of(0)->taken, taken + 1);
}

Test(timeline, the_end_is_a_point)
{
    ask_get(MIB);
    pass(1);
    ask_get(MIB);
    fake_driver.now_ns++;
    cr_assert_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cr_expect_eq(record_of(0)->taken, 2);
    cr_expect_eq(newest(0)->live, 2 * MIB);
    cr_expect_eq(newest(0)->t_ns, core_header()->end_ns);
}
