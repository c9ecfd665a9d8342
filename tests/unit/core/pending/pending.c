/* SPDX-License-Identifier: MIT */
/* Freed blocks wait for the device, in the lanes of threads and in lists of batches for all. */
#include "core/pending/pending.h"

#include <criterion/criterion.h>

#include <sched.h>

#include "base/compiler.h"
#include "core/control/lifecycle.h"
#include "core/pending/lane.h"
#include "core/pending/waiting.h"
#include "core/process/gate.h"
#include "core/account/tracker.h"
#include "pool_fixture.h"

#define PROBE (4 * KIB)

static struct cw_pool_context *owner;

static void setup(void)
{
    pool_start(CW_FREE_DEFERRED);
    owner = cw_pool_context_of(pool_index(FIRST_CONTEXT));
}

TestSuite(pending, .init = setup);

static int serves(void)
{
    return pool_serves(PROBE);
}

/* It serves when the work of the context is done, and not before. */
static void expect_ready_after(uint64_t handle)
{
    cr_expect_eq(serves(), 0);
    fake_finish(handle);
    cr_expect_eq(serves(), 1);
}

/* As the program's waits do. */
static uint32_t harvest(unsigned queries)
{
    return cw_pending_harvest(owner, queries, UINT32_MAX, 1);
}

/* So many blocks of a size freed by this thread, and all of them ready. */
static void churn(unsigned count, uint64_t bytes)
{
    pool_churn(count, bytes);
    pool_sync(FIRST_CONTEXT);
}

/* ---- one context ---- */

PoolTest(pending, a_deferred_free_does_not_wait)
{
    pool_free_with_work(PROBE);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_WAIT), 0u);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 0u);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
    cr_expect_eq(core_live(0), 0u);
    cr_expect_eq(core_held(0), PROBE);
}

PoolTest(pending, pinned_memory_is_counted_apart)
{
    uint64_t key = pool_alloc(CW_POOL_HOST, PROBE, NULL);

    fake_submit(FIRST_CONTEXT);
    cr_assert_eq(pool_free(CW_POOL_HOST, key, NULL), CW_POOL_KEPT);
    cr_expect_eq(cw_pending_bytes(CW_DEVICE_HOST), PROBE);
    cr_expect_eq(cw_pending_bytes(0), 0u);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(cw_pending_bytes(CW_DEVICE_HOST), 0u);
}

PoolTest(pending, a_block_waits_for_the_work_before_its_free)
{
    pool_free_with_work(PROBE);
    cr_expect_eq(serves(), 0);
    expect_ready_after(FIRST_CONTEXT);
    cr_expect_eq(pool_counters(0)->harvested_by_event, 1u);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 1u);
}

PoolTest(pending, work_after_the_event_does_not_matter)
{
    pool_free_with_work(PROBE);
    cr_expect_eq(serves(), 0); /* the event is recorded */
    fake_finish(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, a_synchronisation_that_began_after_the_free_makes_it_ready)
{
    pool_free_with_work(PROBE);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(pool_counters(0)->harvested_by_sync, 1u);
    cr_expect_eq(serves(), 1);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 0u);
}

PoolTest(pending, one_that_began_before_does_not)
{
    uint64_t second = pool_get(PROBE), first = pool_free_with_work(PROBE), ticket, key = 0;

    ticket = cw_pool_sync_begin();
    cr_assert_neq(ticket, 0u);
    fake_finish(FIRST_CONTEXT);
    cw_pending_close(1); /* the first is in a batch of its own */
    fake_submit(FIRST_CONTEXT);
    cr_assert_eq(pool_put(second), CW_POOL_KEPT);
    cw_pool_sync_end(owner->context, ticket);
    cr_expect_eq(pool_hits(CW_POOL_DEVICE, PROBE, &key), 1);
    cr_expect_eq(key, first);
    expect_ready_after(FIRST_CONTEXT);
}

PoolTest(pending, one_that_failed_does_not)
{
    pool_free_with_work(PROBE);
    cw_pool_sync_begin(); /* and no end */
    cr_expect_eq(serves(), 0);
}

PoolTest(pending, an_older_synchronisation_that_ends_late_takes_nothing_back)
{
    uint64_t first, second;

    pool_free_with_work(PROBE);
    first = cw_pool_sync_begin();
    second = cw_pool_sync_begin();
    fake_finish(FIRST_CONTEXT);
    cw_pool_sync_end(owner->context, second);
    cw_pool_sync_end(owner->context, first);
    cr_expect_eq(owner->synced, second);
}

PoolTest(pending, without_anything_pending_a_synchronisation_costs_no_ticket)
{
    cr_expect_eq(cw_pool_sync_begin(), 0u);
}

/* ---- lanes ---- */

