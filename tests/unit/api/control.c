/* SPDX-License-Identifier: MIT */
/* Pressure, trims, limits and statistics: what devices answer, and which there are. */
#include <criterion/criterion.h>

#include <string.h>

#include "api/control.h"
#include "api/stats.h"
#include "api/tags.h"
#include "api_fixture.h"
#include "core/device/driver_pool.h"
#include "core/limits/limit.h"
#include "core/process/gate.h"

TestSuite(control, .init = api_setup);

static struct cuwarden_stats stats(int device, const char *tag)
{
    struct cuwarden_stats out = {0};

    API_WORKS(cw_api_stats(device, tag, &out, sizeof(out)));
    return out;
}

/* ---- which devices ---- */

static int ask_pressure(int device)
{
    struct cuwarden_pressure out;

    return cw_api_pressure(device, &out, sizeof(out));
}

static int ask_trim(int device)
{
    return cw_api_trim(device, CUWARDEN_CLEAR, NULL);
}

static int ask_limit(int device)
{
    return cw_api_limit(device, 100 * MIB);
}

static int ask_pool_max(int device)
{
    return cw_api_pool_max(device, 100 * MIB);
}

static int ask_stats(int device)
{
    struct cuwarden_stats out;

    return cw_api_stats(device, NULL, &out, sizeof(out));
}

static const struct {
    int (*ask)(int device);
    int unused, host; /* what it gives of a device without memory, and of the host */
    int early, busy;
} functions[] = {
    {ask_pressure, CUWARDEN_UNUSED_DEVICE, CUWARDEN_INVALID, CUWARDEN_NOT_STARTED, CUWARDEN_OK},
    {ask_trim, CUWARDEN_UNUSED_DEVICE, CUWARDEN_UNUSED_DEVICE, CUWARDEN_NOT_STARTED, CUWARDEN_BUSY},
    {ask_limit, CUWARDEN_OK, CUWARDEN_INVALID, CUWARDEN_NOT_STARTED, CUWARDEN_BUSY},
    {ask_pool_max, CUWARDEN_OK, CUWARDEN_OK, CUWARDEN_NOT_STARTED, CUWARDEN_BUSY},
    {ask_stats, CUWARDEN_OK, CUWARDEN_OK, CUWARDEN_OK, CUWARDEN_OK}};

#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

Test(control, is_of_devices_that_are_there)
{
    static const int none[] = {2, 63, 64, 1 << 30, -3, -(1 << 30)};

    pool_get(MIB);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        for (unsigned j = 0; j < sizeof(none) / sizeof(none[0]); j++)
            API_FAILS(CUWARDEN_NO_DEVICE, "there is no device ", functions[i].ask(none[j]));
        cr_expect_eq(functions[i].ask(1), functions[i].unused, "function %u", i);
        cr_expect_eq(functions[i].ask(CUWARDEN_HOST), functions[i].host, "function %u", i);
        API_WORKS(functions[i].ask(0));
        API_WORKS(functions[i].ask(CUWARDEN_ALL_DEVICES));
        atomic_store(&cw_gate_captures, 1);
        cr_expect_eq(functions[i].ask(0), functions[i].busy, "function %u", i);
        atomic_store(&cw_gate_captures, 0);
    }
    API_FAILS(CUWARDEN_UNUSED_DEVICE, "no memory on device 1", ask_trim(1));
    API_FAILS(CUWARDEN_INVALID, "not of the host", ask_pressure(CUWARDEN_HOST));
    API_FAILS(CUWARDEN_INVALID, "memory of the host", ask_limit(CUWARDEN_HOST));
}

Test(control, says_which_devices_there_are)
{
    API_FAILS(CUWARDEN_NO_DEVICE, "no device 64: devices are 0 to 1", ask_stats(64));
    API_FAILS(CUWARDEN_NO_DEVICE, "no device -3: devices are 0 to 1", ask_limit(-3));
    fake_driver.devices = 0;
    API_FAILS(CUWARDEN_NO_DEVICE, "no device 1, nor another", ask_stats(1));
}

Test(control, needs_a_device_that_is_used_somewhere)
{
    API_FAILS(CUWARDEN_UNUSED_DEVICE, "on any device", ask_pressure(CUWARDEN_ALL_DEVICES));
    API_WORKS(ask_trim(CUWARDEN_ALL_DEVICES));
}

TestSuite(early_control, .init = api_setup_early);

Test(early_control, waits_for_the_first_call_of_cuda)
{
    for (unsigned i = 0; i < FUNCTIONS; i++)
        cr_expect_eq(functions[i].ask(0), functions[i].early, "function %u", i);
    cr_expect(stats(0, NULL).efficiency == 1 && stats(63, NULL).allocations == 0);
    API_FAILS(CUWARDEN_NO_DEVICE, "no device 64: devices are 0 to 63", ask_stats(64));
    core_options()->mode = CW_MODE_OFF;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", functions[i].ask(0));
    /* Whatever else is wrong. */
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", ask_pressure(CUWARDEN_HOST));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", ask_limit(CUWARDEN_HOST));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_trim(0, 3, NULL));
}

