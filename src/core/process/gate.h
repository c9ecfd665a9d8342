/* SPDX-License-Identifier: MIT */
/*
 * The gate that every driver call of our own passes, so that none lands inside a capture or in the
 * end of a context.
 *
 * It is a count of our calls in flight, per thread, and counts of reasons to stay shut.
 * cw_gate_close returns when no call of ours is in flight; while it is closed cw_gate_enter fails
 * at once and the caller does without. A stream capture keeps it closed from before its start until
 * it has ended: a query that lands in a capture can invalidate it (cuda.h:
 * cuThreadExchangeStreamCaptureMode). That is stricter than asking which context captures.
 *
 * What the program is owed cannot do without: its free was to wait, its request has found no
 * memory, what it freed must be gone before its context is. Such calls pass beside reasons that do
 * not concern them:
 *
 *   a capture   "potentially unsafe" calls are not prohibited to a thread in relaxed mode, whatever
 *               captures (cuda.h, the same place; docs/measurements.md has what an H100 does). So
 *               the thread's mode is exchanged, and back. That is for frees, allocations, questions
 *               about memory, and about events that were recorded outside of a capture. It is not
 *               for what names a whole context, to record an event of it or to wait for it: that
 *               conflicts with a capture in the context, or with one that has spread to it.
 *   an end      of another context than the one that the call is for: its state, which is set
 *               before the end waits for calls in flight, says so (core/cache/pool_context.h).
 *   a pool      of stream-ordered memory is destroyed: all calls but those for such pools.
 *
 * Each place that meets a shut gate is in tests/check/gate.list, with what it owes then; a new one
 * has to be added there.
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

/* Three counts in one word. */
enum cw_gate_reason { CW_GATE_CAPTURE = 1, CW_GATE_END = 1 << 12, CW_GATE_POOL = 1 << 22 };
#define CW_GATE_CAPTURES UINT32_C(0x00000fff) /* from before their start */
#define CW_GATE_ENDS     UINT32_C(0x003ff000) /* of contexts */
#define CW_GATE_POOLS    UINT32_C(0x7fc00000)
#define CW_GATE_ALL      (CW_GATE_CAPTURES | CW_GATE_ENDS | CW_GATE_POOLS)
#define CW_GATE_OVER     UINT32_C(0x80000000) /* the process ends: nothing passes any more */

extern CW_HIDDEN _Atomic uint32_t cw_gate_reasons; /* to stay shut; 0: open */

/* Streams of the process that capture, as far as seen, and those that prohibit other threads what
 * might be unsafe (CU_STREAM_CAPTURE_MODE_GLOBAL); written by core/device/graph.c. */
extern CW_HIDDEN _Atomic int cw_gate_captures, cw_gate_global_captures;

static inline int cw_gate_is_capturing(void)
{
    return atomic_load_explicit(&cw_gate_captures, memory_order_relaxed) > 0;
}

/* For what is owed to requests, which are prohibited themselves while a capture is global. */
static inline uint32_t cw_gate_kinds_apart(void)
{
    return atomic_load(&cw_gate_global_captures) > 0 ? 0 : CW_GATE_CAPTURES;
}

/* 1: what is owed is not done any more. */
static inline int cw_gate_is_over(void)
{
    return CW_UNLIKELY((atomic_load(&cw_gate_reasons) & CW_GATE_OVER) != 0);
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

/* Beside reasons of these kinds (CW_GATE_CAPTURES, ...), for what is owed; beside a capture the
 * thread's mode is relaxed until it leaves. 0: refused; else for leave. Never waits. */
CW_COLD unsigned cw_gate_enter_beside(uint32_t kinds);
CW_COLD void cw_gate_leave_beside(unsigned passed);
/* The same for a call that waits for the device. */
CW_COLD unsigned cw_gate_enter_wait_beside(uint32_t kinds);
CW_COLD void cw_gate_leave_wait_beside(unsigned passed);

/* Around a call of the program's own that comes late on our account: a capture that has begun
 * meanwhile prohibits it no more than it would have in time. */
CW_COLD unsigned cw_gate_relax(void);
CW_COLD void cw_gate_unrelax(unsigned relaxed);

/* Nests. */
void cw_gate_shut(enum cw_gate_reason reason);
void cw_gate_open(enum cw_gate_reason reason);
/* Waits for the calls in flight of those who entered before: shut, or a state that they look at
 * inside. Must not be called between enter and leave. */
void cw_gate_settle(void);
/* Both. */
void cw_gate_close(enum cw_gate_reason reason);
/* For good. */
void cw_gate_shut_down(void);

/* Lets calls in flight come to their end, a millisecond at most. Whoever enters later sees, by a
 * load that is sequentially consistent, what the caller wrote before. Not inside the gate, but for
 * a wait. */
void cw_gate_let_pass(void);
/* The calling thread ends, perhaps cancelled inside: nobody waits for it. */
void cw_gate_thread_ends(void);

/* In a forked child: open, nobody inside. */
void cw_gate_reset(void);

#endif
