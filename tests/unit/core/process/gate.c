/* SPDX-License-Identifier: MIT */
/* The gate: it nests, it never makes a caller wait, and closing it waits for calls in flight. */
#include "core/process/gate.h"

#include <criterion/criterion.h>

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/process/host.h"
#include "fake_driver.h"

Test(gate, lets_any_number_in_while_it_is_open)
{
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(cw_gate_enter(), 1);
    for (int i = 0; i < 1000; i++)
        cw_gate_leave();
    cw_gate_close(CW_GATE_CAPTURE);
    cr_expect_eq(cw_gate_enter(), 0);
}

Test(gate, opens_when_the_last_reason_to_stay_shut_is_gone)
{
    cw_gate_close(CW_GATE_CAPTURE);
    cw_gate_close(CW_GATE_CAPTURE);
    cr_expect_eq(cw_gate_enter(), 0);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(cw_gate_enter(), 0);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_assert_eq(cw_gate_enter(), 1);
    cw_gate_leave();
}

Test(gate, a_refused_caller_leaves_no_trace)
{
    cw_gate_close(CW_GATE_CAPTURE);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(cw_gate_enter(), 0);
    cw_gate_open(CW_GATE_CAPTURE);
    cw_gate_close(CW_GATE_CAPTURE); /* would wait for ever for callers that are not inside */
    cw_gate_open(CW_GATE_CAPTURE);
}

Test(gate, a_reset_opens_it_and_forgets_who_is_inside)
{
    cw_gate_enter();
    cw_gate_reset();
    cw_gate_close(CW_GATE_CAPTURE);
    cw_gate_close(CW_GATE_CAPTURE);
    cw_gate_reset();
    cr_expect_eq(cw_gate_enter(), 1);
}

/* ---- what is owed ---- */

Test(gate, what_is_owed_passes_beside_reasons_of_its_kinds, .init = core_arm)
{
    unsigned passed;

    cr_expect_neq(passed = cw_gate_enter_beside(0), 0u);
    cw_gate_leave_beside(passed);
    cw_gate_close(CW_GATE_END);
    cr_expect_eq(cw_gate_enter_beside(CW_GATE_CAPTURES | CW_GATE_POOLS), 0u);
    cr_expect_neq(passed = cw_gate_enter_beside(CW_GATE_ENDS), 0u);
    cw_gate_leave_beside(passed);
    cw_gate_close(CW_GATE_POOL);
    cr_expect_eq(cw_gate_enter_wait_beside(CW_GATE_ENDS), 0u);
    cr_expect_neq(passed = cw_gate_enter_wait_beside(CW_GATE_ENDS | CW_GATE_POOLS), 0u);
    cw_gate_leave_wait_beside(passed);
    cw_gate_open(CW_GATE_END);
    cw_gate_open(CW_GATE_POOL);
    cr_expect(cw_gate_is_open());
}

Test(gate, beside_a_capture_the_thread_is_relaxed_until_it_leaves, .init = core_arm)
{
    unsigned passed = cw_gate_enter_beside(CW_GATE_CAPTURES), inner;

    cr_expect_eq(fake_capture_mode(), 0);
    cw_gate_leave_beside(passed);
    cw_gate_close(CW_GATE_CAPTURE);
    passed = cw_gate_enter_beside(CW_GATE_CAPTURES);
    inner = cw_gate_enter_wait_beside(CW_GATE_CAPTURES);
    cr_expect_eq(fake_capture_mode(), FAKE_RELAXED);
    cw_gate_leave_wait_beside(inner);
    cr_expect_eq(fake_capture_mode(), FAKE_RELAXED);
    cw_gate_leave_beside(passed);
    cr_expect_eq(fake_capture_mode(), 0);
}

Test(gate, nothing_passes_once_it_is_shut_down, .init = core_arm)
{
    cr_expect_not(cw_gate_is_over());
    cw_gate_shut_down();
    cr_expect(cw_gate_is_over());
    cr_expect_eq(cw_gate_enter_beside(CW_GATE_ALL), 0u);
    cw_gate_reset();
    cr_expect(cw_gate_is_open());
}

static void end_inside(unsigned id)
{
    (void)id;
    cw_gate_enter();
    cw_gate_enter_wait();
    cw_gate_thread_ends();
}

Test(gate, nobody_waits_for_a_thread_that_was_ended_inside)
{
    run_threads(1, end_inside);
    cw_gate_close(CW_GATE_CAPTURE);
    cw_gate_open(CW_GATE_CAPTURE);
}

static _Atomic int entered, left, closed, saw_closed_while_inside;

static void stay_or_close(unsigned id)
{
    if (id == 0) {
        cr_assert_eq(cw_gate_enter(), 1); /* the count is the thread's own */
        entered = 1;
        while (cw_gate_enter()) { /* until the other has begun to close */
            cw_gate_leave();
            sched_yield();
        }
        usleep(20000);
        saw_closed_while_inside = closed;
        left = 1;
        cw_gate_leave();
    } else {
        while (!entered)
            sched_yield();
        cw_gate_close(CW_GATE_CAPTURE);
        closed = 1;
    }
}

Test(gate, closing_waits_for_the_calls_in_flight)
{
    run_threads(2, stay_or_close);
    cr_expect_eq(saw_closed_while_inside, 0);
    cr_expect_eq(closed, 1);
    cr_expect_eq(left, 1);
}

static _Atomic int waiting, wait_over;

static void wait_or_close(unsigned id)
{
    if (id == 0) {
        cr_assert_eq(cw_gate_enter_wait(), 1);
        waiting = 1;
        while (!wait_over)
            sched_yield();
        cw_gate_leave_wait();
        return;
    }
    while (!waiting)
        sched_yield();
    cw_gate_close(CW_GATE_CAPTURE);
    cr_expect_eq(cw_gate_enter_wait(), 0);
    cr_expect_eq(cw_gate_enter(), 0);
    wait_over = 1;
    cw_gate_open(CW_GATE_CAPTURE);
}

Test(gate, closing_does_not_wait_for_ever_for_a_call_that_waits_for_the_device)
{
    run_threads(2, wait_or_close);
    cr_expect_eq(cw_gate_enter(), 1);
}

Test(gate, closing_waits_for_calls_of_threads_that_share_a_slot)
{
    cw_host_set(NULL);
    run_threads(2, stay_or_close);
    cr_expect_eq(saw_closed_while_inside, 0);
    cr_expect_eq(closed, 1);
}

#define ROUNDS 20000

static _Atomic int inside, shut, met;

static void race(unsigned id)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (id < 2) {
            cw_gate_close(CW_GATE_CAPTURE);
            shut++;
            if (inside != 0)
                met++;
            shut--;
            cw_gate_open(CW_GATE_CAPTURE);
        } else if (cw_gate_enter()) {
            inside++;
            if (shut != 0)
                met++;
            inside--;
            cw_gate_leave();
        }
    }
}

Test(gate, nobody_is_inside_while_it_is_closed)
{
    run_threads(4, race);
    cr_expect_eq(met, 0);
    cr_expect_eq(cw_gate_enter(), 1);
}
