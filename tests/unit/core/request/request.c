/* SPDX-License-Identifier: MIT */
/* The life of a call: granted, failed, freed; events, retries, and the samples of memory use. */
#include "core/device/device.h"
#include "core/request/request.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "core/device/context.h"
#include "core/process/gate.h"
#include "core/device/graph.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

#define HANDLE 0xc0ffee00u
#define GIB    ((uint64_t)1 << 30)
#define OOM    2

static uint32_t api;

static void setup(void)
{
    core_arm();
    api = cw_site_text("cudaMalloc");
    fake_context(0, HANDLE, 7, 0);
    fake_set_current(HANDLE);
}

TestSuite(request, .init = setup);

static uint32_t events(void)
{
    return core_count(CW_TABLE_EVENT);
}

static const struct cw_live_event *event_at(uint32_t index)
{
    return core_at(CW_TABLE_EVENT, index);
}

static uint32_t grant(uint64_t key, uint64_t bytes)
{
    struct cw_request request = core_request(CW_KIND_DEVICE, 0, key, bytes);

    return cw_request_granted(&request, api);
}

static void fail(uint64_t bytes, int code, int is_oom)
{
    struct cw_request request = core_request(CW_KIND_DEVICE, 0, 0, bytes);

    cw_request_failed(&request, api, code, is_oom ? CW_CAUSE_DRIVER : CW_CAUSE_COUNT);
}

static void free_key(uint64_t key, enum cw_free_result result, int code)
{
    struct cw_request_free call;

    cw_request_free_begin(CW_SPACE_ADDRESS, key, &call);
    cw_request_free_end(&call, api, result, code);
}

CoreTest(request, a_granted_block_lives_until_its_free)
{
    uint32_t block, site;

    fake_driver.now_ns += 3 * FAKE_MS;
    block = grant(0x1000, 64);
    cr_assert_neq(block, 0u);
    cr_expect_eq(cw_tracker_at(block)->born_ns, 3 * FAKE_MS);
    site = cw_tracker_at(block)->site;
    cr_expect_eq(cw_site_at(site)->api, api);
    cr_expect_eq(core_sums(site).live_bytes, 64u);
    free_key(0x1000, CW_FREE_DONE, 0);
    cr_expect_eq(core_sums(site).live_bytes, 0u);
    cr_expect_eq(core_header()->untracked_frees, 0u);
    cr_expect_eq(events(), 0u);
}

CoreTest(request, a_free_of_what_was_never_seen_is_counted)
{
    free_key(0x1000, CW_FREE_DONE, 0);
    cr_expect_eq(core_header()->untracked_frees, 1u);
    cr_expect_eq(core_header()->invalid_frees, 0u);
    cr_expect_eq(events(), 0u);
}

/* CUDA_ERROR_DEINITIALIZED: nothing was freed, and perhaps nothing was there. */
CoreTest(request, a_free_by_a_driver_that_is_gone_is_not_one_of_unseen_memory)
{
    free_key(0x1000, CW_FREE_DONE, 4);
    cr_expect_eq(core_header()->untracked_frees, 0u);
    cr_expect_eq(events(), 0u);
}

CoreTest(request, a_refused_free_is_an_event_and_leaves_the_block)
{
    uint32_t block = grant(0x1000, 64);

    free_key(0x1000, CW_FREE_REFUSED, 1);
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), block);
    free_key(0x7777, CW_FREE_REFUSED, 201);
    cr_expect_eq(core_header()->invalid_frees, 2u);
    cr_expect_eq(core_header()->untracked_frees, 0u);
    cr_assert_eq(events(), 2u);
    cr_expect_eq(event_at(1)->type, CW_EVENT_INVALID_FREE);
    cr_expect_eq(event_at(1)->key, 0x1000u);
    cr_expect_eq(event_at(2)->key, 0x7777u);
    cr_expect_eq(event_at(2)->code, 201);
    cr_expect_gt(event_at(2)->t_ns, 0u);
    cr_expect_eq(cw_site_at(event_at(2)->site)->api, api);
}

CoreTest(request, memory_that_went_with_its_context_is_no_event)
{
    uint32_t site = cw_tracker_at(grant(0x1000, 64))->site;

    free_key(0x1000, CW_FREE_RECLAIMED, 4);
    free_key(0x2000, CW_FREE_RECLAIMED, 4);
    cr_expect_eq(events(), 0u);
    cr_expect_eq(core_header()->untracked_frees, 0u);
    cr_expect_eq(core_sums(site).reclaimed, 1u);
}

