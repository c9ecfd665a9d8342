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
#include "core/device/vmm.h"
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

/* ---- why a free was refused ---- */

static uint32_t site_named(const char *name, enum cw_kind kind)
{
    return cw_site_here(cw_site_text(name), kind, 0);
}

static uint32_t grant_kind(enum cw_kind kind, uint64_t key, const char *name)
{
    struct cw_request request = core_request(kind, 0, key, 64);

    return cw_request_granted(&request, cw_site_text(name));
}

static const struct cw_live_event *refuse(enum cw_freeing how, uint64_t key,
                                          enum cw_free_result result)
{
    struct cw_request_free call;

    cw_request_free_begin(CW_SPACE_ADDRESS, key, &call);
    call.how = how;
    cw_request_free_end(&call, api, result, 1);
    return event_at(events());
}

static void expect_refusal(enum cw_freeing how, uint64_t key, enum cw_free_result result,
                           enum cw_misuse misuse, const char *allocated_by)
{
    const struct cw_live_event *event = refuse(how, key, result);

    cr_expect_eq(event->key, key);
    cr_expect_eq(event->misuse, misuse, "%#jx is %s, not %s", (uintmax_t)key,
                 cw_misuse_name(event->misuse), cw_misuse_name(misuse));
    if (allocated_by == NULL)
        cr_expect_eq(event->alloc_site, 0u);
    else
        cr_expect_str_eq(core_text(cw_site_at(event->alloc_site)->api), allocated_by);
    cr_expect(misuse == CW_MISUSE_DOUBLE || event->other_site == 0, "nobody freed it");
}

CoreTest(request, a_live_block_is_refused_for_its_function_only_if_that_is_wrong)
{
    static const struct {
        enum cw_kind kind;
        unsigned right; /* bits of enum cw_freeing */
    } rows[] = {
        {CW_KIND_DEVICE, 1 << CW_FREES_DEVICE},
        {CW_KIND_PITCHED, 1 << CW_FREES_DEVICE},
        {CW_KIND_MANAGED, 1 << CW_FREES_DEVICE},
        {CW_KIND_EXTERNAL_MAP, 1 << CW_FREES_DEVICE},
        {CW_KIND_ASYNC, 1 << CW_FREES_DEVICE | 1 << CW_FREES_ORDERED},
        {CW_KIND_GRAPH, 1 << CW_FREES_DEVICE | 1 << CW_FREES_ORDERED},
        {CW_KIND_PINNED, 1 << CW_FREES_HOST},
        {CW_KIND_REGISTERED, 1 << CW_FREES_REGISTERED},
        {CW_KIND_IPC, 1 << CW_FREES_IMPORTED},
    };

    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t key = 0x1000 * (i + 1);

        grant_kind(rows[i].kind, key, "cuTake");
        for (unsigned how = CW_FREES_DEVICE; how <= CW_FREES_IMPORTED; how++)
            expect_refusal((enum cw_freeing)how, key, CW_FREE_REFUSED,
                           rows[i].right & 1u << how ? CW_MISUSE_UNKNOWN : CW_MISUSE_FUNCTION,
                           "cuTake");
    }
}

CoreTest(request, a_stream_that_is_denied_is_no_fault_of_the_block)
{
    uint32_t block = grant_kind(CW_KIND_ASYNC, 0x1000, "cuTake");

    expect_refusal(CW_FREES_ORDERED, 0x1000, CW_FREE_STREAM, CW_MISUSE_STREAM, "cuTake");
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, 0x1000), block, "it stays live");
    cr_expect_eq(core_header()->invalid_frees, 1u);
    free_key(0x1000, CW_FREE_DONE, 0);
    expect_refusal(CW_FREES_ORDERED, 0x1000, CW_FREE_STREAM, CW_MISUSE_DOUBLE, "cuTake");
    expect_refusal(CW_FREES_ORDERED, 0x5000, CW_FREE_STREAM, CW_MISUSE_STREAM, NULL);
}

CoreTest(request, a_block_that_was_freed_is_freed_twice)
{
    grant_kind(CW_KIND_DEVICE, 0x1000, "cuTake");
    free_key(0x1000, CW_FREE_DONE, 0);
    expect_refusal(CW_FREES_DEVICE, 0x1000, CW_FREE_REFUSED, CW_MISUSE_DOUBLE, "cuTake");
    cr_expect_eq(cw_site_at(event_at(events())->other_site)->api, api);
}

