/* SPDX-License-Identifier: MIT */
/* How long a free waits for the device, and what becomes of its block when that was in vain. */
#include "core/pending/patience.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <unistd.h>

#include "core/pending/pending.h"
#include "core/process/gate.h"
#include "core/reclaim/quiet.h"
#include "core/reclaim/reclaim.h"
#include "core/limits/reclaim_due.h"
#include "pool_fixture.h"

#define SMALL (4 * KIB)
#define WAIT  (CW_PATIENCE_NS + 10 * FAKE_MS) /* others look at the clock, too */

static struct cw_pool_context *owner;

static void setup(void)
{
    pool_setup();
    owner = cw_pool_context_of(pool_index(FIRST_CONTEXT));
}

/* A kernel of the context runs until the test ends it. */
static void start_kernel(void)
{
    fake_driver.is_persistent = 1;
    fake_driver.clock_step = FAKE_MS;
    fake_submit(FIRST_CONTEXT);
}

static void setup_kernel(void)
{
    setup();
    start_kernel();
}

TestSuite(patience, .init = setup_kernel);
TestSuite(patience_with);

static unsigned events(enum cw_event_type type)
{
    unsigned count = 0;

    for (uint32_t i = 1; i <= core_count(CW_TABLE_EVENT); i++)
        count += ((const struct cw_live_event *)core_at(CW_TABLE_EVENT, i))->type == type;
    return count;
}

static void free_in_vain(uint64_t bytes)
{
    cr_expect_eq(pool_put(pool_get(bytes)), CW_POOL_DRIVER);
}

/* ---- a kernel that does not end ---- */

PoolTest(patience, the_first_free_waits_20_ms_and_goes_to_the_driver)
{
    uint64_t begun = fake_driver.now_ns;

    free_in_vain(SMALL);
    cr_expect_geq(fake_driver.now_ns - begun, CW_PATIENCE_NS);
    cr_expect_leq(fake_driver.now_ns - begun, WAIT);
    cr_expect_eq(pool_bypassed(CW_BYPASS_BUSY), 1u);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_WAIT), 0u);
    cr_expect_eq(pool_counters(0)->put_off, 0u);
}

PoolTest(patience, the_next_is_put_off_because_the_drivers_did_not_wait)
{
    uint64_t begun;
    unsigned polls;

    free_in_vain(SMALL);
    begun = fake_driver.now_ns;
    polls = fake_calls(FAKE_CONTEXT_POLL);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_POLL), polls);
    cr_expect_lt(fake_driver.now_ns - begun, CW_PATIENCE_NS * 5);
    cr_expect_eq(pool_counters(0)->put_off, 5u);
    cr_expect_eq(events(CW_EVENT_PUT_OFF), 1u);
}

PoolTest(patience, beside_a_free_in_the_driver_nothing_is_recorded)
{
    unsigned polls = fake_calls(FAKE_CONTEXT_POLL);
    uint64_t begun = fake_driver.now_ns;

    cw_pool_context_enter_driver(owner);
    free_in_vain(SMALL);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_POLL), polls);
    cr_expect_geq(fake_driver.now_ns - begun, CW_PATIENCE_NS);
    cw_pool_context_leave_driver(owner, 1);
    free_in_vain(SMALL);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_POLL), polls + 1);
}

PoolTest(patience, nor_is_its_context_quiet)
{
    unsigned recorded = fake_calls(FAKE_EVENT_RECORD);

    fake_finish(FIRST_CONTEXT);
    cw_pool_context_enter_driver(owner);
    cr_expect_not(cw_quiet_is_idle(owner));
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), recorded);
    cw_pool_context_leave_driver(owner, 1);
    cr_expect(cw_quiet_is_idle(owner));
}

static uint64_t put_begun_ns;

/* Whoever waits in vain looks at the clock, which each look moves on. */
static void await_asking(void)
{
    while (fake_driver.now_ns < put_begun_ns + 100)
        usleep(100);
}