CoreTest(request, out_of_memory_is_an_event_with_the_devices_state)
{
    uint32_t site;

    fail(100 * GIB, OOM, 1);
    cr_assert_eq(events(), 1u);
    cr_expect_eq(event_at(1)->type, CW_EVENT_OOM);
    cr_expect_eq(event_at(1)->bytes, 100 * GIB);
    cr_expect_eq(event_at(1)->code, OOM);
    cr_expect_eq(event_at(1)->total_bytes, 80 * GIB);
    cr_expect_eq(event_at(1)->free_bytes, 60 * GIB);
    site = event_at(1)->site;
    cr_expect_eq(core_sums(site).oom, 1u);
    cr_expect_eq(core_sums(site).failed, 1u);
}

CoreTest(request, another_failure_is_counted_and_no_event)
{
    uint32_t site = cw_tracker_at(grant(0x1000, 64))->site;

    fail(64, 1, 0);
    cr_expect_eq(events(), 0u);
    cr_expect_eq(core_sums(site).failed, 1u);
    cr_expect_eq(core_sums(site).oom, 0u);
}

CoreTest(request, events_past_the_last_are_counted)
{
    for (int i = 0; i < 5000; i++)
        fail(1, OOM, 1);
    cr_expect_eq(events(), 4096u);
    cr_expect_eq(core_header()->events_dropped, 5000u - 4096u);
}

CoreTest(request, a_fatal_error_is_an_event_once_per_context)
{
    cw_request_fatal(api, 700);
    cw_request_fatal(api, 719);
    cr_assert_eq(events(), 1u);
    cr_expect_eq(event_at(1)->type, CW_EVENT_FATAL);
    cr_expect_eq(event_at(1)->code, 700);
    fake_set_current(0);
    cw_request_fatal(api, 700);
    cr_expect_eq(events(), 1u);
}

/* ---- samples ---- */

static unsigned samples(void)
{
    return fake_driver.calls[FAKE_MEMORY_INFO];
}

CoreTest(request, the_first_block_describes_and_samples_its_device)
{
    const struct cw_live_device *device = &core_header()->device[0];

    grant(0x1000, 64);
    cr_expect_eq(device->known, 1u);
    cr_expect_eq(device->total, 80 * GIB);
    cr_expect_str_eq(device->name, "Fake 0");
    cr_expect_eq(device->uuid[0], 0xf0);
    cr_expect_eq(device->driver_total, 80 * GIB);
    cr_expect_eq(device->driver_used, 20 * GIB);
    cr_expect_eq(device->sample_held, 64u);
    for (uint64_t i = 0; i < 100; i++)
        grant(0x2000 + i, 64);
    cr_expect_eq(fake_driver.calls[FAKE_DEVICE_FACTS], 1u);
    cr_expect_eq(samples(), 1u);
}

CoreTest(request, a_device_is_sampled_at_most_every_100_ms)
{
    cw_device_sample(0);
    cr_expect_eq(samples(), 1u);
    fake_driver.now_ns += 100 * FAKE_MS - 1;
    cw_device_sample(0);
    cr_expect_eq(samples(), 1u);
    fake_driver.now_ns += 2;
    for (int i = 0; i < 10; i++)
        cw_device_sample(0);
    cr_expect_eq(samples(), 2u);
}

CoreTest(request, each_device_has_its_own_period)
{
    fake_context(1, HANDLE + 1, 8, 1);
    cw_device_sample(0);
    fake_set_current(HANDLE + 1);
    cw_device_sample(0);
    cr_expect_eq(samples(), 2u);
    cr_expect_eq(core_header()->device[1].driver_total, 80 * GIB);
    cw_device_sample(0);
    fake_set_current(HANDLE);
    cw_device_sample(0);
    cr_expect_eq(samples(), 2u);
}

CoreTest(request, a_sample_of_the_programs_own_saves_ours)
{
    cw_device_sampled(10 * GIB, 80 * GIB, 0);
    cr_expect_eq(core_header()->device[0].driver_used, 70 * GIB);
    cw_device_sample(0);
    cr_expect_eq(samples(), 0u);
    cw_device_sampled(0, 0, 0);
    cr_expect_eq(core_header()->device[0].driver_used, 70 * GIB);
}

CoreTest(request, nothing_is_sampled_without_a_context)
{
    fake_set_current(0);
    grant(0x1000, 64);
    fail(64, OOM, 1);
    cw_device_sampled(GIB, GIB, 0);
    cr_expect_eq(samples(), 0u);
    cr_expect_eq(core_header()->device[0].driver_total, 0u);
}