static void end_context(void)
{
    struct cw_context_ending ending;
    uint8_t device;

    cw_context_end_begin(cw_context_current(&device), &ending);
    cw_context_end_finish(&ending, CW_CONTEXT_DESTROYED);
    fake_context(0, HANDLE, 8, 0);
    fake_set_current(HANDLE);
}

static uint32_t grant_here(uint64_t key, const char *name)
{
    struct cw_request request = core_request(CW_KIND_DEVICE, 0, key, 64);
    uint8_t device;

    request.context = cw_context_current(&device);
    return cw_request_granted(&request, cw_site_text(name));
}

CoreTest(request, a_block_that_went_with_its_context_is_freed_after_it)
{
    grant_here(0x1000, "cuTake");
    end_context();
    expect_refusal(CW_FREES_DEVICE, 0x1000, CW_FREE_REFUSED, CW_MISUSE_CONTEXT, "cuTake");
    /* The same address again: what counts is the newest block. */
    grant_here(0x1000, "cuTakeAgain");
    free_key(0x1000, CW_FREE_DONE, 0);
    expect_refusal(CW_FREES_DEVICE, 0x1000, CW_FREE_REFUSED, CW_MISUSE_DOUBLE, "cuTakeAgain");
}

CoreTest(request, an_older_block_of_the_address_that_was_freed_rightly_is_not_blamed)
{
    grant_here(0x1000, "cuTakeBefore");
    free_key(0x1000, CW_FREE_DONE, 0);
    grant_here(0x1000, "cuTake");
    end_context();
    expect_refusal(CW_FREES_DEVICE, 0x1000, CW_FREE_REFUSED, CW_MISUSE_CONTEXT, "cuTake");
}

/* Refused because the context ended while the driver had the free. */
CoreTest(request, a_context_that_ends_during_a_free_is_why_it_is_refused)
{
    struct cw_request_free call;

    grant_here(0x1000, "cuTake");
    cw_request_free_begin(CW_SPACE_ADDRESS, 0x1000, &call);
    end_context();
    cw_request_free_end(&call, api, CW_FREE_REFUSED, 1);
    cr_expect_eq(event_at(events())->misuse, CW_MISUSE_CONTEXT);
}

CoreTest(request, mapped_memory_and_reserved_addresses_have_frees_of_their_own)
{
    struct cw_request physical = core_request(CW_KIND_VMM, 0, 3, 0x10000);
    struct cw_request range = core_request(CW_KIND_RESERVATION, 0, 0x40000, 0x40000);

    grant_kind(CW_KIND_DEVICE, 0x50000, "cuTakeBefore");
    free_key(0x50000, CW_FREE_DONE, 0);
    physical.space = CW_SPACE_HANDLE;
    range.space = CW_SPACE_RESERVATION;
    cw_vmm_insert(3, cw_request_granted(&physical, cw_site_text("cuCreate")));
    cw_request_granted(&range, cw_site_text("cuReserve"));
    cw_vmm_map(0x50000, 0x10000, 0, 3);
    expect_refusal(CW_FREES_DEVICE, 0x50000, CW_FREE_REFUSED, CW_MISUSE_FUNCTION, "cuCreate");
    expect_refusal(CW_FREES_DEVICE, 0x58000, CW_FREE_REFUSED, CW_MISUSE_FUNCTION, "cuCreate");
    expect_refusal(CW_FREES_DEVICE, 0x40000, CW_FREE_REFUSED, CW_MISUSE_FUNCTION, "cuReserve");
    expect_refusal(CW_FREES_DEVICE, 0x70000, CW_FREE_REFUSED, CW_MISUSE_FOREIGN, NULL);
}

CoreTest(request, an_arrays_handle_has_a_free_of_its_own)
{
    struct cw_request request = core_request(CW_KIND_ARRAY, 0, 0x1000, 64);

    request.space = CW_SPACE_ARRAY;
    cw_request_granted(&request, cw_site_text("cuMake"));
    expect_refusal(CW_FREES_DEVICE, 0x1000, CW_FREE_REFUSED, CW_MISUSE_FUNCTION, "cuMake");
}

