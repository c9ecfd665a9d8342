/* SPDX-License-Identifier: MIT */
/* Bounds of the platform: causes of pressure that refuse nothing, and what is borrowed. */
#include "core/limits/bound.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/account/usage.h"
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/process/host.h"
#include "core/process/session.h"
#include "core/request/request.h"
#include "core/reclaim/reclaim.h"

TestSuite(bound);

static void set(enum cw_bound bound, const char *sizes)
{
    struct cw_options *options = core_options();

    cr_assert_eq(
        cw_sizes_parse(sizes, CW_SIZE_TAKES_NONE,
                       bound == CW_BOUND_OWN ? &options->soft_limit : &options->platform.of[bound]),
        0);
}

Test(bound, there_is_none_unless_somebody_set_one)
{
    ask_start("", "", ASK_TOTAL);
    cr_expect_not(cw_bound_is_on());
    ask_get(5000 * MIB);
    cr_expect_eq(cw_bound_most(0), UINT64_MAX);
    cr_expect_eq(cw_bound_nearest(0, 5000 * MIB).bytes, 0);
}

Test(bound, makes_pressure_and_refuses_nothing)
{
    const struct cw_live_event *event = NULL;

    set(CW_BOUND_VGPU, "1000M");
    ask_start("", "", ASK_TOTAL);
    ask_get(590 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    ask_get(210 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_HIGH);
    cr_expect_neq(ask_get(2000 * MIB), 0);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_CRITICAL);
    cr_assert_geq(ask_events(CW_EVENT_PRESSURE, &event), 2);
    cr_expect_eq(event->cause, CW_CAUSE_PLATFORM);
    cr_expect_eq(event->bound, CW_BOUND_VGPU);
    cr_expect_eq(event->share, 10000);
    cr_expect_eq(event->bytes, 2800 * MIB);
    cr_expect_eq(cw_limit_of(0), 0);
    cr_expect_eq(ask_memory()->bound[CW_BOUND_VGPU], 1000 * MIB);
    cr_expect_eq(ask_memory()->peak_borrowed, 0); /* a hard bound lends nothing */
}

Test(bound, is_of_its_device_alone)
{
    set(CW_BOUND_MPS, "1:100M");
    ask_start("", "", ASK_TOTAL);
    ask_get(300 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    cr_expect_eq(cw_bound_most(0), UINT64_MAX);
    fake_set_current(pooled_context(1, 1));
    ask_get(MIB);
    cr_expect_eq(cw_bound_most(1), 100 * MIB);
}

Test(bound, the_nearest_decides)
{
    set(CW_BOUND_NVIDIA_LIMIT, "4000M");
    set(CW_BOUND_NVIDIA_REQUEST, "1000M");
    set(CW_BOUND_OWN, "20%");
    ask_start("", "", ASK_TOTAL);
    ask_get(MIB);
    cr_expect_eq(cw_bound_most(0), 1000 * MIB);
    cr_expect_eq(cw_bound_nearest(0, 100).bound, CW_BOUND_NVIDIA_REQUEST);
    cr_expect_eq(ask_memory()->bound[CW_BOUND_OWN], ASK_TOTAL / 5);
}

Test(bound, what_is_beyond_a_soft_one_is_borrowed)
{
    uint64_t key;

    set(CW_BOUND_NVIDIA_LIMIT, "4000M");
    set(CW_BOUND_NVIDIA_REQUEST, "1000M");
    set(CW_BOUND_OWN, "2000M");
    ask_start("", "", ASK_TOTAL);
    ask_get(900 * MIB);
    cr_expect_eq(ask_memory()->borrowed, 0);
    key = ask_get(600 * MIB);
    cr_expect_eq(ask_memory()->borrowed, 500 * MIB);
    pool_put(key);
    cw_reclaim_look();
    cw_pressure_update(0, 0, cw_session_now());
    cr_expect_eq(ask_memory()->borrowed, 0);
    cr_expect_eq(ask_memory()->peak_borrowed, 500 * MIB);
}

Test(bound, a_context_that_fails_tells_what_was_borrowed)
{
    const struct cw_live_event *event = NULL;

    set(CW_BOUND_NVIDIA_REQUEST, "1000M");
    set(CW_BOUND_OWN, "2000M");
    ask_start("", "", ASK_TOTAL);
    ask_get(1300 * MIB);
    cw_request_fatal(0, 810);
    cr_assert_eq(ask_events(CW_EVENT_FATAL, &event), 1);
    cr_expect_eq(event->bytes, 300 * MIB);
    cr_expect_eq(event->bound, CW_BOUND_NVIDIA_REQUEST);
}

/* ---- what the host knows of the group ---- */

static struct cw_host_bounds group;
static unsigned looks;
static int is_short; /* of descriptors */

static int read_group(uint8_t device, struct cw_host_bounds *out)
{
    looks++;
    *out = device == 0 && !is_short ? group : (struct cw_host_bounds){.is_served = 0};
    return is_short ? -1 : device == 0;
}

static void start_in_group(uint64_t hard, uint64_t soft, uint64_t used)
{
    static const struct cw_host_ops host = {.bounds = read_group};

    group.bytes[CW_BOUND_DMEM_MAX] = hard;
    group.bytes[CW_BOUND_DMEM_MIN] = soft;
    group.used[CW_BOUND_DMEM_MAX] = group.used[CW_BOUND_DMEM_MIN] = used;
    looks = 0;
    cw_host_set(&host);
    ask_start("", "", ASK_TOTAL);
}

static void look_later(uint64_t ms)
{
    fake_driver.now_ns += ms * FAKE_MS;
    cw_device_sample(0);
}

Test(bound, of_the_group_counts_what_its_others_use)
{
    start_in_group(1000 * MIB, 0, 600 * MIB); /* with the 100 that follow */
    ask_get(100 * MIB);
    cr_expect_eq(ask_memory()->bound[CW_BOUND_DMEM_MAX], 1000 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_MEDIUM); /* 600 */
    cr_expect_eq(cw_bound_most(0), 500 * MIB);
    ask_get(350 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_CRITICAL); /* 950 */
    /* In sum as much, but now it is this process that has it. */
    group.used[CW_BOUND_DMEM_MAX] = 450 * MIB;
    look_later(1100);
    cr_expect_eq(cw_bound_most(0), 1000 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
}

Test(bound, of_the_group_may_change_and_go)
{
    start_in_group(1000 * MIB, 0, 0);
    ask_get(500 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    group.bytes[CW_BOUND_DMEM_MAX] = 520 * MIB;
    look_later(200);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW); /* not looked at yet */
    look_later(1000);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_CRITICAL);
    cr_expect_eq(ask_memory()->bound[CW_BOUND_DMEM_MAX], 520 * MIB);
    group.bytes[CW_BOUND_DMEM_MAX] = 0;
    look_later(1100);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_LOW);
    cr_expect_eq(cw_bound_most(0), UINT64_MAX);
}