PoolTest(pending, a_thread_keeps_its_newest_batches_and_the_older_ones_are_for_all)
{
    uint64_t key[5];

    for (int i = 0; i < 5; i++)
        key[i] = pool_get(PROBE);
    for (int i = 0; i < 5; i++) {
        fake_submit(FIRST_CONTEXT);
        pool_put(key[i]); /* a batch of its own, as the first ones are */
    }
    cr_expect_eq(cw_pending_bytes(0), 5 * PROBE);
    cr_expect_eq(cw_bucket_listed(0), 2 * PROBE); /* one is open, two are closed */
    cw_pending_collect(owner);
    cr_expect_eq(cw_bucket_listed(0), 5 * PROBE);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(harvest(UINT32_MAX), 5u);
    cr_expect_eq(cw_pending_bytes(0), 0u);
}

static _Atomic int freed, seen;

static void free_or_take(unsigned id)
{
    fake_set_current(FIRST_CONTEXT);
    if (id == 0) {
        uint64_t key[5];

        for (int i = 0; i < 5; i++)
            key[i] = pool_get(PROBE);
        for (int i = 0; i < 5; i++)
            pool_put(key[i]);
        fake_finish(FIRST_CONTEXT);
        freed = 1;
        while (seen == 0)
            sched_yield();
        return;
    }
    while (freed == 0)
        sched_yield();
    for (int i = 0; i < 2; i++)
        cr_expect_eq(serves(), 1);
    seen = 1;
}

PoolTest(pending, other_threads_are_served_from_the_list)
{
    run_threads(2, free_or_take);
}

/* What is freed into a batch later is not covered by what was known of it before. */
PoolTest(pending, a_batch_is_as_young_as_its_youngest_block)
{
    uint64_t key[2], ticket;

    churn(1000, 512);
    key[0] = pool_get(PROBE);
    key[1] = pool_get(PROBE);
    pool_put(key[0]);
    ticket = cw_pool_sync_begin();
    fake_finish(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    pool_put(key[1]);
    cw_pool_sync_end(owner->context, ticket);
    cr_expect_eq(serves(), 0);
    fake_finish(FIRST_CONTEXT);
    cw_pending_close(1);
    cr_expect_eq(serves(), 1);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, events_are_used_again)
{
    for (int i = 0; i < 10; i++) {
        pool_free_with_work(PROBE);
        cr_expect_eq(serves(), 0);
        fake_finish(FIRST_CONTEXT);
        cr_expect_eq(serves(), 1);
    }
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 10u);
    cr_expect_eq(fake_calls(FAKE_EVENT_CREATE), 1u);
    cr_expect_eq(pool_counters(0)->event_records, 10u);
    cr_expect_eq(pool_counters(0)->event_queries, fake_calls(FAKE_EVENT_QUERY));
}

static uint32_t seen_while_recording = 99;

static void harvest_inside(enum fake_call call)
{
    if (call == FAKE_EVENT_RECORD)
        seen_while_recording = harvest(UINT32_MAX);
}

PoolTest(pending, no_other_thread_sees_a_batch_before_its_event_is_recorded)
{
    pool_free_with_work(PROBE);
    fake_driver.inside = harvest_inside;
    cw_pending_close(1);
    cr_expect_eq(seen_while_recording, 0u);
    cr_expect_eq(fake_calls(FAKE_EVENT_QUERY), 0u);
    cr_expect_eq(harvest(UINT32_MAX), 0u);
    cr_expect_eq(fake_calls(FAKE_EVENT_QUERY), 1u);
}

PoolTest(pending, a_batch_that_was_closed_in_a_capture_is_recorded_before_it_is_asked_about)
{
    pool_free_with_work(PROBE);
    cw_gate_close(CW_GATE_CAPTURE);
    cw_pending_close(1);
    cr_expect_eq(harvest(UINT32_MAX), 0u);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 0u);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(harvest(UINT32_MAX), 0u);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 1u);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(harvest(UINT32_MAX), 1u);
}

PoolTest(pending, so_is_one_that_was_closed_beside_a_free_in_the_driver)
{
    pool_free_with_work(PROBE);
    cw_pool_context_enter_driver(owner);
    cw_pending_close(1);
    cr_expect_eq(harvest(UINT32_MAX), 0u);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 0u);
    cw_pool_context_leave_driver(owner, 1);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(harvest(UINT32_MAX), 1u);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 1u);
}

static void free_in_thread(unsigned id)
{
    (void)id;
    fake_set_current(FIRST_CONTEXT);
    pool_free_with_work(PROBE);
}