CoreTest(request, a_graphs_memory_is_freed_while_it_is_none)
{
    const uint64_t address = 0x1000;
    struct cw_request request = core_request(CW_KIND_GRAPH, 0, address, 64);

    grant_kind(CW_KIND_DEVICE, address, "cuTakeBefore");
    free_key(address, CW_FREE_DONE, 0);
    cw_graph_node_added(&request, site_named("cuAddNode", CW_KIND_GRAPH));
    expect_refusal(CW_FREES_DEVICE, address, CW_FREE_REFUSED, CW_MISUSE_GRAPH, "cuAddNode");
    cw_graph_instantiated(1, &address, 1, NULL, 0);
    cw_graph_instantiated(2, NULL, 0, &address, 1);
    cw_graph_launched(1, 0);
    free_key(address, CW_FREE_DONE, 0);
    expect_refusal(CW_FREES_DEVICE, address, CW_FREE_REFUSED, CW_MISUSE_DOUBLE, "cuAddNode");
    cr_expect_neq(event_at(events())->other_site, 0u);
    cw_graph_launched(1, 0);
    cw_graph_launched(2, 0);
    expect_refusal(CW_FREES_DEVICE, address, CW_FREE_REFUSED, CW_MISUSE_DOUBLE, "cuAddNode");
    cr_expect_eq(event_at(events())->other_site, 0u, "the other graph has freed it");
}

CoreTest(request, what_lies_inside_a_block_and_what_was_never_seen_are_told_apart)
{
    grant_kind(CW_KIND_DEVICE, 0x1000, "cuTake");
    expect_refusal(CW_FREES_DEVICE, 0x1010, CW_FREE_REFUSED, CW_MISUSE_INSIDE, "cuTake");
    expect_refusal(CW_FREES_DEVICE, 0x5000, CW_FREE_REFUSED, CW_MISUSE_FOREIGN, NULL);
}

/* A reset with many blocks, which their owners free afterwards. */
CoreTest(request, what_is_no_longer_remembered_is_not_said_to_be_unseen)
{
    const uint64_t blocks = 6000;
    unsigned misuse[CW_MISUSE_COUNT] = {0};

    for (uint64_t i = 1; i <= blocks; i++)
        grant_here(i << 21, "cuTake");
    end_context();
    for (uint64_t i = 1; i <= 900; i++)
        misuse[refuse(CW_FREES_DEVICE, i << 21, CW_FREE_REFUSED)->misuse]++;
    cr_expect_eq(misuse[CW_MISUSE_FOREIGN], 0u);
    cr_expect_gt(misuse[CW_MISUSE_CONTEXT], 300u);
    cr_expect_eq(misuse[CW_MISUSE_CONTEXT] + misuse[CW_MISUSE_UNKNOWN], 900u);
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
    cw_request_fatal(api, 700); /* has room of its own */
    cr_expect_eq(event_at(events())->type, CW_EVENT_FATAL);
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

CoreTest(request, the_driver_is_asked_who_calls_and_no_more_while_the_gate_is_closed)
{
    cw_gate_close(CW_GATE_CAPTURE);
    grant(0x1000, 64);
    fail(64, OOM, 1);
    free_key(0x1000, CW_FREE_DONE, 0);
    free_key(0x1000, CW_FREE_REFUSED, 1);
    cw_device_sample(0);
    cr_expect_eq(fake_gated_calls(), fake_driver.calls[FAKE_CONTEXT_FACTS]);
    cr_expect_eq(events(), 2u);
    cr_expect_eq(event_at(1)->total_bytes, 0u);
    cw_gate_open(CW_GATE_CAPTURE);
    grant(0x2000, 64);
    cr_expect_eq(fake_driver.calls[FAKE_CONTEXT_FACTS], 1u);
    cr_expect_eq(fake_driver.calls[FAKE_DEVICE_FACTS], 1u);
}

CoreTest(request, a_sample_that_a_closed_gate_prevented_is_not_put_off)
{
    grant(0x1000, 64);
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_gate_close(CW_GATE_CAPTURE);
    cw_device_sample(0);
    cw_gate_open(CW_GATE_CAPTURE);
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
    cw_gate_close(CW_GATE_CAPTURE);
    closer_is_through = 1;
    cw_gate_open(CW_GATE_CAPTURE);
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
            cw_capture_ended(0x5000, cw_capture_find(0x5000));
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
