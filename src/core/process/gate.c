/* SPDX-License-Identifier: MIT */
/* Counts of calls in flight, one per slot, and the reasons to stay shut. See gate.h. */
#include "core/process/gate.h"

#include "base/clock.h"
#include "base/lock.h"

/* Much longer than a thread needs from cw_gate_enter_wait to the checks at the head of a driver
 * function, also if it loses the processor in between on a machine with too much to do. */
#define WAITERS_GRACE_NS 60000000
/* A call in flight takes microseconds, unless the driver itself keeps it. */
#define LET_PASS_NS 1000000

CW_HOT_DATA _Atomic uint32_t cw_gate_reasons;
_Atomic int cw_gate_captures;

enum count { CALLING, WAITING };

static int is_anybody(enum count which)
{
    for (int i = 0; i < CW_SLOTS; i++)
        if (atomic_load_explicit(which == CALLING ? &cw_slots[i].calling : &cw_slots[i].waiting,
                                 memory_order_acquire) != 0)
            return 1;
    return 0;
}

static void wait_for_waiters(void)
{
    uint64_t deadline;
    unsigned turns = 0;

    if (!is_anybody(WAITING))
        return;
    deadline = cw_clock_ns() + WAITERS_GRACE_NS;
    while (is_anybody(WAITING) && cw_clock_ns() < deadline)
        cw_lock_relax(&turns);
}

void cw_gate_shut(void)
{
    atomic_fetch_add(&cw_gate_reasons, 1);
    cw_slot_barrier();
}

void cw_gate_close(void)
{
    unsigned turns = 0;

    cw_gate_shut();
    /* A query in flight takes some microseconds: yielding the processor is enough. */
    while (is_anybody(CALLING))
        cw_lock_relax(&turns);
    wait_for_waiters();
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

void cw_gate_open(void)
{
    atomic_fetch_sub(&cw_gate_reasons, 1);
}

void cw_gate_reset(void)
{
    atomic_store(&cw_gate_reasons, 0);
    atomic_store(&cw_gate_captures, 0);
    for (int i = 0; i < CW_SLOTS; i++) {
        atomic_store(&cw_slots[i].calling, 0);
        atomic_store(&cw_slots[i].waiting, 0);
    }
}
