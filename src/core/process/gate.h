/* SPDX-License-Identifier: MIT */
/*
 * The gate that every driver call of our own passes, so that none lands inside a capture or in the
 * end of a context.
 *
 * It is a count of our calls in flight, per thread, and a count of reasons to stay shut.
 * cw_gate_close returns when no call of ours is in flight; while it is closed cw_gate_enter fails
 * at once and the caller does without. A stream capture keeps it closed from before its start until
 * it has ended: a query that lands in a capture can invalidate it (cuda.h:
 * cuThreadExchangeStreamCaptureMode). That is stricter than asking which context captures.
 *
 * A call that waits for the device may last as long as the device has work, and that work may wait
 * for the very thread that closes the gate. Such calls are counted apart: cw_gate_close gives them
 * some milliseconds to get past the driver's own checks and then goes on, as the program's own free
 * would have been waiting at that moment without us. The end of a context also waits for frees in
 * that very context (cw_pool_context_enter_free).
 */
#ifndef CW_CORE_GATE_H
#define CW_CORE_GATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/slot.h"

extern CW_HIDDEN _Atomic uint32_t cw_gate_reasons; /* to stay shut; 0: open */

/* Streams of the process that capture, as far as seen; written by core/device/graph.c. */
extern CW_HIDDEN _Atomic int cw_gate_captures;

static inline int cw_gate_is_capturing(void)
{
    return atomic_load_explicit(&cw_gate_captures, memory_order_relaxed) > 0;
}

static inline int cw_gate_is_open(void)
{
    return CW_LIKELY(atomic_load(&cw_gate_reasons) == 0); /* behind cw_slot_publish */
}

/* A count of calls in flight; that of slot 0 is shared by many threads. */
static inline void cw_gate_count_up(_Atomic uint32_t *count, int is_shared)
{
    if (CW_UNLIKELY(is_shared))
        atomic_fetch_add(count, 1);
    else
        cw_slot_publish(count, atomic_load_explicit(count, memory_order_relaxed) + 1);
}

static inline void cw_gate_count_down(_Atomic uint32_t *count, int is_shared)
{
    if (CW_UNLIKELY(is_shared))
        atomic_fetch_sub(count, 1);
    else
        atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) - 1,
                              memory_order_release);
}

/* 1: go on, and call cw_gate_leave afterwards. 0: closed. Never waits. */
static inline int cw_gate_enter(void)
{
    unsigned slot = cw_thread_slot();

    cw_gate_count_up(&cw_slots[slot].calling, slot == 0);
    if (CW_LIKELY(cw_gate_is_open()))
        return 1;
    cw_gate_count_down(&cw_slots[slot].calling, slot == 0);
    return 0;
}

static inline void cw_gate_leave(void)
{
    unsigned slot = cw_thread_slot();

    cw_gate_count_down(&cw_slots[slot].calling, slot == 0);
}

/* The same for a call that waits for the device. */
static inline int cw_gate_enter_wait(void)
{
    unsigned slot = cw_thread_slot();

    cw_gate_count_up(&cw_slots[slot].waiting, slot == 0);
    if (CW_LIKELY(cw_gate_is_open()))
        return 1;
    cw_gate_count_down(&cw_slots[slot].waiting, slot == 0);
    return 0;
}

static inline void cw_gate_leave_wait(void)
{
    unsigned slot = cw_thread_slot();

    cw_gate_count_down(&cw_slots[slot].waiting, slot == 0);
}

/* Nests. Must not be called between enter and leave. */
void cw_gate_close(void);
/* The same without waiting for anybody. */
void cw_gate_shut(void);
void cw_gate_open(void);

/* Lets calls in flight come to their end, a millisecond at most. Whoever enters later sees, by a
 * load that is sequentially consistent, what the caller wrote before. Not inside the gate, but for
 * a wait. */
void cw_gate_let_pass(void);
/* The calling thread ends, perhaps cancelled inside: nobody waits for it. */
void cw_gate_thread_ends(void);

/* In a forked child: open, nobody inside. */
void cw_gate_reset(void);

#endif