Test(bound, of_the_group_stays_while_it_cannot_be_read)
{
    start_in_group(1000 * MIB, 0, 0);
    ask_get(990 * MIB);
    is_short = 1;
    look_later(1100);
    cr_expect_eq(cw_bound_most(0), 1000 * MIB);
    cr_expect_eq(cw_pressure_level(0), CW_LEVEL_CRITICAL);
    is_short = 0;
    group.bytes[CW_BOUND_DMEM_MAX] = 2000 * MIB;
    look_later(1100);
    cr_expect_eq(cw_bound_most(0), 2000 * MIB);
}

Test(bound, of_the_group_that_is_soft_lends)
{
    start_in_group(0, 1000 * MIB, 1200 * MIB);
    ask_get(300 * MIB); /* the others are within it */
    cr_expect_eq(ask_memory()->borrowed, 200 * MIB);
    group.used[CW_BOUND_DMEM_MIN] = 4000 * MIB; /* they borrow, too */
    look_later(1100);
    cr_expect_eq(ask_memory()->borrowed, 300 * MIB - 1);
}

Test(bound, the_host_is_rarely_asked_where_it_knows_of_none)
{
    start_in_group(0, 0, 0);
    fake_set_current(pooled_context(1, 1));
    ask_get(MIB);
    looks = 0;
    for (unsigned i = 0; i < 90; i++) {
        fake_driver.now_ns += 100 * FAKE_MS;
        cw_device_sample(0);
    }
    cr_expect_eq(looks, 0);
    fake_driver.now_ns += 1500 * FAKE_MS;
    cw_device_sample(0);
    cr_expect_eq(looks, 1);
}

/* Half of it lies idle when more is asked for than there would be room for: that goes first. */
Test(bound, idle_memory_goes_before_any_is_borrowed)
{
    set(CW_BOUND_OWN, "1000M");
    ask_start_keeping(CW_COUNT_AUTO);
    ask_get(100 * MIB);
    ask_churn(4, 100 * MIB, MIB); /* 406 MiB */
    cr_expect_gt(cw_usage_device(0).held, 400 * MIB);
    ask_get(850 * MIB);
    cr_expect_leq(cw_usage_device(0).held, 1000 * MIB);
    cr_expect_eq(ask_memory()->peak_borrowed, 0);
}