CoreTest(request, a_failed_sample_leaves_the_last_one)
{
    cw_device_sample(0);
    fake_driver.fails[FAKE_MEMORY_INFO] = 1;
    fake_driver.free_bytes = 0;
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
    cr_expect_eq(samples(), 2u);
    cr_expect_eq(core_header()->device[0].driver_used, 20 * GIB);
}

CoreTest(request, a_device_that_was_not_described_is_asked_again)
{
    fake_driver.fails[FAKE_DEVICE_FACTS] = 1;
    grant(0x1000, 64);
    cr_expect_eq(core_header()->device[0].known, 0u);
    fake_driver.fails[FAKE_DEVICE_FACTS] = 0;
    grant(0x2000, 64);
    cr_expect_eq(core_header()->device[0].known, 1u);
}

CoreTest(request, host_memory_asks_no_device)
{
    struct cw_request request = core_request(CW_KIND_PINNED, CW_DEVICE_HOST, 0x1000, 64);

    cw_request_granted(&request, api);
    cr_expect_eq(fake_gated_calls(), 0u);
    cr_expect_eq(core_live(CW_DEVICE_HOST), 64u);
}

CoreTest(request, the_driver_is_left_alone_while_the_gate_is_closed)
{
    cw_gate_close();
    grant(0x1000, 64);
    fail(64, OOM, 1);
    free_key(0x1000, CW_FREE_DONE, 0);
    free_key(0x1000, CW_FREE_REFUSED, 1);
    cw_device_sample(0);
    cr_expect_eq(fake_gated_calls(), 0u);
    cr_expect_eq(events(), 2u);
    cr_expect_eq(event_at(1)->total_bytes, 0u);
    cw_gate_open();
    grant(0x2000, 64);
    cr_expect_eq(fake_driver.calls[FAKE_CONTEXT_FACTS], 1u);
    cr_expect_eq(fake_driver.calls[FAKE_DEVICE_FACTS], 1u);
}

CoreTest(request, a_sample_that_a_closed_gate_prevented_is_not_put_off)
{
    grant(0x1000, 64);
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_gate_close();
    cw_device_sample(0);
    cw_gate_open();
    cw_device_sample(0);
    cr_expect_eq(samples(), 2u);
}

/* ---- the gate ---- */

static _Atomic int closer_waits, closer_is_through, closed_too_early;
static pthread_t closer;

static void *close_and_open(void *arg)
{
    (void)arg;
    closer_waits = 1;
    cw_gate_close();
    closer_is_through = 1;
    cw_gate_open();
    return NULL;
}

/* In the middle of a driver call: whoever closes the gate now must wait for its end. */
static void close_the_gate(enum fake_call call)
{
    if (call == FAKE_CURRENT)
        return;
    closer_waits = closer_is_through = 0;
    pthread_create(&closer, NULL, close_and_open, NULL);
    while (!closer_waits)
        sched_yield();
    usleep(5000);
    closed_too_early += closer_is_through;
    pthread_detach(closer);
}

static void wait_for_closer(void)
{
    while (closer_waits && !closer_is_through)
        sched_yield();
    while (!cw_gate_enter())
        sched_yield();
    cw_gate_leave();
}

CoreTest(request, every_driver_call_is_made_inside_the_gate)
{
    uint8_t device;

    fake_driver.inside = close_the_gate;
    fake_driver.gate_may_close = 1;
    cr_expect_neq(cw_context_current(&device), 0u);
    wait_for_closer();
    cw_device_sample(0);
    wait_for_closer();
    fail(1, 1, 0);
    wait_for_closer();
    cr_expect_eq(fake_gated_calls(), 3u);
    cr_expect_eq(closed_too_early, 0);
}

static void use(unsigned id)
{
    uint64_t base = (uint64_t)(id + 1) << 40;

    fake_set_current(HANDLE);
    for (uint64_t i = 0; i < 2000; i++) {
        fake_driver.now_ns += FAKE_MS;
        grant(base + i, 64);
        if (i % 100 == 0)
            fail(64, OOM, 1);
        if (i % 3)
            free_key(base + i, i % 50 ? CW_FREE_DONE : CW_FREE_REFUSED, 1);
        if (id == 0 && i % 10 == 0) {
            cw_capture_begin();
            cw_capture_started(0x5000, 0, 1);
            cw_capture_ended(0x5000);
        }
    }
}

CoreTest(request, calls_of_eight_threads_add_up)
{
    fake_driver.gate_may_close = 1;
    run_threads(8, use);
    cr_expect_eq(events(), 8u * 20 + (uint32_t)core_header()->invalid_frees);
    cr_expect_eq(core_header()->untracked_frees, 0u);
}