PoolTest(pending, the_open_batch_of_a_thread_that_ended_is_recorded_before_it_is_asked_about)
{
    run_threads(1, free_in_thread);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 0u);
    cr_expect_eq(serves(), 0);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 1u);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, frees_of_a_thread_without_a_slot_are_batches_of_their_own)
{
    cw_lifecycle_thread_ends();
    pool_free_with_work(PROBE);
    pool_free_with_work(PROBE);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 2u);
    expect_ready_after(FIRST_CONTEXT);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, at_most_so_many_batches_are_asked_about)
{
    unsigned before;

    for (int i = 0; i < 5; i++) {
        pool_free_with_work(PROBE);
        cw_pending_close(1);
    }
    before = fake_calls(FAKE_EVENT_QUERY);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(harvest(2), 2u);
    cr_expect_eq(fake_calls(FAKE_EVENT_QUERY), before + 2);
    cr_expect_eq(harvest(0), 0u);
    cr_expect_eq(cw_pending_harvest(owner, UINT32_MAX, 1, 1), 1u); /* as many as are wanted */
    cr_expect_eq(harvest(UINT32_MAX), 2u);
    cr_expect_eq(cw_batch_is_any(), 0);
}

/* ---- events that cannot be had ---- */

PoolTest(pending, without_an_event_or_when_one_fails_the_driver_frees)
{
    static const enum fake_call failing[] = {FAKE_EVENT_CREATE, FAKE_EVENT_RECORD,
                                             FAKE_EVENT_QUERY};

    for (unsigned i = 0; i < CW_ARRAY_LEN(failing); i++) {
        uint64_t key = pool_free_with_work(PROBE);

        fake_driver.fails[failing[i]] = 1;
        cr_expect_eq(serves(), 0, "%u", i); /* an allocation gives nothing back */
        cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), i, "%u", i);
        cw_pending_close(1);
        harvest(UINT32_MAX);
        cr_expect_eq(fake_give(key), -1, "%u", i); /* the driver has it */
        cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), i + 1, "%u", i);
        cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u, "%u", i);
        cr_expect_eq(pool_counters(0)->released[CW_RELEASE_FULL].blocks, i + 1, "%u", i);
        fake_driver.fails[failing[i]] = 0;
    }
}

Test(pending_without_events, a_driver_without_context_events_makes_frees_strict)
{
    fake_driver.has_no_context_events = 1;
    pool_start(CW_FREE_DEFERRED);
    cr_expect_eq(core_header()->free_sync, CW_FREE_STRICT);
    pool_put(pool_get(2 * MIB));
    cr_expect_eq(fake_calls(FAKE_CONTEXT_WAIT), 1u);
    cr_expect_eq(pool_serves(2 * MIB), 1);
    cr_expect_eq(fake_calls(FAKE_EVENT_CREATE), 0u);
}

/* ---- several contexts ---- */

PoolTest(pending, every_context_has_to_pass)
{
    pooled_context(1, 1);
    fake_submit(SECOND_CONTEXT);
    pool_free_with_work(PROBE);
    cr_expect_eq(serves(), 0);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 2u);
    fake_finish(FIRST_CONTEXT);
    expect_ready_after(SECOND_CONTEXT);
}

PoolTest(pending, a_synchronisation_of_one_context_leaves_the_others_to_events)
{
    pooled_context(1, 1);
    fake_submit(SECOND_CONTEXT);
    pool_free_with_work(PROBE);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(serves(), 0);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), 1u);
    fake_finish(SECOND_CONTEXT);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, synchronisations_of_all_contexts_make_it_ready)
{
    pooled_context(1, 1);
    pool_free_with_work(PROBE);
    pool_sync(SECOND_CONTEXT);
    cr_expect_eq(serves(), 0);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, a_context_that_ended_has_no_work_left)
{
    uint64_t second = pooled_context(1, 1);

    fake_submit(second);
    pool_free_with_work(PROBE);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(serves(), 0); /* recorded in both */
    pool_end_context(second, CW_CONTEXT_DESTROYED);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, a_context_that_came_later_need_not_pass)
{
    pool_free_with_work(PROBE);
    cr_expect_eq(serves(), 0);
    fake_submit(pooled_context(1, 1));
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(serves(), 1);
}

PoolTest(pending, a_context_that_failed_sends_the_block_to_the_driver)
{
    uint64_t key;

    pooled_context(1, 1);
    key = pool_free_with_work(PROBE);
    fake_driver.fails[FAKE_EVENT_CREATE] = 1;
    cr_expect_eq(serves(), 0);
    harvest(UINT32_MAX);
    cr_expect_eq(fake_give(key), -1);
}

/* ---- the end of the block's own context ---- */

static void leave_everywhere(void)
{
    pool_free_with_work(PROBE);
    cw_pending_close(1);            /* in the list, recorded */
    run_threads(1, free_in_thread); /* in the list, not recorded */
    pool_free_with_work(PROBE);     /* open */
}