static void setup_tracking(void)
{
    core_arm();
    api_setup_early();
}

TestSuite(track_control, .init = setup_tracking);

Test(track_control, has_no_pool_to_bound)
{
    API_FAILS(CUWARDEN_UNSUPPORTED, "CUWARDEN_MODE=track", ask_pool_max(0));
    cr_expect_str_eq(stats(0, NULL).backend, "track");
    API_WORKS(ask_limit(0));
}

/* ---- what it does ---- */

Test(control, trims_by_ways_that_there_are)
{
    uint64_t bytes = 7;

    cr_expect_eq(stats(0, NULL).efficiency, 1); /* of nothing */
    pool_churn(4, MIB);
    fake_driver.pool_spare = MIB;
    cw_driver_pool_used(0);
    API_FAILS(CUWARDEN_INVALID, "no way 3 to trim", cw_api_trim(0, 3, &bytes));
    API_FAILS(CUWARDEN_INVALID, "no way -1 to trim", cw_api_trim(0, -1, &bytes));
    cr_expect(bytes == 7 && stats(0, NULL).idle_bytes != 0);
    API_WORKS(cw_api_trim(0, CUWARDEN_CLEAR, NULL));
    cr_expect_eq(fake_calls(FAKE_POOL_TRIM), 0u, "the driver's pools are its own");
    pool_churn(4, MIB);
    API_WORKS(cw_api_trim(0, CUWARDEN_EMERGENCY, &bytes));
    cr_expect_eq(fake_calls(FAKE_POOL_TRIM), 1u);
    cr_expect(bytes != 7 && bytes != 0 && stats(0, NULL).idle_bytes == 0);
    API_WORKS(cw_api_trim(0, CUWARDEN_SHRINK, &bytes));
    cr_expect_eq(bytes, 0);
}

Test(control, limits_below_what_is_held_are_set)
{
    struct cuwarden_pressure now;

    pool_get(64 * MIB);
    API_WORKS(cw_api_limit(0, 1));
    API_WORKS(cw_api_pressure(0, &now, sizeof(now)));
    cr_expect(now.limit_bytes == 1 && now.device == 0 && now.held_bytes == 64 * MIB);
    cr_expect_eq(ask_for(MIB).key, 0);
    API_WORKS(cw_api_limit(0, UINT64_MAX));
    cr_expect_neq(ask_for(MIB).key, 0);
    API_WORKS(cw_api_limit(CUWARDEN_ALL_DEVICES, 0));
    cr_expect_eq(stats(CUWARDEN_ALL_DEVICES, NULL).limit_bytes, 0);
}

/* ---- statistics ---- */

/* The other device has no limit: all of it may be used. And what could be a device is not asked. */
Test(control, of_all_devices_use_is_of_what_may_be_used_of_each)
{
    struct cuwarden_stats all;
    unsigned asked;

    pool_get(60 * MIB);
    API_WORKS(cw_api_limit(0, 100 * MIB));
    cr_expect_float_eq(stats(0, NULL).utilisation, 0.6, 0.01);
    asked = fake_calls(FAKE_DEVICE_FACTS);
    all = stats(CUWARDEN_ALL_DEVICES, NULL);
    cr_expect_leq(fake_calls(FAKE_DEVICE_FACTS), asked + 1);
    cr_expect_eq(all.limit_bytes, 100 * MIB);
    cr_expect_gt(all.device_total_bytes, stats(0, NULL).device_total_bytes);
    cr_expect_float_eq(all.utilisation,
                       60. / (100. + (double)(stats(1, NULL).device_total_bytes / MIB)), 1e-4, "%f",
                       all.utilisation);
}

Test(control, counts_by_device_and_by_tag)
{
    struct cuwarden_stats out = {.frees = 7};

    API_WORKS(cw_api_tag_push("cache"));
    pool_put(pool_get(3000));
    API_WORKS(cw_api_tag_pop());
    pool_get(5000);
    cr_expect(stats(0, NULL).allocations == 2 && stats(0, NULL).live_bytes == 5000);
    cr_expect(stats(1, NULL).allocations == 0 && stats(1, "cache").allocations == 0);
    cr_expect(stats(0, "cache").allocations == 1 && stats(0, "cache").frees == 1);
    cr_expect(stats(0, "").live_bytes == 5000 && stats(0, "").frees == 0);
    cr_expect_str_eq(stats(0, "cache").backend, "pool");
    API_FAILS(CUWARDEN_NOT_FOUND, "nobody has used a tag 'nobody'",
              cw_api_stats(0, "nobody", &out, sizeof(out)));
    API_WORKS(cw_api_stats(0, NULL, &out, sizeof(out.allocations)));
    cr_expect(out.allocations == 2 && out.frees == 7);
}
