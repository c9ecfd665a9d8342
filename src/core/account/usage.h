/* SPDX-License-Identifier: MIT */
/*
 * The usage counters: live and held bytes, per device and in total, and their peaks; how many
 * blocks are live on a device, for the peak of that; and the excess of live blocks of the pool over
 * their requests (core/limits/excess.h).
 *
 * Owns the shared sums and the slack, which are in private memory, because limits and the pool
 * decide by them; those of live/layout.h are copies for readers, written after them and never read
 * here. A thread writes its own slack inside its
 * slot (core/process/slot.h); the shared sums are atomics; a new peak is settled under
 * CW_RANK_PEAK, with the slots that have slack stopped. Always: a shared sum is at least the live
 * bytes, and a peak is raised only after all slack was taken back, so peaks are exact up to calls
 * in flight. A device has two peaks of live bytes, that of its life and that since the timeline's
 * last point.
 */
#ifndef CW_CORE_USAGE_H
#define CW_CORE_USAGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/slot.h"
#include "live/arena.h"

void cw_usage_init(struct cw_arena *arena);
void cw_usage_reset(void);

/* What the thread in a slot has freed and not yet added to the sums; written by that thread, by
 * others only while they have stopped it. */
struct cw_usage_slack {
    _Alignas(64) _Atomic uint64_t live;
    _Atomic uint64_t held, excess;
    /* Bytes by which the thread has ever changed the sums, up and down. Added to: the thread does
     * so while it is stopped, too. */
    _Atomic uint64_t moved;
    _Atomic uint32_t device;    /* ordinal or CW_DEVICE_HOST */
    _Atomic uint32_t blocks;    /* freed, whose bytes are or were in live */
    struct cw_live_slot *shown; /* the copy for readers */
};
extern CW_HIDDEN struct cw_usage_slack cw_usage_slack[CW_SLOTS];

/* Shared sums of a device, slack included: at least what is live and held. */
struct cw_usage_sums {
    _Alignas(64) _Atomic uint64_t live;
    _Atomic uint64_t held, excess, blocks;
};
extern CW_HIDDEN struct cw_usage_sums cw_usage_sums[CW_DEVICES];

/* Live or held bytes, threads' slack included. */
static inline uint64_t cw_usage_live_sum(uint8_t device)
{
    return atomic_load_explicit(&cw_usage_sums[device].live, memory_order_relaxed);
}
static inline uint64_t cw_usage_held_sum(uint8_t device)
{
    return atomic_load_explicit(&cw_usage_sums[device].held, memory_order_relaxed);
}

/* The most bytes that were ever live on a device. */
extern CW_HIDDEN _Atomic uint64_t cw_usage_peak[CW_DEVICES];
/* The same with what the driver's pages have beyond live blocks, about: what idle memory takes can
 * be given back, and is not in it. */
uint64_t cw_usage_peak_taken(uint8_t device);

/* A block comes from the driver, or goes back: so much of its pages is nobody's. */
void cw_usage_take_padding(uint8_t device, uint64_t padding);
void cw_usage_give_padding(uint8_t device, uint64_t padding);

/* How much excess there may be, as last worked out (cw_usage_take_excess). */
extern CW_HIDDEN _Atomic uint64_t cw_usage_most_excess[CW_DEVICES];

/* Of excess beyond that a thread keeps nothing to use up again. */
static inline void cw_usage_leave_excess(struct cw_usage_slack *slack, uint8_t device,
                                         uint64_t excess)
{
    _Atomic uint64_t *sum = &cw_usage_sums[device].excess;

    if (atomic_load_explicit(sum, memory_order_relaxed) <=
        atomic_load_explicit(&cw_usage_most_excess[device], memory_order_relaxed))
        cw_slot_add(&slack->excess, excess);
    else
        atomic_fetch_sub_explicit(sum, excess, memory_order_relaxed);
}

/* The two functions below run inside the slot and change nothing that threads share. live: of one
 * block. 0: nothing was changed. */
