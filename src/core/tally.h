/* SPDX-License-Identifier: MIT */
/*
 * The tally: bytes live and held, per device and in all, and their peaks.
 *
 * Owns the shared sums and the slack of live/layout.h. A thread writes its own slack inside its
 * slot (core/slot.h); the shared sums are atomics; a new peak is settled under CW_RANK_PEAK, with
 * the slots that have slack stopped. Always: a shared sum is at least what is live, and no peak is
 * raised without all slack having been taken back, so peaks are exact up to calls in flight.
 */
#ifndef CW_CORE_TALLY_H
#define CW_CORE_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/slot.h"
#include "live/arena.h"

void cw_tally_init(struct cw_arena *arena);
void cw_tally_reset(void);

extern CW_HIDDEN struct cw_live_slot *cw_tally_slack; /* of each slot */

/* The two below, inside the slot and for what changes nothing that threads share; 0: nothing is
 * changed. */
static inline int cw_tally_use_slack(const struct cw_slot *slot, uint8_t device, uint64_t live)
{
    struct cw_live_slot *slack = &cw_tally_slack[slot - cw_slots];
    uint64_t there = atomic_load_explicit(&slack->slack_live, memory_order_relaxed);

    if (CW_UNLIKELY(there < live ||
                    atomic_load_explicit(&slack->device, memory_order_relaxed) != device))
        return 0;
    atomic_store_explicit(&slack->slack_live, there - live, memory_order_relaxed);
    return 1;
}

static inline int cw_tally_leave_slack(const struct cw_slot *slot, uint8_t device, uint64_t live)
{
    struct cw_live_slot *slack = &cw_tally_slack[slot - cw_slots];

    if (CW_UNLIKELY(slot->no_slack != 0 ||
                    atomic_load_explicit(&slack->device, memory_order_relaxed) != device))
        return 0;
    cw_slot_add(&slack->slack_live, live);
    return 1;
}

/* live bytes more for the program, held bytes more from the driver. No lock held but of lower rank
 * than CW_RANK_PEAK; not inside a slot. device: an ordinal or CW_DEVICE_HOST. */
void cw_tally_add(uint8_t device, uint64_t live, uint64_t held, uint64_t now_ns);
/* Counts bytes as held if that makes at most `most` of them: 0, or -1. Exact with any number of
 * threads. The same conditions; cw_tally_sub(device, 0, bytes) takes it back. */
int cw_tally_reserve(uint8_t device, uint64_t bytes, uint64_t most);
/* What was reserved has become a block: only now it may be a peak. */
void cw_tally_committed(uint8_t device, uint64_t now_ns);
/* And less. */
void cw_tally_sub(uint8_t device, uint64_t live, uint64_t held);

/* Exact at the moment when nobody else is at work. */
struct cw_live_sums cw_tally_device(uint8_t device);
uint64_t cw_tally_total(void); /* live, on all devices and the host */

#endif
