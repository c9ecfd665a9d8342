/* SPDX-License-Identifier: MIT */
/* One atomic word: calls in flight below, reasons to stay shut above. See gate.h. */
#include "core/gate.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#define ONE_SHUT ((uint64_t)1 << 32)

static _Atomic uint64_t gate;

int cw_gate_enter(void)
{
    uint64_t seen = atomic_load_explicit(&gate, memory_order_relaxed);

    while (seen < ONE_SHUT)
        if (atomic_compare_exchange_weak(&gate, &seen, seen + 1))
            return 1;
    return 0;
}

void cw_gate_leave(void)
{
    atomic_fetch_sub(&gate, 1);
}

void cw_gate_close(void)
{
    atomic_fetch_add(&gate, ONE_SHUT);
    /* What is in flight is a query of some microseconds: giving up the processor is enough. */
    while ((uint32_t)atomic_load(&gate) != 0)
        sched_yield();
}

void cw_gate_open(void)
{
    atomic_fetch_sub(&gate, ONE_SHUT);
}

void cw_gate_reset(void)
{
    atomic_store(&gate, 0);
}