static inline int cw_usage_use_slack(const struct cw_slot *slot, uint8_t device, uint64_t live)
{
    struct cw_usage_slack *slack = &cw_usage_slack[slot - cw_slots];
    uint64_t there = atomic_load_explicit(&slack->live, memory_order_relaxed);
    uint32_t blocks = atomic_load_explicit(&slack->blocks, memory_order_relaxed);

    if (CW_UNLIKELY(there < live || blocks == 0 ||
                    atomic_load_explicit(&slack->device, memory_order_relaxed) != device))
        return 0;
    atomic_store_explicit(&slack->live, there - live, memory_order_relaxed);
    atomic_store_explicit(&slack->blocks, blocks - 1, memory_order_relaxed);
    atomic_store_explicit(&slack->shown->slack_live, there - live, memory_order_relaxed);
    return 1;
}

static inline int cw_usage_leave_slack(const struct cw_slot *slot, uint8_t device, uint64_t live,
                                       uint64_t excess)
{
    struct cw_usage_slack *slack = &cw_usage_slack[slot - cw_slots];

    if (CW_UNLIKELY(slot->no_slack != 0 ||
                    atomic_load_explicit(&slack->device, memory_order_relaxed) != device))
        return 0;
    atomic_store_explicit(&slack->blocks,
                          atomic_load_explicit(&slack->blocks, memory_order_relaxed) + (live != 0),
                          memory_order_relaxed);
    live += atomic_load_explicit(&slack->live, memory_order_relaxed);
    atomic_store_explicit(&slack->live, live, memory_order_relaxed);
    atomic_store_explicit(&slack->shown->slack_live, live, memory_order_relaxed);
    if (CW_UNLIKELY(excess != 0))
        cw_usage_leave_excess(slack, device, excess);
    return 1;
}

/* Excess that the calling thread may use, inside its slot: it is counted already. */
static inline uint64_t cw_usage_spare_excess(const struct cw_slot *slot, uint8_t device)
{
    const struct cw_usage_slack *slack = &cw_usage_slack[slot - cw_slots];

    return atomic_load_explicit(&slack->device, memory_order_relaxed) == device
               ? atomic_load_explicit(&slack->excess, memory_order_relaxed)
               : 0;
}

static inline void cw_usage_use_excess(const struct cw_slot *slot, uint64_t excess)
{
    cw_slot_add(&cw_usage_slack[slot - cw_slots].excess, -excess);
}

/* live bytes more for the program, in one block, held bytes more from the driver. No lock held but
 * of lower rank than CW_RANK_PEAK; not inside a slot. device: an ordinal or CW_DEVICE_HOST. */
void cw_usage_add(uint8_t device, uint64_t live, uint64_t held, uint64_t now_ns);
/* Counts bytes as held unless the sum would exceed `most`: 0, or -1. Exact with any number of
 * threads. The same conditions; cw_usage_sub(device, 0, bytes) takes it back. */
int cw_usage_reserve(uint8_t device, uint64_t bytes, uint64_t most);
/* A reservation has become a block: only now it may raise a peak. */
void cw_usage_committed(uint8_t device, uint64_t now_ns);
/* Reserved, and neither cancelled nor committed yet: counted by core/limits/limit.c. */
extern CW_HIDDEN _Atomic uint64_t cw_usage_flight[CW_DEVICES];

static inline uint64_t cw_usage_in_flight(uint8_t device)
{
    return atomic_load(&cw_usage_flight[device]);
}

/* And less. */
void cw_usage_sub(uint8_t device, uint64_t live, uint64_t held);

/* Counts up to `bytes` as excess, as long as the sum is at most `most`, which from now on also says
 * what threads keep of what they free. Returns how many. Exact with any number of threads. The same
 * conditions. */
uint64_t cw_usage_take_excess(uint8_t device, uint64_t bytes, uint64_t most);
void cw_usage_give_excess(uint8_t device, uint64_t bytes);

/* Takes all slack back: the shared sums are exact at this moment. */
void cw_usage_settle_slack(void);

/* When the device's live bytes were lowest, as far as was noticed, and highest since the last call;
 * from now on both are what is live now. No lock held. */
void cw_usage_take_extremes(uint8_t device, uint64_t now_ns, struct cw_live_extreme *out_least,
                            struct cw_live_extreme *out_most);

/* Exact while no other thread is at work. */
struct cw_live_sums cw_usage_device(uint8_t device);
uint64_t cw_usage_excess(uint8_t device);
/* 1: something was held there at some time. */
int cw_usage_is_used(uint8_t device);
int cw_usage_is_any_used(void); /* of the devices */
uint64_t cw_usage_total(void);  /* live, on all devices and the host */

#endif
