/* SPDX-License-Identifier: MIT */
/*
 * Slots: state that one thread owns and others can reach, at no cost for the owner.
 *
 * A thread that has a slot (core/process/thread.h) works on its slack, its cached blocks and its
 * count of driver calls between cw_slot_enter and cw_slot_leave. That is a plain store before and
 * one after. Another thread that must look inside (a limit, a context that ends, a capture that
 * starts) stops the slot first: it raises `stop` and then makes every processor that runs this
 * process pass a barrier, membarrier(2). After that either the owner has seen `stop` and stays
 * outside, or it is seen to be inside and is waited for: inside there is neither a driver call nor
 * a lock that could take long. Where the system has no membarrier, a filter forbids it, or a
 * sanitizer must follow, the owner's store is a full barrier itself.
 *
 * Slot 0 stands for all threads without a slot of their own: it has no inside.
 */
#ifndef CW_CORE_SLOT_H
#define CW_CORE_SLOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/thread.h"

/* Two cache lines apart: the processor fetches neighbours in pairs. */
struct __attribute__((aligned(128))) cw_slot {
    _Atomic uint32_t busy;    /* the owner is inside; written by the owner only */
    _Atomic uint32_t stop;    /* written under the lock of the stoppers only */
    _Atomic uint32_t calling; /* driver calls of our own in flight (core/process/gate.h) */
    _Atomic uint32_t waiting; /* and those that wait for the device */
    uint32_t no_slack;        /* frees that must not become slack; used inside, or while stopped */
};

extern CW_HIDDEN struct cw_slot cw_slots[CW_SLOTS];
/* 1: stoppers pay for the barrier; set once, before arming. */
extern CW_HIDDEN int cw_slot_is_asymmetric;

/* Before cuInit: the registration costs nothing while there is one thread, and an RCU grace period
 * (11 ms on an idle machine of 16 processors) once there are more, as there are when cuInit
 * returns. Not under a filter, which may kill. */
void cw_slot_prepare(void);
/* Asks the system for membarrier; where a seccomp filter might kill for that, by a child. Before
 * arming, and again in a forked child. */
void cw_slot_init(void);
void cw_slot_reset(void);

/* A store that a stopper sees once it has passed its barrier, unless the owner sees the stopper's
 * word, by a load that is sequentially consistent: on AArch64 one that only acquires may pass the
 * exchange (tests/litmus/slot-*). */
static inline void cw_slot_publish(_Atomic uint32_t *word, uint32_t value)
{
    if (CW_LIKELY(cw_slot_is_asymmetric)) {
        atomic_store_explicit(word, value, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        atomic_exchange(word, value);
    }
}

/* The other half of it: the barrier after which what the owners published can be seen. */
void cw_slot_barrier(void);

/* The calling thread's slot, entered; NULL when it has none or is stopped: do without. */
static inline struct cw_slot *cw_slot_enter(void)
{
    unsigned number = cw_thread_slot();
    struct cw_slot *slot = &cw_slots[number];

    if (CW_UNLIKELY(number == 0))
        return NULL;
    cw_slot_publish(&slot->busy, 1);
    if (CW_LIKELY(atomic_load(&slot->stop) == 0))
        return slot;
    atomic_store_explicit(&slot->busy, 0, memory_order_release);
    return NULL;
}

/* The same for a thread with work that it may do only inside: waits while the slot is stopped,
 * which takes some microseconds. No lock held. NULL: it has no slot. */
struct cw_slot *cw_slot_enter_always(void);

/* To a counter that only the owner writes. */
static inline void cw_slot_add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

static inline void cw_slot_leave(struct cw_slot *slot)
{
    atomic_store_explicit(&slot->busy, 0, memory_order_release);
}

/*
 * Keeps the owners of the slots in `mask` (bit n: slot n) outside until cw_slot_resume. One stopper
 * at a time: a lock of CW_RANK_SLOT is held in between, so no driver call, and only locks of higher
 * rank. Not to be called inside.
 */
void cw_slot_stop(uint64_t mask);
void cw_slot_resume(uint64_t mask);

/* Slots that a thread has had so far. */
uint64_t cw_slot_used(void);

#endif