static void *capture_soon(void *unused)
{
    await_asking();
    cw_gate_shut(CW_GATE_CAPTURE);
    return unused;
}

static void *leave_soon(void *unused)
{
    await_asking();
    fake_finish(FIRST_CONTEXT);
    cw_pool_context_leave_driver(owner, 1);
    return unused;
}

static void *come_and_go(void *unused)
{
    await_asking();
    cw_pool_context_enter_driver(owner);
    cw_pool_context_leave_driver(owner, 1);
    return unused;
}

/* A thread is in the driver's free, and another one does something while a third frees. */
static enum cw_pool_free how_free_beside(void *(*other)(void *))
{
    enum cw_pool_free how;
    pthread_t thread;
    uint64_t key = pool_get(SMALL);

    fake_driver.clock_step = 1;
    put_begun_ns = fake_driver.now_ns;
    cw_pool_context_enter_driver(owner);
    cr_assert_eq(pthread_create(&thread, NULL, other, NULL), 0);
    how = pool_put(key);
    pthread_join(thread, NULL);
    return how;
}

static void free_beside(void *(*other)(void *))
{
    cr_expect_eq(how_free_beside(other), CW_POOL_KEPT);
}

PoolTest(patience, when_that_free_has_ended_the_other_asks)
{
    free_beside(leave_soon);
    cr_expect(pool_serves(SMALL));
}

/* Frees that come back one after the other wait for nothing, though there is always one. */
PoolTest(patience, beside_frees_that_are_short_it_asks)
{
    fake_finish(FIRST_CONTEXT);
    free_beside(come_and_go);
    cw_pool_context_leave_driver(owner, 1);
}

/* Busy, and nobody has an event that would tell when that ends; the kernel has ended. */
static void be_busy_without_event(void)
{
    cw_pool_context_enter_driver(owner);
    free_in_vain(SMALL);
    fake_finish(FIRST_CONTEXT);
    cw_pool_context_leave_driver(owner, 1);
    cr_assert(cw_patience_is_over(owner));
    fake_driver.now_ns += 1000 * FAKE_MS;
}

/* Else threads that free beside each other would keep the context busy for ever. */
PoolTest(patience, beside_a_free_in_a_busy_context_it_stands_back)
{
    be_busy_without_event();
    free_beside(leave_soon);
    cr_expect_not(cw_patience_is_over(owner));
    cr_expect(pool_serves(SMALL));
}

PoolTest(patience, but_not_for_long_nor_each_time)
{
    uint64_t begun;

    be_busy_without_event();
    cw_pool_context_enter_driver(owner);
    fake_driver.clock_step = FAKE_MS / 10;
    begun = fake_driver.now_ns;
    free_in_vain(SMALL);
    cr_expect_leq(fake_driver.now_ns - begun, WAIT);
    fake_driver.now_ns += 100 * FAKE_MS;
    begun = fake_driver.now_ns;
    free_in_vain(SMALL);
    cr_expect_leq(fake_driver.now_ns - begun, FAKE_MS);
    cw_pool_context_leave_driver(owner, 1);
}

/* Nothing was recorded that could be asked about: the driver's own free waits, or does not. */
PoolTest(patience, a_capture_meanwhile_sends_a_free_without_an_event_to_the_driver)
{
    cr_expect_eq(how_free_beside(capture_soon), CW_POOL_DRIVER);
    cw_pool_context_leave_driver(owner, 1);
    cw_gate_open(CW_GATE_CAPTURE);
}

/* The driver has shown that it does not wait for small blocks. */
PoolTest(patience, a_small_free_beside_a_large_one_is_put_off)
{
    free_in_vain(SMALL);
    pool_sync(FIRST_CONTEXT);
    start_kernel();
    cw_pool_context_enter_driver(owner);
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cw_pool_context_leave_driver(owner, 1);
}

