/* SPDX-License-Identifier: MIT */
/*
 * Pending blocks: freed by the program, while work of the device that was submitted before may
 * still run.
 *
 * A block is ready when every live context has passed a point after the free. Two kinds of points
 * count: a synchronisation of the whole context that started after the free and has returned
 * success (a ticket), and an event of the whole context that was recorded after the free. Frees
 * collect in batches. A batch is open while only its thread sees it, inside that thread's slot.
 * Closing it records one event in each context that still needs one; then it joins the list of its
 * realm (CW_RANK_POOL), from which all threads harvest. Whoever works on a batch has taken it out
 * of the list. An event that was never recorded reads as passed (the race of CUB's allocator,
 * NVIDIA/cub#156): a batch says itself whether its events are recorded, and one that joined the
 * list without, because a capture kept the gate shut, is recorded before it is asked about.
 *
 * Tickets: one counter for the process, stamped into a batch at each free, drawn by each
 * synchronisation before it starts. A ticket larger than the stamp began after the free.
 */
#ifndef CW_CORE_PENDING_H
#define CW_CORE_PENDING_H

#include <stdint.h>

#include "core/gate.h"
#include "core/realm.h"
#include "core/session.h"

extern CW_HIDDEN _Atomic uint32_t cw_pending_batches;
extern CW_HIDDEN _Atomic uint64_t cw_pending_bytes_on[CW_DEVICES];

void cw_pending_reset(void);

/* 1 if anything may be pending anywhere: a hint. */
static inline int cw_pending_is_any(void)
{
    return atomic_load_explicit(&cw_pending_batches, memory_order_relaxed) != 0;
}

/* ---- synchronisations of a whole context, the program's or ours ---- */

/* Before: the ticket. */
uint64_t cw_pending_sync_begin(void);
/* After it has returned success. */
void cw_pending_sync_end(struct cw_realm *realm, uint64_t ticket);

/* Waits for the realm's context, which counts as a synchronisation of the program's does. 0 with
 * the driver's code, or -1: the gate is closed, or the context cannot be worked with. */
static inline int cw_pending_wait(struct cw_realm *realm, int *out_code)
{
    uint64_t ticket = 0;

    if (CW_UNLIKELY(!cw_gate_enter_wait()))
        return -1;
    if (CW_UNLIKELY(!cw_realm_is_usable(realm))) {
        cw_gate_leave_wait();
        return -1;
    }
    if (CW_UNLIKELY(cw_pending_is_any() || !cw_realm_is_alone()))
        ticket = cw_pending_sync_begin();
    *out_code = cw_session.ops->context_wait(realm->record->handle);
    cw_gate_leave_wait();
    if (CW_UNLIKELY(ticket != 0) && *out_code == 0)
        cw_pending_sync_end(realm, ticket);
    return 0;
}

/* The number of the last ticket drawn: a free that has it is covered by the next. */
uint64_t cw_pending_stamp(void);

/* ---- blocks ---- */

/* 1 if a block that was freed with this stamp is ready now: no event needed. */
int cw_pending_is_passed(uint64_t stamp);

/* 1 if blocks that are not ready can be kept: events, and not too many contexts, all known. */
int cw_pending_is_possible(void);

/* Keeps a retired block until it is ready. 0, or -1: give it to the driver. May close batches, so
 * no lock is held. */
int cw_pending_add(struct cw_pool *pool, uint32_t block, uint64_t stamp);

/* Linked idle blocks of the realm that have to wait again; no driver call. */
void cw_pending_add_list(struct cw_realm *realm, uint32_t list);

/* Closes the calling thread's open batch: records its events now. */
void cw_pending_close(int may_release);

/*
 * Looks which blocks of the realm have become ready, by ticket or event, and hands them to the
 * pool (cw_keep_ready, which says what may_release means). Asks the driver about `most` batches at
 * most. How many blocks.
 */
uint32_t cw_pending_harvest(struct cw_realm *realm, unsigned most, int may_release);

/* Bytes that are pending on a device, or of pinned memory (CW_DEVICE_HOST). */
static inline uint64_t cw_pending_bytes(uint8_t device)
{
    return atomic_load_explicit(&cw_pending_bytes_on[device], memory_order_relaxed);
}

/* All pending blocks of the realm, linked, also from open batches: with the gate closed at the end
 * of a context, and when memory is short. */
uint32_t cw_pending_seize(struct cw_realm *realm);

/* The calling thread ends: its open batch is for all, its events not recorded yet. */
void cw_pending_thread_ends(void);

#endif
