/* SPDX-License-Identifier: MIT */
/* Counts of calls in flight, one per slot, and the reasons to stay shut. See gate.h. */
#include "core/process/gate.h"

#include "base/clock.h"
#include "base/lock.h"
#include "core/process/session.h"

/* Much longer than a thread needs from cw_gate_enter_wait to the checks at the head of a driver
 * function, also if it loses the processor in between on a machine with too much to do. */
#define WAITERS_GRACE_NS 60000000
/* A call in flight takes microseconds, unless the driver itself keeps it. */
#define LET_PASS_NS 1000000

CW_HOT_DATA _Atomic uint32_t cw_gate_reasons;
_Atomic int cw_gate_captures, cw_gate_global_captures;

enum count { CALLING, WAITING };

static _Atomic uint32_t *count_at(int slot, enum count which)
{
    return which == CALLING ? &cw_slots[slot].calling : &cw_slots[slot].waiting;
}

/* Who enters later sees the reason, or what it looks at inside: each slot need be seen empty only
 * once. A query in flight takes some microseconds: yielding the processor is enough. */
static void wait_for(enum count which, uint64_t within_ns)
{
    uint64_t deadline = 0;
    unsigned turns = 0;

    for (int i = 0; i < CW_SLOTS; i++)
        while (atomic_load_explicit(count_at(i, which), memory_order_acquire) != 0) {
            if (within_ns != 0 && deadline == 0)
                deadline = cw_clock_ns() + within_ns;
            if (within_ns != 0 && cw_clock_ns() >= deadline)
                return;
            cw_lock_relax(&turns);
        }
}

void cw_gate_shut(enum cw_gate_reason reason)
{
    atomic_fetch_add(&cw_gate_reasons, (uint32_t)reason);
    cw_slot_barrier();
}

void cw_gate_shut_down(void)
{
    atomic_fetch_or(&cw_gate_reasons, CW_GATE_OVER);
    cw_slot_barrier();
}

void cw_gate_settle(void)
{
    cw_slot_barrier();
    wait_for(CALLING, 0);
    wait_for(WAITING, WAITERS_GRACE_NS);
}

void cw_gate_close(enum cw_gate_reason reason)
{
    atomic_fetch_add(&cw_gate_reasons, (uint32_t)reason);
    cw_gate_settle();
}

/* ---- what is owed ---- */

enum { REFUSED, PASSED, RELAXED }; /* RELAXED + the mode before */

#define MODE_RELAXED 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */

unsigned cw_gate_relax(void)
{
    int before;

    if ((atomic_load(&cw_gate_reasons) & CW_GATE_CAPTURES) == 0)
        return PASSED;
    before = cw_session.ops->exchange_capture_mode(MODE_RELAXED);
    return before < 0 ? REFUSED : RELAXED + (unsigned)before;
}

/* The mode is the program's: a call that has not put it back is made again. */
void cw_gate_unrelax(unsigned relaxed)
{
    int mode = (int)(relaxed - RELAXED);

    if (relaxed >= RELAXED && cw_session.ops->exchange_capture_mode(mode) < 0)
        cw_session.ops->exchange_capture_mode(mode);
}

static unsigned enter_beside(enum count which, uint32_t kinds)
{
    unsigned slot = cw_thread_slot(), passed = REFUSED;

    cw_gate_count_up(count_at((int)slot, which), slot == 0);
    if ((atomic_load(&cw_gate_reasons) & ~kinds) == 0)
        passed = cw_gate_relax();
    if (passed == REFUSED)
        cw_gate_count_down(count_at((int)slot, which), slot == 0);
    return passed;
}

static void leave_beside(enum count which, unsigned passed)
{
    unsigned slot = cw_thread_slot();

    cw_gate_unrelax(passed);
    cw_gate_count_down(count_at((int)slot, which), slot == 0);
}

unsigned cw_gate_enter_beside(uint32_t kinds)
{
    return enter_beside(CALLING, kinds);
}

void cw_gate_leave_beside(unsigned passed)
{
    leave_beside(CALLING, passed);
}

unsigned cw_gate_enter_wait_beside(uint32_t kinds)
{
    return enter_beside(WAITING, kinds);
}

void cw_gate_leave_wait_beside(unsigned passed)
{
    leave_beside(WAITING, passed);
}

/* Who enters after the barrier sees what the caller wrote, so each slot need be seen empty only
 * once. */
void cw_gate_let_pass(void)
{
    uint64_t own = UINT64_C(1) << cw_thread_slot(), deadline = 0;
    unsigned turns = 0;

    if ((cw_slot_used() & ~own) == 0)
        return;
    cw_slot_barrier();
    for (int i = 0; i < CW_SLOTS; i++)
        while (atomic_load_explicit(&cw_slots[i].calling, memory_order_acquire) != 0) {
            if (deadline == 0)
                deadline = cw_clock_ns() + LET_PASS_NS;
            if (cw_clock_ns() >= deadline)
                return;
            cw_lock_relax(&turns);
        }
}

void cw_gate_thread_ends(void)
{
    if (cw_thread.slot == 0) /* that of many */
        return;
    atomic_store(&cw_slots[cw_thread.slot].calling, 0);
    atomic_store(&cw_slots[cw_thread.slot].waiting, 0);
}

void cw_gate_open(enum cw_gate_reason reason)
{
    atomic_fetch_sub(&cw_gate_reasons, (uint32_t)reason);
}

void cw_gate_reset(void)
{
    atomic_store(&cw_gate_reasons, 0);
    atomic_store(&cw_gate_captures, 0);
    atomic_store(&cw_gate_global_captures, 0);
    for (int i = 0; i < CW_SLOTS; i++) {
        atomic_store(&cw_slots[i].calling, 0);
        atomic_store(&cw_slots[i].waiting, 0);
    }
}