PoolTest(patience, what_is_put_off_serves_when_the_work_before_its_free_is_done)
{
    uint64_t key;

    free_in_vain(SMALL);
    key = pool_get(SMALL);
    pool_put(key);
    cr_expect_not(pool_serves(SMALL));
    fake_submit(FIRST_CONTEXT); /* after it */
    fake_context_of(FIRST_CONTEXT)->finished = 1;
    cr_expect(pool_serves(SMALL));
}

PoolTest(patience, after_a_synchronisation_of_the_program_frees_wait_again)
{
    free_in_vain(SMALL);
    pool_put(pool_get(SMALL));
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(cw_patience_busy, 0u);
    fake_driver.is_persistent = 0;
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(pool_put(pool_get(8 * KIB)), CW_POOL_KEPT);
    cr_expect(pool_serves(8 * KIB)); /* it was waited for */
}

PoolTest(patience, a_later_kernel_costs_20_ms_and_no_block)
{
    uint64_t begun;

    free_in_vain(SMALL);
    pool_sync(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    begun = fake_driver.now_ns;
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cr_expect_geq(fake_driver.now_ns - begun, CW_PATIENCE_NS);
    cr_expect_not(pool_serves(SMALL));
    cr_expect_eq(events(CW_EVENT_PUT_OFF), 1u);
}

TestSuite(patience_elsewhere, .init = setup);

/* With more pending of a size than a request would pile up (core/pending/pending.c). */
PoolTest(patience_elsewhere, work_of_another_context_alone_costs_no_wait)
{
    uint64_t begun, other = pooled_context(1, 1);

    fake_driver.is_persistent = 1;
    fake_submit(other);
    fake_driver.clock_step = FAKE_MS / 100;
    begun = fake_driver.now_ns;
    for (int i = 0; i < 30; i++)
        cr_expect_eq(pool_put(pool_get(10 * MIB)), CW_POOL_KEPT);
    cr_expect_lt(fake_driver.now_ns - begun, CW_PATIENCE_NS);
}

PoolTest(patience, a_larger_block_still_goes_to_the_driver_and_waits_no_more)
{
    uint64_t begun, key = pool_get(MIB);

    free_in_vain(SMALL);
    begun = fake_driver.now_ns;
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_lt(fake_driver.now_ns - begun, CW_PATIENCE_NS);
    cr_expect_eq(pool_put(pool_get(512 * KIB)), CW_POOL_KEPT); /* now it is known of such, too */
    cr_expect_eq(pool_bypassed(CW_BYPASS_BUSY), 2u);
}

PoolTest(patience, of_pinned_memory_it_is_learnt_apart)
{
    uint64_t pinned = pool_alloc(CW_POOL_HOST, SMALL, NULL);

    free_in_vain(SMALL);
    cr_expect_eq(pool_free(CW_POOL_HOST, pinned, NULL), CW_POOL_DRIVER);
    pinned = pool_alloc(CW_POOL_HOST, SMALL, NULL);
    cr_expect_eq(pool_free(CW_POOL_HOST, pinned, NULL), CW_POOL_KEPT);
}

PoolTest(patience, where_the_drivers_free_waits_nothing_is_put_off)
{
    fake_driver.free_waits_from = 1;
    free_in_vain(SMALL);
    cr_expect_eq(cw_patience_busy, 0u); /* that has ended the work */
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cr_expect(pool_serves(SMALL));
    fake_submit(FIRST_CONTEXT);
    free_in_vain(SMALL);
    cr_expect_eq(pool_counters(0)->put_off, 0u);
}

PoolTest(patience, with_several_contexts_the_same)
{
    fake_submit(pooled_context(1, 1));
    free_in_vain(SMALL);
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cr_expect_not(pool_serves(SMALL));
    fake_finish(FIRST_CONTEXT);
    cr_expect_not(pool_serves(SMALL));
    fake_finish(SECOND_CONTEXT);
    cr_expect(pool_serves(SMALL));
}

PoolTest(patience, what_piles_up_goes_to_the_driver)
{
    uint64_t key[10];

    for (int i = 0; i < 10; i++)
        key[i] = pool_get(16 * MIB);
    free_in_vain(16 * MIB);
    for (int i = 0; i < 10; i++)
        pool_put(key[i]);
    cr_expect_leq(cw_pending_bytes(0), 9 * 16 * MIB);
    cr_expect_gt(cw_pending_bytes(0), 0u);
    cr_expect_eq(pool_bypassed(CW_BYPASS_BUSY), 2u);
    cr_expect_eq(pool_counters(0)->put_off, 9u); /* those that were kept */
}

PoolTest(patience, a_context_that_ends_is_busy_no_more)
{
    free_in_vain(SMALL);
    pool_put(pool_get(SMALL));
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(cw_patience_busy, 0u);
}

PoolTest(patience, what_failed_long_ago_keeps_nobody_from_giving_back)
{
    fake_finish(FIRST_CONTEXT);
    cw_patience_end(owner);
    pooled_context(1, 1);
    atomic_store(&owner->record->fatal, 700u);
    cw_reclaim_due_set(0, CW_RECLAIM_COUNT);
    cw_reclaim_work();
    cr_expect_eq(cw_reclaim_due_of(0), 0u);
}

PoolTest(patience, a_context_that_is_found_busy_as_it_ends_is_busy_no_more)
{
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cw_patience_end(owner);
    cr_expect_eq(cw_patience_busy, 0u);
}

/* ---- a kernel that ends ---- */

PoolTest(patience, an_event_of_after_the_vain_wait_that_passes_ends_it)
{
    uint64_t key = pool_get(SMALL);

    free_in_vain(SMALL);
    pool_put(key);
    cw_pending_close(1);
    cr_expect_not(pool_serves(SMALL));
    cr_expect_eq(cw_patience_busy, 1u);
    fake_finish(FIRST_CONTEXT);
    cr_expect(pool_serves(SMALL));
    cr_expect_eq(cw_patience_busy, 0u);
}

/* Such an event says nothing of the kernel that came later. */
PoolTest(patience, an_event_of_before_the_vain_wait_that_passes_does_not)
{
    uint64_t key = pool_get(SMALL), later = pool_get(MIB);

    fake_finish(FIRST_CONTEXT);
    cw_thread.batches = 1; /* does not wait */
    pool_put(key);
    cw_pending_close(1);
    cw_thread.batches = 0;
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(pool_put(later), CW_POOL_DRIVER);
    cr_expect(pool_serves(SMALL));
    cr_expect_eq(cw_patience_busy, 1u);
}

static unsigned queries_left;

static void finish_later(enum fake_call call)
{
    if (call == FAKE_EVENT_QUERY && --queries_left == 0)
        fake_finish(FIRST_CONTEXT);
}

PoolTest(patience, a_kernel_of_less_than_20_ms_is_waited_for)
{
    queries_left = 10;
    fake_driver.inside = finish_later;
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cr_expect(pool_serves(SMALL));
    cr_expect_eq(cw_patience_busy, 0u);
}

/* The device always has work, and the program never synchronises: one kernel was longer than that.
 */
PoolTest(patience, after_a_free_that_waited_in_the_driver_the_next_is_waited_for_again)
{
    fake_driver.free_waits_from = 1;
    free_in_vain(SMALL);
    fake_submit(FIRST_CONTEXT);
    queries_left = 10;
    fake_driver.inside = finish_later;
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cr_expect(pool_serves(SMALL));
}

/* ---- captures, and ends of other contexts ---- */

static enum cw_gate_reason meanwhile;

/* The third question finds the gate shut, the thirteenth the work done. */
static void begin_meanwhile(enum fake_call call)
{
    if (call != FAKE_EVENT_QUERY)
        return;
    if (++queries_left == 3)
        cw_gate_shut(meanwhile);
    if (queries_left == 13)
        fake_finish(FIRST_CONTEXT);
}

static void free_while(enum cw_gate_reason reason)
{
    queries_left = 0;
    meanwhile = reason;
    fake_driver.clock_step = FAKE_MS / 10;
    fake_driver.inside = begin_meanwhile;
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_KEPT);
    cr_expect_eq(fake_calls(FAKE_EVENT_QUERY), 13u);
    cr_expect_eq(fake_capture_mode(), 0);
    cr_expect_not(pool_serves(SMALL));
    fake_driver.inside = NULL;
    cw_gate_open(reason);
    cr_expect(pool_serves(SMALL));
}

