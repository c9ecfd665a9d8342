/* SPDX-License-Identifier: MIT */
/* Counts of calls in flight, one per slot, and the reasons to stay shut. See gate.h. */
#include "core/gate.h"

#include <time.h>

#include "base/lock.h"

/* Much longer than a thread needs from cw_gate_enter_wait to the checks at the head of a
 * driver function, unless it lost the processor in between. */
#define WAITERS_GRACE_NS 20000000

_Atomic uint32_t cw_gate_reasons;

enum count { CALLING, WAITING };

static _Atomic uint32_t *count_of(enum count which)
{
    struct cw_slot *slot = &cw_slots[cw_thread_slot()];

    return which == CALLING ? &slot->calling : &slot->waiting;
}

static void step(_Atomic uint32_t *count, uint32_t by)
{
    if (CW_UNLIKELY(count == &cw_slots[0].calling || count == &cw_slots[0].waiting))
        atomic_fetch_add(count, by); /* many threads share it */
    else
        cw_slot_publish(count, atomic_load_explicit(count, memory_order_relaxed) + by);
}

static int enter(enum count which)
{
    _Atomic uint32_t *count = count_of(which);

    step(count, 1);
    if (cw_gate_is_open())
        return 1;
    step(count, (uint32_t)-1);
    return 0;
}

static void leave(enum count which)
{
    _Atomic uint32_t *count = count_of(which);

    if (CW_UNLIKELY(count == &cw_slots[0].calling || count == &cw_slots[0].waiting))
        atomic_fetch_sub(count, 1);
    else
        atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) - 1,
                              memory_order_release);
}

int cw_gate_enter(void)
{
    return enter(CALLING);
}

void cw_gate_leave(void)
{
    leave(CALLING);
}

int cw_gate_enter_wait(void)
{
    return enter(WAITING);
}

void cw_gate_leave_wait(void)
{
    leave(WAITING);
}

static int is_anybody(enum count which)
{
    for (int i = 0; i < CW_SLOTS; i++)
        if (atomic_load_explicit(which == CALLING ? &cw_slots[i].calling : &cw_slots[i].waiting,
                                 memory_order_acquire) != 0)
            return 1;
    return 0;
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void cw_gate_shut(void)
{
    atomic_fetch_add(&cw_gate_reasons, 1);
    cw_slot_barrier();
}

void cw_gate_close(void)
{
    unsigned turns = 0;
    uint64_t deadline;

    cw_gate_shut();
    /* What is in flight is a query of some microseconds: giving up the processor is enough. */
    while (is_anybody(CALLING))
        cw_lock_relax(&turns);
    if (!is_anybody(WAITING))
        return;
    deadline = clock_ns() + WAITERS_GRACE_NS;
    while (is_anybody(WAITING) && clock_ns() < deadline)
        cw_lock_relax(&turns);
}

void cw_gate_open(void)
{
    atomic_fetch_sub(&cw_gate_reasons, 1);
}

void cw_gate_reset(void)
{
    atomic_store(&cw_gate_reasons, 0);
    for (int i = 0; i < CW_SLOTS; i++) {
        atomic_store(&cw_slots[i].calling, 0);
        atomic_store(&cw_slots[i].waiting, 0);
    }
}
