/* SPDX-License-Identifier: MIT */
/* Which calls of the driver what the program does leads to, and that the double that says so stops
 * whoever breaks the contract. */
#include "core/process/driver_ops.h"

#include <criterion/criterion.h>
#include <signal.h>

#include "core/process/gate.h"
#include "core/reclaim/reclaim.h"
#include "fake_trace.h"
#include "pool_fixture.h"

#define MIB ((uint64_t)1 << 20)

TestSuite(driver_ops);

/* ---- what is asked of the driver ---- */

Test(driver_ops, a_hit_asks_nothing_and_a_strict_free_waits)
{
    unsigned begun;
    uint64_t key;

    pool_start(CW_FREE_STRICT);
    pool_put(pool_get(MIB));
    begun = fake_trace_count();
    key = pool_get(MIB);
    cr_expect_str_eq(fake_trace_since(begun), "");
    pool_put(key);
    cr_expect_str_eq(fake_trace_since(begun), "context_poll");
}

Test(driver_ops, a_deferred_free_records_an_event_when_its_batch_is_closed)
{
    unsigned begun;

    pool_start(CW_FREE_DEFERRED);
    fake_submit(fake_driver.context[0].handle);
    pool_put(pool_get(MIB));
    begun = fake_trace_count();
    cw_reclaim_harvest(0);
    cr_expect_str_eq(fake_trace_since(begun), "event_create event_record event_query");
}

Test(driver_ops, what_is_given_back_is_named_by_handle_and_id)
{
    struct fake_traced call;
    unsigned begun;
    uint64_t key;

    pool_start(CW_FREE_STRICT);
    key = pool_get(MIB);
    pool_put(key);
    begun = fake_trace_count();
    cr_expect_eq(pool_reclaim_all(0), MIB);
    cr_assert_str_eq(fake_trace_since(begun), "block_free");
    call = fake_trace_at(fake_trace_count() - 1);
    cr_expect_eq(call.op, OP_BLOCK_FREE);
    cr_expect_eq(call.subject, key);
    cr_expect_eq(call.context.handle, fake_driver.context[0].handle);
    cr_expect_eq(call.context.id, fake_driver.context[0].id);
}

/* ---- who breaks the contract ---- */

static struct cw_context_name here(void)
{
    return (struct cw_context_name){.handle = fake_driver.context[0].handle,
                                    .id = fake_driver.context[0].id};
}

Test(driver_ops, outside_of_the_gate_nothing_is_asked, .signal = SIGABRT)
{
    unsigned count;

    pool_start(CW_FREE_STRICT);
    fake_driver_ops.device_count(&count);
}

Test(driver_ops, a_wait_needs_the_gate_of_waits, .signal = SIGABRT)
{
    pool_start(CW_FREE_STRICT);
    cw_gate_enter();
    fake_driver_ops.context_wait(here());
}

Test(driver_ops, with_the_gate_closed_nothing_is_asked, .signal = SIGABRT)
{
    unsigned count;

    pool_start(CW_FREE_STRICT);
    cw_gate_enter();
    cw_gate_shut(CW_GATE_CAPTURE);
    fake_driver_ops.device_count(&count);
}

Test(driver_ops, an_event_that_was_never_recorded_is_not_asked_about, .signal = SIGABRT)
{
    uint64_t event;

    pool_start(CW_FREE_DEFERRED);
    cw_gate_enter();
    cr_assert_eq(fake_driver_ops.event_create(here(), &event), 0);
    fake_driver_ops.event_query(here(), event);
}

Test(driver_ops, nothing_is_not_freed, .signal = SIGABRT)
{
    pool_start(CW_FREE_STRICT);
    cw_gate_enter_wait();
    fake_driver_ops.block_free(here(), CW_KIND_DEVICE, 0);
}

Test(driver_ops, facts_are_those_of_the_current_context, .signal = SIGABRT)
{
    struct cw_context_facts facts;

    pool_start(CW_FREE_STRICT);
    cw_gate_enter();
    fake_driver_ops.context_facts(here().handle + 1, &facts);
}