PoolTest(patience, a_free_waits_on_when_a_capture_begins)
{
    free_while(CW_GATE_CAPTURE);
}

PoolTest(patience, a_free_waits_on_when_another_context_ends)
{
    free_while(CW_GATE_END);
}

PoolTest(patience, a_free_that_waits_for_nothing_more_is_the_drivers_when_a_capture_has_begun)
{
    meanwhile = CW_GATE_CAPTURE;
    queries_left = 0;
    fake_driver.inside = begin_meanwhile;
    fake_driver.clock_step = 5 * FAKE_MS;
    free_in_vain(SMALL);
    cr_expect_lt(queries_left, 13u);
    cw_gate_open(CW_GATE_CAPTURE);
}

PoolTest(patience, who_waits_on_waits_for_as_long_as_it_takes)
{
    int code;

    queries_left = 200; /* of a millisecond */
    fake_driver.inside = finish_later;
    cr_expect_eq(cw_patience_wait_on(owner, &code), CW_PATIENCE_PASSED);
    cr_expect_eq(queries_left, 0u);
    cr_expect_eq(cw_patience_busy, 0u);
}

/* ---- idle memory ---- */

PoolTest(patience_with, in_a_busy_context_nothing_idle_is_given_back_unless_somebody_needs_it)
{
    setup();
    pool_churn(3, 100 * MIB);
    cw_reclaim_gather(0);
    core_options()->pool_bucket_max = 1;
    start_kernel();
    free_in_vain(SMALL);
    cw_reclaim_due_set(0, CW_RECLAIM_COUNT);
    cw_reclaim_work();
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 0u);
    cr_expect_not(cw_reclaim_is_calm());
    fake_finish(FIRST_CONTEXT);
    cr_expect(cw_reclaim_is_calm());
    cw_reclaim_work();
    cr_expect_eq(fake_calls(FAKE_BLOCK_FREE), 2u);
}