PoolTest(pending, what_comes_while_the_context_closes_is_in_no_list)
{
    struct cw_batch *batch;

    pool_free_with_work(PROBE);
    batch = cw_lane_detach_open(owner, 0);
    cw_lane_unhold(batch);
    cw_pool_context_close(owner);
    cw_waiting_push(batch, 0);
    cr_expect(cw_pending_bytes(0) == 0 && owner->listed[0] == 0);
    cw_waiting_add(owner, cw_pool_context_reopen(owner));
    cr_expect(cw_pending_bytes(0) == PROBE && owner->listed[0] == PROBE);
}

PoolTest(pending, nothing_waits_for_a_destroyed_context)
{
    leave_everywhere();
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
    cr_expect_eq(cw_batch_is_any(), 0);
}

PoolTest(pending, all_waits_on_in_a_context_that_was_kept)
{
    leave_everywhere();
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_KEPT);
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 3u);
    cr_expect_eq(serves(), 0);
    fake_finish(FIRST_CONTEXT);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(serves(), 1);
    cr_expect_eq(serves(), 0);
}

static uint64_t waited_at_end(void)
{
    struct cw_context_ending end;

    cw_context_end_begin(owner->context, &end);
    cw_context_end_finish(&end, CW_CONTEXT_KEPT);
    return end.parked;
}

PoolTest(pending, what_its_own_work_may_use_is_waited_for_before_the_end)
{
    leave_everywhere();
    cr_expect_eq(waited_at_end(), 0u);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_POLL), 1u);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0u);
    cr_expect(fake_is_finished(0, fake_driver.context[0].generation, 2));
}

PoolTest(pending, what_the_work_of_others_may_use_goes_to_the_drivers_free_before_the_end)
{
    pooled_context(1, 1);
    leave_everywhere();
    fake_submit(SECOND_CONTEXT);
    cr_expect_eq(waited_at_end(), 0u);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 3u);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
}

PoolTest(pending, what_others_have_passed_ends_with_its_context)
{
    pooled_context(1, 1);
    leave_everywhere();
    pool_sync(SECOND_CONTEXT);
    cr_expect_eq(waited_at_end(), 0u);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0u);
}

/* What keeps the gate shut concerns other contexts. */
static void ends_while(enum cw_gate_reason reason)
{
    pooled_context(1, 1);
    leave_everywhere();
    cw_gate_close(reason);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 3u);
    cr_expect_eq(fake_capture_mode(), 0);
    cr_expect_eq(pool_counters(0)->abandoned, 0u);
    cw_gate_open(reason);
}

PoolTest(pending, it_goes_to_the_drivers_free_while_something_captures)
{
    ends_while(CW_GATE_CAPTURE);
}

PoolTest(pending, it_goes_to_the_drivers_free_while_another_context_ends)
{
    ends_while(CW_GATE_END);
}

PoolTest(pending, once_nobody_may_be_asked_it_is_counted_and_said)
{
    unsigned before;

    pooled_context(1, 1);
    leave_everywhere();
    cw_gate_shut_down();
    before = fake_gated_calls();
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(fake_gated_calls(), before);
    cr_expect_eq(pool_counters(0)->abandoned, 3u);
}

static void begin_capture(enum fake_call call)
{
    if (call != FAKE_BLOCK_FREE)
        return;
    fake_driver.inside = NULL;
    cw_gate_shut(CW_GATE_CAPTURE);
}

PoolTest(pending, when_a_capture_begins_meanwhile_the_rest_goes_too)
{
    struct cw_context_ending end;
    uint64_t key[CW_BATCH_MOST_BLOCKS];

    churn(8 * CW_BATCH_MOST_BLOCKS, PROBE); /* from then on a batch is full with that many */
    pooled_context(1, 1);
    for (unsigned i = 0; i < CW_BATCH_MOST_BLOCKS; i++)
        key[i] = pool_get(PROBE);
    fake_submit(SECOND_CONTEXT);
    for (unsigned i = 0; i < CW_BATCH_MOST_BLOCKS; i++)
        pool_put(key[i]);
    fake_driver.inside = begin_capture;
    cw_context_end_begin(owner->context, &end);
    cr_expect_eq(end.parked, 0u);
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), CW_BATCH_MOST_BLOCKS);
    cw_context_end_finish(&end, CW_CONTEXT_KEPT);
    cw_gate_open(CW_GATE_CAPTURE);
}

PoolTest(pending, a_free_while_the_context_closes_goes_to_the_driver)
{
    uint64_t key = pool_get(PROBE);
    struct cw_context_ending end;

    cw_context_end_begin(owner->context, &end);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cw_context_end_finish(&end, CW_CONTEXT_KEPT);
    cr_expect_eq(pool_bypassed(CW_BYPASS_CAPTURE), 1u);
}