/* ---- without events ---- */

PoolTest(patience_with, without_events_the_pool_keeps_large_blocks_only)
{
    fake_driver.has_no_context_events = 1;
    setup();
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_DRIVER);
    cr_expect_eq(pool_put(pool_get(MIB)), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_EVENTS), 2u);
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(pool_put(pool_get(2 * MIB)), CW_POOL_KEPT);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_WAIT), 1u);
    cr_expect(pool_serves(2 * MIB));
    cr_expect_eq(pool_counters(0)->events_refused, 0u);
}

PoolTest(patience_with, a_driver_that_refuses_events_is_counted)
{
    setup();
    fake_driver.refuses_events = 1;
    cr_expect_eq(pool_put(pool_get(SMALL)), CW_POOL_DRIVER);
    cr_expect_eq(pool_put(pool_get(2 * MIB)), CW_POOL_KEPT);
    cr_expect(pool_serves(2 * MIB));
    cr_expect_eq(pool_counters(0)->events_refused, 2u);
    cr_expect_eq(pool_bypassed(CW_BYPASS_EVENTS), 1u);
}

/* Nobody would ever learn that it is idle: what lies there goes back in time. */
PoolTest(patience_with, a_context_that_cannot_be_asked_is_calm)
{
    setup();
    fake_driver.refuses_events = 1;
    cr_expect(cw_reclaim_is_calm());
}

PoolTest(patience_with, a_context_that_ended_unseen_does_not_count_as_busy_for_ever)
{
    setup();
    pooled_context(1, 0);
    fake_context_end(SECOND_CONTEXT);
    cw_reclaim_is_calm();
    cr_expect(cw_reclaim_is_calm());
}
